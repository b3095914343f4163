"""Contract tests for policies, graph learners, environments and delays, built-in or your own.

Each raises an AssertionError that says what is broken, with numbers, and how to fix it, and returns the checks that do
not apply, with the reasons. All draws come from fixed seeds, so the result of a check is reproducible.

>>> import spillover as sp
>>> skipped = check_policy(sp.Uniform())
>>> check_graph_learner(sp.SparseGraph())
[]
>>> check_environment(sp.SyntheticSEM(n_arms=4, budget=2, horizon=20, changes=(10,)))
['check_context: the problem has no context']
>>> check_delay(sp.GeometricDelay(mean=3))
[]
"""

from spillover.testing.environments import check_delay, check_environment
from spillover.testing.graphs import check_graph_learner
from spillover.testing.policies import check_policy

__all__ = ["check_delay", "check_environment", "check_graph_learner", "check_policy"]
