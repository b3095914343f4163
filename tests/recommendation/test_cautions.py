"""Each warning where it must be, and not where it must not."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from tests.assessment.worlds import days, months
from tests.recommendation.answers import said
from tests.recommendation.tables import TABLES, example

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


# --- Own rewards and outcomes in different units: an answer says so -------------------------------------------------


def warned(frame, **options):
    found = sp.next_decision(frame, budget=2, **options)
    return [caution.sentence for caution in found.cautions if caution.code == "units-differ"], found.warnings


@pytest.mark.parametrize("policy", ["switching-sem", "ndc-sem", "cucb"])
@pytest.mark.parametrize(("unit", "words"), [(1000.0, "about 1,000 of its own y"), (0.1, "about 0.100 of its own y")])
def test_an_outcome_in_other_units_is_said_whatever_the_policy(policy, unit, words) -> None:
    frame = example()
    frame["y"] *= unit
    (sentence,), warnings = warned(frame, policy=policy)
    assert words in sentence
    assert [line for line in warnings if "different units" in line] == [sentence]  # not again by the policy's health


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_noise_and_a_baseline_do_not_hide_it(noise) -> None:
    frame = example()
    known = frame["y"].notna()
    drawn = np.random.default_rng(0).normal(size=int(known.sum()))
    frame.loc[known, "y"] = 100 * (frame.loc[known, "y"] + 0.5 + noise * drawn)
    (sentence,), _ = warned(frame)
    assert "different units" in sentence


@pytest.mark.parametrize("unit", [1.0, 1.6, 0.7])
def test_direct_effects_near_1_are_no_other_units(unit) -> None:
    frame = example()
    frame["y"] *= unit
    assert warned(frame)[0] == []


@pytest.mark.parametrize("name", TABLES)
def test_tables_in_one_unit_get_no_such_warning(name) -> None:
    frame, given = TABLES[name]
    assert warned(frame, **given)[0] == []


def test_nothing_is_said_of_a_few_rounds() -> None:
    frame = example()
    frame["y"] *= 1000
    first = sorted(frame["round"].unique())[:12]
    assert warned(frame[frame["round"].isin(first)])[0] == []


def test_arms_that_were_chosen_together_once_are_not_told_apart() -> None:
    """Two of three arms have one reward, in the same round: the square of the design has no inverse."""
    z = np.zeros((14, 3))
    z[0], z[6:8, 2], z[13, 2] = (0.133, 0.0, 0.973), (0.2643028934016311, 0.2813254981702093), 0.2723352353685064
    y = z + 0.2 * z.sum(axis=1, keepdims=True)
    rows = [
        {"round": t, "arm": arm, "chosen": int(z[t, arm] > 0), "z": z[t, arm] or None, "y": y[t, arm]}
        for t in range(14)
        for arm in range(3)
    ]
    assert warned(pd.DataFrame(rows))[0] == []


# --- How often each warning is wrong: on 200 clean simulated tables, half with own rewards z and half without -------


ALLOWED = {"mostly-exploration", "arms-idle"}  # true of these tables: choices are random, few arms are certain


def clean_table(seed, with_z):
    """Random decisions in a stationary world: a sparse graph, a baseline (without z), noise; dated rounds."""
    rng = np.random.default_rng(seed)
    n, rounds = int(rng.integers(3, 9)), int(rng.integers(60, 200))
    graph = np.triu(np.where(rng.random((n, n)) < 0.25, rng.uniform(0.2, 0.6, (n, n)), 0.0), 1)
    reach = np.linalg.inv(np.eye(n) - graph)
    x = rng.random((rounds, n)) < rng.uniform(0.25, 0.6)
    beta = rng.uniform(0.2, 0.9, n)
    z = np.where(x, rng.beta(5 * beta, 5 * (1 - beta), (rounds, n)), 0.0)
    level, noise = (0.0, 0.0) if with_z else (rng.uniform(0, 2), 0.3)
    y = (z + level + noise * rng.normal(size=(rounds, n))) @ reach.T
    labels = days(rounds) if seed % 2 else months(rounds)
    cells = {"round": np.repeat(labels, n), "arm": np.tile([f"arm {j}" for j in range(n)], rounds)}
    cells |= {"chosen": x.ravel().astype(int), "y": y.ravel()}
    if with_z:
        cells["z"] = np.where(x, z, np.nan).ravel()
    return pd.DataFrame(cells)


def alarms(found):
    codes = [finding.code for finding in found.cautions if finding.warning]
    return {*codes, *(signal.code for signal in found.reasons.health if signal.warning)} - ALLOWED


@pytest.mark.long
def test_warnings_are_rarely_wrong() -> None:
    count: Counter[str] = Counter()
    for seed in range(200):
        count.update(alarms(sp.next_decision(clean_table(seed, with_z=seed % 4 < 2), budget=2)))
    assert all(times <= 4 for times in count.values()), count
