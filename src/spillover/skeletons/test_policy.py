"""ExamplePolicy keeps the contract of a policy, and is worth playing."""

import pytest

import spillover as sp
from spillover.skeletons.policy import ExamplePolicy
from spillover.testing import check_policy


def test_it_keeps_the_contract() -> None:
    check_policy(ExamplePolicy())
    check_policy(ExamplePolicy(epsilon=0.5, graph="none"))


def test_it_beats_chance() -> None:
    world = sp.SyntheticSEM(horizon=500, changes=())
    runs = [sp.simulate(policy, world, 5, replications=10) for policy in (ExamplePolicy(), sp.Uniform())]
    mine, chance = (run.final_regret.mean() for run in runs)
    assert mine < chance


def test_a_random_set_is_explained() -> None:
    learner = sp.Learner(ExamplePolicy(epsilon=1.0), sp.Problem(n_arms=3, budget=1))
    plans = []
    for _ in range(6):
        plans.append(str(learner.explain().plan))
        x = learner.choose()
        learner.report(learner.play(x), 0.5 * x, 0.5 * x)
    assert all(plan.startswith("at the start") for plan in plans[:3])
    assert all(plan.startswith("a random set") for plan in plans[3:])


def test_an_impossible_epsilon_is_refused() -> None:
    with pytest.raises(ValueError, match="epsilon = 2"):
        ExamplePolicy(epsilon=2)
