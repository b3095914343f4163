"""CTS: posteriors and decisions against a twin that is handed the same draws, and the law of its decisions."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.policies import CTS
from tests.reference import rivals_reference as reference
from tests.support import feedback

N, BUDGET = 4, 2
WEIGHTS = np.array([1.0, 2.5, 1.2, 1.7])
SCALES: dict[str, tuple[sp.Problem, dict[str, Any]]] = {
    "declared": (sp.Problem(N, BUDGET, overall_range=(0.0, 1.5)), {"overall_range": (0.0, 1.5)}),
    "shifted": (sp.Problem(N, BUDGET, overall_range=(-0.5, 0.5)), {"overall_range": (-0.5, 0.5)}),
    "known graph": (
        sp.Problem(N, BUDGET, reward_range=(-0.2, 1.5), weights=WEIGHTS),
        {"weights": WEIGHTS, "reward_range": (-0.2, 1.5)},
    ),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_twin_agrees_at_every_round(way, scale):
    problem, known = SCALES[scale]
    policy, twin, seed = CTS(knows_graph="weights" in known), reference.SlowCTS(N, BUDGET, **known), 5
    rng = sp.Rng(seed)

    def observe(now, played_at, x, z, y):
        twin.observe(played_at, x, z, y)
        twin.observe_draw(rng.at(sp.rng.Purpose.LEARNING, played_at).uniform(N))

    outcome = reference.spilling(N, seed, *problem.reward_range)
    for t, state, x in reference.play_beside(policy, problem, reference.delays(4)[way], outcome, 120, observe, seed):
        a, b = twin.posterior()
        np.testing.assert_array_equal(state.successes, a)
        np.testing.assert_array_equal(state.failures, b)
        theta = rng.at(sp.rng.Purpose.CHOICE, t).beta(a, b)
        assert reference.top_sets_fault(x, twin.scores(theta), BUDGET) == ""
        assert x.sum() == min(BUDGET, (twin.scores(theta) > 0).sum())
    assert a.sum() > 10
    assert b.sum() > 30


def test_an_outcome_becomes_a_bernoulli_draw_with_its_mean():
    draws = 40_000
    policy = CTS()
    state = policy.init(sp.Problem(4, 4, overall_range=(1.0, 3.0)), sp.Rng(0), (draws,))
    x = np.tile([True, True, True, False], (draws, 1))
    state = policy.update(
        policy.played(state, x), feedback(x, y=np.tile([1.5, 1.0, 9.0, 2.0], (draws, 1))), sp.Rng(1, np.arange(draws))
    )
    assert abs((state.successes[:, 0] - 1).mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / draws)
    assert (state.successes[:, 1] == 1).all()  # the lowest reward never counts
    assert (state.successes[:, 2] == 2).all()  # the highest, and what is above it, always
    assert (state.successes[:, 3] == 1).all()  # not played
    assert (state.failures[:, 3] == 1).all()
    np.testing.assert_array_equal((state.successes + state.failures)[:, :3], 3)


def test_one_draw_an_arm_and_the_best_are_chosen():
    """The chances of each set, against Beta draws of NumPy."""
    policy, draws = CTS(), 60_000
    problem = sp.Problem(4, 2, overall_range=(0.0, 1.0))
    state = policy.init(problem, sp.Rng(0), (draws,))
    a, b = np.array([3.0, 5.0, 1.0, 2.0]), np.array([2.0, 4.0, 1.0, 4.0])
    state = state._replace(successes=np.tile(a, (draws, 1)), failures=np.tile(b, (draws, 1)))
    x = policy.select(state, sp.Rng(3, np.arange(draws))).x
    theta = np.random.default_rng(0).beta(a, b, (4 * draws, 4))
    theirs = np.argsort(np.argsort(-theta, axis=1), axis=1) < 2
    patterns = [np.bincount(chosen @ [1, 2, 4, 8], minlength=16) for chosen in (x, theirs)]
    seen = patterns[1] > 0
    assert seen.sum() == 6
    assert not patterns[0][~seen].any()
    assert stats.chi2_contingency([patterns[0][seen], patterns[1][seen]]).pvalue > 1e-3


def test_it_needs_the_range_of_outcomes_unless_it_is_told_the_graph():
    CTS(knows_graph=True).init(sp.Problem(2, 1, weights=[1.0, 2.0]), sp.Rng(0))
    with pytest.raises(
        ValueError, match=r"overall_range = None in the problem: must be \(low, high\) for CTS, as past"
    ):
        CTS().init(sp.Problem(2, 1), sp.Rng(0))
