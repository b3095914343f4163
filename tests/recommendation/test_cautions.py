"""Each warning where it must be, and not where it must not."""

import numpy as np
import pytest

from tests.recommendation.answers import said

TRUTH = np.array([[0.8, 0.0, 0.3], [0.0, 0.6, 0.0], [-0.4, 0.0, 0.7]])


def codes(found):
    return [finding.code for finding in found if finding.warning]


def one(found, code):
    (finding,) = [finding for finding in found if finding.code == code]
    return finding


def test_estimates_that_the_data_confirm_are_not_warned_about() -> None:
    assert said(TRUTH) == []


@pytest.mark.parametrize(
    ("place", "words"),
    [((2, 0), "choosing a is said to move c by 0.4"), ((1, 1), "b is said to add to itself -0.6")],
)
def test_a_sign_that_the_data_contradict(place, words) -> None:
    claimed = TRUTH.copy()
    claimed[place] *= -1
    finding = one(said(claimed, truth=TRUTH), "contradicted")
    assert finding.warning
    assert words in finding.sentence
    assert "abc"[place[1]] in finding.arms


def test_minimised_outcomes_are_written_in_the_sign_of_the_table() -> None:
    claimed = TRUTH.copy()
    claimed[1, 1] *= -1
    assert "b is said to add to itself 0.6" in one(said(claimed, truth=TRUTH, sign=-1.0), "contradicted").sentence


def test_a_wide_interval_contradicts_nothing() -> None:
    claimed = TRUTH.copy()
    claimed[2, 0] *= -1
    assert codes(said(claimed, truth=TRUTH, half_width=3.0)) == []


def test_spill_over_larger_than_anything_seen() -> None:
    claimed = TRUTH.copy()
    claimed[0, 2] = 10.0
    finding = one(said(claimed, truth=TRUTH), "impossible-spill-over")
    assert finding.arms == ("c",)
    assert "The spill-over of c, 10.0, is larger than the largest outcome of all other arms" in finding.sentence


def test_changes_that_the_policy_noticed() -> None:
    assert codes(said(TRUTH, signals={"changes_seen": np.array(2)})) == ["changes"]
    assert codes(said(TRUTH, signals={"changes_seen": np.array(0)})) == []


def test_a_baseline_is_said_where_it_is_fitted_and_warned_about_where_not() -> None:
    fitted = one(said(TRUTH, level=2.0, baseline=np.full(3, 2.0)), "baseline")
    assert not fitted.warning
    assert "Effects are what comes on top of this baseline." in fitted.sentence
    assert said(TRUTH, baseline=np.full(3, 0.001)) == []
    finding = one(said(TRUTH, level=2.0), "baseline")
    assert finding.warning
    assert "does not fit such a baseline" in finding.sentence


def test_too_few_rounds() -> None:
    assert "too-few-rounds" in codes(said(TRUTH, rounds=4))


@pytest.mark.long
def test_false_alarms_are_rare() -> None:
    """On 200 clean tables, with estimates that are off by what their intervals say."""
    rng = np.random.default_rng(0)
    alarms = []
    for seed in range(200):
        truth = np.diag(rng.uniform(0.2, 1.0, 4)) + np.where(rng.random((4, 4)) < 0.2, rng.normal(0, 0.4, (4, 4)), 0.0)
        claimed = truth + 0.1 / 1.96 * rng.normal(size=truth.shape)
        alarms.append(codes(said(claimed, truth=truth, seed=seed, rounds=80, half_width=0.1)))
    assert sum(map(bool, alarms)) <= 2
