"""The results of a small experiment, to try figures and tables on."""

import tempfile
from functools import cache

from spillover.experiments.parse import parse_experiment
from spillover.experiments.results import Results
from spillover.experiments.run import run_experiment

SMALL = """
name = "small"
replications = 2
record = 10
[worlds.changing]
kind = "synthetic"
n_arms = 4
budget = 2
edge_density = 0.2
horizon = 40
changes = [21]
[delays.2]
kind = "constant"
rounds = 2
[delays.6]
kind = "constant"
rounds = 6
[policies.ndc-sem]
label = "NDC-SEM"
[policies.random]
label = "random"
"""


@cache
def example_results() -> Results:
    """Two policies at two delays in small worlds that change once; computed when it is first asked for.

    >>> [(record.delay, record.policy) for record in example_results().records()]
    [('2', 'ndc-sem'), ('2', 'random'), ('6', 'ndc-sem'), ('6', 'random')]
    """
    with tempfile.TemporaryDirectory() as folder:
        results = run_experiment(parse_experiment(SMALL), folder, progress=False)
        results.records()  # all are in memory now, and the folder is not needed any more
    return results
