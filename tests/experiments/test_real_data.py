"""Experiment files with baselines, context, hidden causes, and outcomes that are not observed."""

from typing import Any

import pytest

import spillover as sp
from spillover.delays import ArmDelays
from spillover.experiments import ExperimentError, parse_experiment, run_experiment
from spillover.experiments.tune import tune

TEXT = """
name = "real"
title = "Only y is seen"
seed = 1
replications = 2
block = 2
record = 20

[worlds.drawn]
kind = "synthetic"
n_arms = 5
budget = 2
horizon = 40
changes = [20]
baseline = [0.5, 2.0]
context = 2
confounding = 0.3
noise = 0.2
observes = "overall"

[delays.5]
kind = "constant"
rounds = 5
[delays.apart]
kind = "per-arm"
delays = [0, 1, 2, 3, 4]

[policies.random]
[policies.delayed-oracle]
"""


def test_a_file_with_everything_runs(tmp_path):
    experiment = parse_experiment(TEXT, "real.toml")
    world: Any = experiment.worlds["drawn"]
    assert (world.baseline, world.context, world.confounding, world.observes) == ((0.5, 2.0), 2, 0.3, "overall")
    assert experiment.delays["apart"] == ArmDelays((0, 1, 2, 3, 4))
    results = run_experiment(experiment, tmp_path / "real", progress=False)
    regret = {(r.delay, r.policy): float(r.regret[:, -1].mean()) for r in results.records()}
    for delay in ("5", "apart"):
        run = sp.simulate(sp.Uniform(), world, experiment.delays[delay], replications=2, seed=1)
        assert regret[delay, "random"] == run.final_regret.mean()


def test_a_given_world_is_read_from_tables():
    given = '\n[worlds.given]\nkind = "fixed"\nadjacency = [[0, 0.5], [0, 0]]\nmeans = [0.3, 0.6]\nbudget = 1\n'
    given += "horizon = 2\nbaseline = [1.0, 2.0]\ncontext = [[0.0], [1.0]]\ncontext_effect = [[0.1], [-0.1]]\n"
    chosen = '\n[[studies]]\nworlds = ["given"]\ndelays = ["5"]\n'
    world: Any = parse_experiment(TEXT + given + chosen, "real.toml").worlds["given"].draw(sp.Rng(0))
    assert world.means(2).tolist() == [0.4, 0.5]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[policies.random]", "[policies.ndc-sem]", r"real.toml:28: ndc-sem in drawn .*NDCSEM: must be one that does"),
        ("[0, 1, 2, 3, 4]", "[0, 1]", r"real.toml:\d+: .*number of delays = 2: must be 5, one for each arm"),
        ('"overall"', '"y"', r"observes = 'y': must be one of both, overall, payoff"),
        ("context = 2", "contexts = 2", "did you mean context"),
    ],
)
def test_what_does_not_fit_is_one_line(before, after, message):
    with pytest.raises(ExperimentError, match=message) as caught:
        parse_experiment(TEXT.replace(before, after), "real.toml")
    assert "\n" not in str(caught.value)


def test_tuning_a_policy_that_does_not_fit_is_one_line():
    world = sp.SyntheticSEM(n_arms=4, budget=2, horizon=20, changes=(), observes="overall")
    with pytest.raises(
        RuntimeError, match="NDCSEM: must be one that does not need the instantaneous rewards"
    ) as caught:
        tune(sp.NDCSEM(), world, 2, grid={"discount": [0.5, 0.9]}, replications=2)
    assert "\n" not in str(caught.value)
