"""Whole sets as arms: against plain averages over sets kept in a dictionary."""

from itertools import combinations

import numpy as np
import pytest

import spillover as sp
from spillover.policies import SuperArmUCB
from spillover.rng import Purpose


def test_every_set_is_tried_and_known_by_its_payoff():
    world_family = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=120, changes=())
    rng = sp.Rng(2)
    world = world_family.draw(rng.at(Purpose.WORLD))
    policy = SuperArmUCB(discount=0.95, exploration=0.05)
    history: dict[tuple[int, ...], list[tuple[int, float]]] = {c: [] for c in combinations(range(5), 2)}
    played = list(sp.rounds(policy, world, 3, rng, ()))
    state = played[-1].state
    for t, x, outcome, _ in played:
        history[tuple(np.flatnonzero(x).tolist())].append((t, float(outcome.y.sum())))
    arrived = {c: [(t, r) for t, r in log if t <= 120 - 3] for c, log in history.items()}
    assert all(arrived.values())  # ten sets: each is tried before any is repeated for good
    clock = sum(0.95 ** (120 - t) for t in range(1, 121))
    scale = 5 * world.problem.overall_range[1]
    for place, log in enumerate(arrived.values()):
        weights = np.array([0.95 ** (120 - t) for t, _ in log])
        mean = (weights * [r for _, r in log]).sum() / weights.sum() / scale
        bonus = 2 * np.sqrt(0.05 * 3 * np.log(clock) / weights.sum())
        assert policy.indices(state, rng, state.members.shape[-2:-1])[place] == pytest.approx(mean + bonus, rel=1e-12)


def test_a_set_of_another_size_teaches_nothing():
    policy = SuperArmUCB()
    state = policy.played(policy.init(sp.Problem(4, 2), sp.Rng(0)), np.ones(4, bool))
    outcome = sp.Feedback(np.ones(4, bool), np.ones(4), np.ones(4), np.array(0), np.array(True))
    assert not policy.update(state, outcome, sp.Rng(0)).averages.counts.any()


@pytest.mark.parametrize("overall_range", [(-1.0, 0.0), (-2.0, -1.0)])
def test_the_least_harmful_set_is_played_if_all_payoffs_are_negative(overall_range):
    policy, rng = SuperArmUCB(), sp.Rng(1)
    state = policy.init(sp.Problem(4, 2, overall_range=overall_range), rng)
    low, high = overall_range
    outcome = np.linspace(low, high, 4)  # of which the last two are the best set
    for t in range(1, 31):
        x = policy.select(state, rng.at(Purpose.CHOICE, t)).x
        y = np.where(x, outcome, 0.0)
        arrived = sp.Feedback(x, np.where(x, 0.5, 0.0), y, np.array(0), np.array(True))
        state = policy.update(policy.played(state, x), arrived, rng)
    assert x.tolist() == [False, False, True, True]
    assert np.isfinite(policy.explain(state, rng).index).all()


def test_too_many_sets_are_refused():
    with pytest.raises(ValueError, match="number of sets = 184756: must be at most 100,000"):
        SuperArmUCB().init(sp.Problem(20, 10), sp.Rng(0))


@pytest.mark.parametrize("overall_range", [(-1.0, 0.0), (-3.0, -1.0), (-1.0, 1.0)])
def test_payoffs_below_zero_are_told_apart(overall_range):
    low, high = overall_range
    learner = sp.Learner(SuperArmUCB(), sp.Problem(n_arms=3, budget=1, overall_range=overall_range))
    shares = np.array([0.2, 0.9, 0.5])  # of the range; the second arm is best
    for _ in range(60):
        x = learner.choose()
        learner.reasons()
        learner.report(learner.play(), z=0.5 * x, y=np.full(3, low + (high - low) * shares[x].sum()))
    assert learner.choose().tolist() == [False, True, False]
    assert np.isfinite(learner.explain().score).all()
