"""How decisions are measured, against NumPy."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from spillover import kernels


def scores_with_ties() -> np.ndarray:
    """(rows, arms): few different values, so that many arms are tied, and some are not positive."""
    return np.random.default_rng(1).integers(-3, 6, (400, 9)) / 4.0


def test_the_best_arms_are_the_first_of_a_stable_order():
    scores = scores_with_ties()
    for budget in (1, 3, 9):
        order = np.argsort(-scores, axis=-1, kind="stable")[:, :budget]
        wanted = np.zeros(scores.shape, bool)
        np.put_along_axis(wanted, order, True, axis=-1)
        assert_array_equal(kernels.best_arms(scores, budget), wanted & (scores > 0))


def test_a_large_budget():
    scores = np.round(np.random.default_rng(2).uniform(-1, 1, (3, 3000)), 3)
    for budget in (17, 400, 2999):
        kept = np.argsort(-scores, axis=-1, kind="stable")[:, :budget]
        found = kernels.best_arms(scores, budget)
        for row in range(3):
            good = [arm for arm in kept[row] if scores[row, arm] > 0]
            assert_array_equal(np.flatnonzero(found[row]), np.sort(good))


def test_worth_and_matches():
    scores, draws = scores_with_ties(), np.random.default_rng(3)
    best, chosen = kernels.best_arms(scores, 4), draws.uniform(size=scores.shape) < 0.4
    value, lowest = kernels.set_worth(scores, best)
    assert_allclose(value, np.where(best, scores, 0.0).sum(axis=-1), atol=1e-14)
    assert_array_equal(lowest, np.where(best, scores, np.inf).min(axis=-1))
    certain = (chosen & (scores > lowest[:, None])).sum(axis=-1)
    level = scores == lowest[:, None]
    wanted = certain + np.minimum((chosen & level).sum(axis=-1), (best & level).sum(axis=-1))
    assert_array_equal(kernels.matches_of(scores, best, lowest, chosen), wanted)
    regret, matches = kernels.score_decision(scores, best, lowest, value, chosen)
    assert_array_equal(regret, value - kernels.set_worth(scores, chosen)[0])
    assert_array_equal(matches, wanted)


def test_what_context_adds():
    draws = np.random.default_rng(4)
    effects, context = draws.normal(size=(5, 1, 3, 2)), draws.normal(size=(5, 7, 2))
    wanted = np.einsum("anc,atc->atn", effects[:, 0], context)
    assert_allclose(kernels.added_by_context(effects, context), wanted, atol=1e-14)
    assert kernels.added_by_context(np.zeros((3, 0)), np.zeros(0)).tolist() == [0.0] * 3
