"""From scores to a set: the exact maximiser, with random ties."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import spillover as sp
from spillover.constraints.search import best_set, top_arms


@given(
    scores=st.lists(
        st.one_of(st.sampled_from([0.0, 1.0, -1.0, np.inf, 0.5]), st.floats(-5, 5)), min_size=1, max_size=9
    ),
    budget=st.integers(1, 9),
    seed=st.integers(0, 1000),
)
def test_no_feasible_set_is_better(scores, budget, seed):
    budget = min(budget, len(scores))
    values = np.minimum(scores, 1e3)  # an infinite score is above all others
    x = top_arms(np.array(scores), budget, sp.Rng(seed))
    assert x.sum() <= budget
    assert (np.array(scores)[x] > 0).all()
    best = max(
        sum(values[list(chosen)]) for size in range(budget + 1) for chosen in combinations(range(len(scores)), size)
    )
    assert values[x].sum() == pytest.approx(best)


def test_ties_at_the_border_are_uniform_and_the_rest_is_certain():
    scores = np.array([2.0, 1.0, 3.0, 1.0, 1.0, 0.5])
    x = top_arms(np.broadcast_to(scores, (6000, 6)), 4, sp.Rng(1, np.arange(6000)))
    assert x[:, [0, 2]].all()
    assert not x[:, 5].any()
    assert (x.sum(axis=1) == 4).all()
    left_out = [int((~x[:, i]).sum()) for i in (1, 3, 4)]
    assert stats.chisquare(left_out).pvalue > 1e-3


def test_infinite_scores_tie_too():
    scores = np.array([np.inf, 5.0, np.inf, np.inf, np.inf])
    x = top_arms(np.broadcast_to(scores, (6000, 5)), 2, sp.Rng(2, np.arange(6000)))
    assert not x[:, 1].any()
    pairs = [int((x[:, a] & x[:, b]).sum()) for a, b in combinations((0, 2, 3, 4), 2)]
    assert sum(pairs) == 6000
    assert stats.chisquare(pairs).pvalue > 1e-3


def test_a_budget_for_each_learner():
    scores = np.tile([4.0, 3.0, 2.0, 1.0], (3, 1))
    x = top_arms(scores, np.array([1, 2, 4]), sp.Rng(0, np.arange(3)))
    np.testing.assert_array_equal(x.sum(axis=1), [1, 2, 4])
    np.testing.assert_array_equal(x[1], [True, True, False, False])


def test_a_budget_of_nothing_chooses_nothing():
    scores = np.array([0.1, 0.5, -1.0])
    assert not best_set(scores, 0).any()
    np.testing.assert_array_equal(top_arms(np.tile(scores, (2, 1)), np.array([0, 1]), sp.Rng(0)).sum(axis=1), [0, 1])
    with pytest.raises(ValueError, match="budget = -1: must be whole numbers >= 0"):
        best_set(scores, -1)


def test_one_learner_chooses_as_its_row_of_a_batch():
    scores = np.zeros((5, 8)) + 1.0
    together = top_arms(scores, 3, sp.Rng(9, np.arange(5)))
    for k in range(5):
        np.testing.assert_array_equal(together[k], top_arms(scores[k], 3, sp.Rng(9, k)))


@pytest.mark.parametrize("budget", [16, 17, 40, 100, 300])
@pytest.mark.parametrize("kind", ["random", "rising", "ties", "tiny", "infinite", "negative"])
def test_the_best_of_many_are_those_of_a_sort(kind, budget):
    drawn = np.random.default_rng(budget).standard_normal(300)
    scores = {
        "random": np.abs(drawn),
        "rising": np.sort(np.abs(drawn)),
        "ties": np.round(np.abs(drawn)),
        "tiny": np.abs(drawn) * 1e-310,
        "infinite": np.where(drawn > 0.5, np.inf, np.abs(drawn)),
        "negative": drawn - 1.0,
    }[kind]
    x = top_arms(scores, budget, sp.Rng(1))
    best = np.sort(scores)[::-1][:budget]
    np.testing.assert_array_equal(np.sort(scores[x])[::-1], best[best > 0])


@pytest.mark.parametrize("budget", [10, 32, 100, 1500])
@pytest.mark.parametrize(
    "kind", ["equal", "two", "rising", "falling", "organ pipe", "neighbours", "high", "low", "wide"]
)
def test_the_best_of_thousands_are_those_of_a_sort(kind, budget):
    """Inputs on which selection by samples or by digits has the most to do: one in 32 scores is a sample."""
    n = 4_000
    rising, sampled = np.arange(1, n + 1) / n, np.arange(n) % 32 == 0
    scores = {
        "equal": np.full(n, 0.5),
        "two": np.arange(n) % 2 + 1.0,
        "rising": rising,
        "falling": rising[::-1],
        "organ pipe": np.minimum(rising, rising[::-1]),
        "neighbours": 1.0 + np.arange(n) * 2.0**-52,
        "high": np.where(sampled, 1.0 + rising, rising),
        "low": np.where(sampled, 1e-3 * rising, 1.0 + rising),
        "wide": 2.0 ** np.linspace(-1000, 1000, n),
    }[kind]
    x = top_arms(scores, budget, sp.Rng(1))
    np.testing.assert_array_equal(np.sort(scores[x])[::-1], np.sort(scores)[::-1][:budget])
