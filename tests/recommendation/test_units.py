"""Own rewards and outcomes in different units: an answer says so."""

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from tests.recommendation.tables import TABLES, example


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
