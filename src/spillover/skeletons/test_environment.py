"""ExampleEnvironment keeps the contract of an environment, and there is something to learn in it."""

import pytest

import spillover as sp
from spillover.skeletons.environment import ExampleEnvironment
from spillover.testing import check_environment


def test_it_keeps_the_contract() -> None:
    check_environment(ExampleEnvironment(horizon=20))
    check_environment(ExampleEnvironment(n_arms=1, budget=1, horizon=1))


def test_a_policy_learns_in_it() -> None:
    runs = [sp.simulate(p, ExampleEnvironment(), 5, replications=10) for p in (sp.SwitchingSEM(), sp.Uniform())]
    learned, chance = (run.final_regret.mean() for run in runs)
    assert learned < chance


def test_an_impossible_share_is_refused() -> None:
    with pytest.raises(ValueError, match="spill = 2"):
        ExampleEnvironment(spill=2)
