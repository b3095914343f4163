"""A wrapper passes every member of the contract on to the policy inside."""

import numpy as np

import spillover as sp
from spillover.contracts import Policy
from spillover.policies import Constrained
from spillover.policy_wrapper import PolicyWrapper
from tests.recorder import Recorder

# see the docstring of PolicyWrapper
OWN, MORE = {"grids", "explain_choice"}, {"inner", "around", "setting"}


def test_every_member_of_the_contract_is_passed_on():
    members = {name for name in vars(Policy) if not name.startswith("_")}
    assert members - OWN == {name for name in vars(PolicyWrapper) if not name.startswith("_")} - MORE


def test_traits_and_context_reach_the_policy_under_constraints():
    inner = Recorder()
    policy = Constrained(policy=inner, constraints=(sp.constraints.Exclusive([0, 1]),))
    assert policy.traits == inner.traits
    learner = sp.Learner(policy, sp.Problem(3, 2, observes="overall", context=1))
    np.testing.assert_array_equal(learner.choose(context=[2.0]), [True, False, True])
    learner.report(learner.play(), y=[np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(inner.calls("observe"), [[2.0]])
    assert len(inner.calls("update")) == 1
    environment = sp.SyntheticSEM(n_arms=3, budget=2, horizon=9, changes=(), context=1, observes="overall")
    assert sp.simulate(policy, environment, 1, replications=2).regret.shape == (2, 9)
