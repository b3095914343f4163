"""Whether the data can tell yet which arms are best."""

from dataclasses import replace

import numpy as np
import pytest

from spillover.assessment import assess
from spillover.constraints import Unavailable
from spillover.reasons import reasons
from spillover.recommendation.clarity import probability_of_wrong, unclear
from tests.assessment.worlds import table
from tests.recommendation.answers import explanation
from tests.recommendation.histories import answer, history

EFFECTS = np.diag([1.0, 0.5, 0.4])
BEST = np.array([True, False, False])


def why(x=None, y=None, *, sees_rewards=False, best=BEST, **options):
    if x is None:
        x, y, _ = table(0, arms=3, effects=EFFECTS)
    known = explanation(EFFECTS, **options)
    found = reasons(known, arms=list("abc"), budget=int(best.sum()))
    return list(unclear(found, replace(known, chosen=best), assess(x, y, arms="abc"), sees_rewards=sees_rewards))


def test_clear_where_the_best_is_known_to_be_better() -> None:
    assert why() == []


def test_intervals_that_overlap() -> None:
    (reason,) = why(half_width=2.0)
    assert reason.startswith("with a probability of 0.")
    assert reason.endswith(", another choice would bring at least a third more")


def test_the_probability_is_that_of_losing_a_quarter_of_the_best() -> None:
    known = explanation(EFFECTS, half_width=0.8 / np.sqrt(3))
    draws = np.diagonal(EFFECTS) + 0.8 / 1.96 * np.random.default_rng(1).normal(size=(200_000, 3))
    most = np.maximum(draws.max(axis=1), 0.0)
    expected = (most - draws[:, 0] > 0.25 * most).mean()
    found = probability_of_wrong(reasons(known, budget=1), replace(known, chosen=BEST))
    assert found == pytest.approx(expected, abs=0.06)


def test_errors_that_arms_share_do_not_make_the_best_unclear() -> None:
    known = explanation(EFFECTS, half_width=2.0)
    shared = replace(known, chosen=BEST, total_covariance=np.ones((3, 3)))
    assert probability_of_wrong(reasons(known, budget=1), shared, relative=True) == 0.0
    alone = replace(known, chosen=BEST, total_covariance=np.eye(3))
    assert probability_of_wrong(reasons(known, budget=1), alone, relative=True) > 0.2


def test_draws_are_as_wide_as_the_intervals() -> None:
    narrow = explanation(EFFECTS, half_width=0.3)
    wide = explanation(EFFECTS, half_width=0.9)  # as by a t distribution with few degrees of freedom
    covariance = np.eye(3) * (0.3 * np.sqrt(3) / 1.96) ** 2
    found = [
        probability_of_wrong(reasons(known, budget=1), replace(known, chosen=BEST, total_covariance=covariance))
        for known in (narrow, wide)
    ]
    assert found[0] < 0.15 < 0.25 < found[1]


def test_too_few_rounds_arms_together_and_constant_outcomes() -> None:
    x, y, _ = table(1, arms=3, effects=EFFECTS)
    assert why(x[:4], y[:4]) == ["4 rounds with outcomes for 4 unknowns"]
    assert why(x[:4], y[:4], sees_rewards=True) == []
    x[:, 1] = x[:, 0]
    (reason,) = why(x, y)
    assert reason == "a and b were always chosen together, so which of them works is not known"
    assert why(x, y, best=np.array([True, True, False])) == []
    x[:, 0] = True
    assert "a was chosen in every round" in why(x, y)
    assert why(x, np.ones_like(y))[0] == "all outcomes are the same"


def test_nothing_is_known_without_outcomes() -> None:
    x, y, _ = table(0, arms=3, effects=EFFECTS)
    assert why(np.zeros_like(x), y, known=[False] * 3) == ["no arm has an outcome yet"]
    assert why(known=[False] * 3) == []  # a policy that learns nothing


def test_arms_that_cannot_be_chosen_are_no_rivals() -> None:
    past = history(effects=np.diag([9.0, 2.0, 0.5]))
    said = {"effects": np.diag([9.0, 2.0, 0.5]), "half_width": 0.2}
    clear = answer(past, **said, constraints=[Unavailable(["a"])])
    assert (clear.greedy, clear.not_yet) == (("b",), ())
    alone = answer(past, **said, constraints=[Unavailable(["a", "c"])])
    assert (alone.greedy, alone.not_yet) == (("b",), ())
