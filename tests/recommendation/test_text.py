"""What is printed: numbers with intervals, what is known alone, and the sign and the units of the table."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from spillover.recommendation.text import overview
from tests.recommendation.histories import EFFECTS, answer, history
from tests.recommendation.tables import wide


def lines(found):
    return str(found).splitlines()


def test_numbers_have_the_digits_that_their_intervals_support() -> None:
    first = lines(answer(half_width=0.2))
    assert first[0] == "Next round (2020-05-01): choose a."
    assert first[2:4] == [
        "     effect            by itself  spill-over",
        "  a  1.5 (1.2 to 1.8)  1.00       0.50",
    ]
    assert "Numbers are expected effects of choosing the arm, with 95% credible intervals." in first


def test_what_is_known_alone_is_said_where_exploration_decides() -> None:
    found = answer(index=np.array([1.0, 0.9, 2.0]), score=np.array([1.0, 0.9, 2.0]))
    assert found.choose == ["c"]
    assert found.greedy == ("a",)
    assert "By what is known alone: a." in lines(found)
    alone = answer(index=np.array([1.0, 0.9, 2.0]), score=np.array([1.0, 0.9, 2.0]), explore=False)
    assert alone.choose == ["a"]
    assert not any("By what is known alone" in line for line in lines(alone))
    assert all(arm.exploration == 0 for arm in alone.arms)


def test_arms_that_are_chosen_to_learn_are_named() -> None:
    some = answer(index=np.array([2.0, 1.0, 0.1]), score=np.array([2.0, 1.0, 0.1]), budget=2)
    assert lines(some)[0] == "Next round (2020-05-01): choose a and b (b to learn more)."
    every = answer(effects=-EFFECTS, index=np.ones(3), score=np.array([1.0, 0.2, 0.1]))
    assert lines(every)[0] == "Next round (2020-05-01): choose a to learn more."


def test_an_answer_that_is_not_clear_yet() -> None:
    found = answer(half_width=5.0)
    assert lines(found)[0] == "Next round (2020-05-01): not yet clear which arms are best; choose a to learn most."
    assert any(line.startswith("Not yet: with a probability of 0.") for line in lines(found))
    assert found.to_dict()["not_yet"]


def test_minimised_outcomes_are_reported_in_their_own_sign() -> None:
    past = history()
    found = answer(replace(past, minimise=True), half_width=0.2)
    assert "  a  -1.5 (-1.8 to -1.2)  -1.00      -0.50" in str(found)
    assert "Outcomes are minimised: negative numbers are reductions." in str(found)
    arm = found.arms[0]
    assert (arm.total, arm.effect) == pytest.approx((-1.5, -1.0))
    assert arm.outcome_when_chosen == pytest.approx(-past.y[past.x[:, 0], 0].mean())
    assert arm.least_squares_effect == pytest.approx(-1.0, abs=0.2)
    assert "Outcomes are minimised: below, positive effects are reductions." in found.explain()


def test_arms_that_limits_leave_out_have_scores_in_the_sign_of_the_table() -> None:
    table = {"week": range(12), "law_a": [1, 0, 1, 0] * 3, "law_b": [0, 1, 1, 0] * 3}
    table |= {"cases_a": [9, 15, 10, 15] * 3, "cases_b": [4, 1, 2, 4] * 3}
    found = sp.next_decision(table, budget=1, minimise=True, unavailable=["a"])
    assert found.choose == ["b"]
    (line,) = (line for line in lines(found) if line.startswith("Left out because of the constraints: a (score "))
    assert line.split("score ")[1].startswith("-")


def test_one_outcome_for_all_arms() -> None:
    past = history()
    total = np.zeros_like(past.y)
    total[:, 0] = past.y.sum(axis=1)
    found = answer(replace(past, observes="payoff", y=total), half_width=0.2)
    assert lines(found)[3] == "  a  1.5 (1.2 to 1.8)"
    assert "by itself" not in str(found)
    assert found.arms[0].outcome_when_chosen == pytest.approx(total[past.x[:, 0], 0].mean())
    assert found.warnings == []
    assert "others' difference" not in found.explain()


def test_amounts_and_context_are_said() -> None:
    past = history()
    dose = np.where(past.x, 1.0, 0.0)
    context = np.random.default_rng(0).normal(size=(len(past.x), 1))
    past = replace(
        past,
        dose=dose,
        reference_dose=np.array([1200.0, 3.0, 0.5]),
        context=context,
        context_names=("price",),
        next_context=np.array([1.25]),
    )
    found = answer(past, context_effect=np.array([0.1, 0.0, 0.0]), baseline=np.full(3, 0.2))
    assert "effects of choosing the arm at its usual amount" in str(found)
    assert "Decided for the context: price 1.25." in lines(found)
    assert any("average amount (a 1,200, b 3.00, c 0.500)" in note for note in found.notes)
    assert "context adds  baseline" in found.explain()
    assert found.arms[0].context_effect == pytest.approx(0.1)


def test_warnings_are_few_in_the_short_answer() -> None:
    wrong = EFFECTS.copy()
    wrong[1, 0] *= -1
    found = answer(history(), effects=wrong, budget=1)
    assert sum(line.startswith("Warning: ") for line in lines(found)) == 1
    assert "choosing a is said to move b by -0.500" in found.warnings[0]


def test_the_table_of_arms() -> None:
    found = answer()
    frame = found.to_frame()
    assert list(frame.index) == [arm.arm for arm in found.arms]
    content = found.to_dict()
    assert [arm["arm"] for arm in content["arms"]] == list(frame.index)
    assert content["arms"][0]["total_interval"] == pytest.approx([1.5 - 0.05 * 3**0.5, 1.5 + 0.05 * 3**0.5])
    assert content["arms"][0]["times_chosen"] == history().x[:, 0].sum()


def test_an_overview_of_a_table() -> None:
    words = str(overview(history(), "sales.csv"))
    assert words.startswith("sales.csv: 120 rounds (2020-01-01 to 2020-04-29), 3 arms; 120 rounds with outcomes.")
    assert words.endswith("Next: spillover next sales.csv --budget 1")
    assert "Can be learned:" in words
    assert "Cannot" not in words


def test_arms_that_only_exploration_chooses_are_to_learn_more() -> None:
    less = np.array([-1.0, -0.9, -2.0])
    found = answer(mean=less, index=np.array([1.0, -0.9, -2.0]), score=np.array([1.0, -0.9, -2.0]))
    assert (found.choose, found.greedy) == (["a"], ())
    assert lines(found)[0] == "Next round (2020-05-01): choose a to learn more."


# --- Tables with one outcome for all arms: clear effects are found, and intervals cover them and are not far too wi


FIVE_EFFECTS = np.array([3.0, 2.0, 1.0, 0.2, 0.0])
NAMES = ["tv", "radio", "print", "mail", "web"]


def answers(rounds, noise, tables=30, level=20.0):
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        x = rng.random((rounds, len(FIVE_EFFECTS))) < 0.4
        outcome = level + x @ FIVE_EFFECTS + noise * rng.normal(size=rounds)
        days = pd.date_range("2024-01-01", periods=rounds, freq="7D")
        yield sp.next_decision(
            pd.DataFrame({"week": days, **dict(zip(NAMES, x.T.astype(int), strict=True)), "revenue": outcome}), budget=2
        )


def test_clear_effects_are_told_apart() -> None:
    found = list(answers(rounds=60, noise=0.5))
    assert all(set(one.greedy) == {"tv", "radio"} for one in found)
    assert sum(bool(one.not_yet) for one in found) <= 1  # of 30


@pytest.mark.parametrize(("rounds", "noise"), [(20, 0.5), (60, 0.5), (60, 2.0)])
def test_intervals_cover_the_effects_and_are_not_far_too_wide(rounds, noise) -> None:
    truth = dict(zip(NAMES, FIVE_EFFECTS, strict=True))
    arms = [arm for one in answers(rounds, noise) for arm in one.arms]
    covered = [arm.total_interval[0] <= truth[arm.arm] <= arm.total_interval[1] for arm in arms]
    assert np.mean(covered) >= 0.9
    width = np.mean([arm.total_interval[1] - arm.total_interval[0] for arm in arms])
    plain = 2 * 1.96 * noise / np.sqrt(rounds * 0.4 * 0.6)  # of least squares with known noise
    assert width < 2 * plain


# --- Tables at the edge: hardly anything known, nothing that varies, extreme units. An answer, and the right headli


FRAME = wide(7, rounds=40)
CHOSEN = [column for column in FRAME if column.startswith("chosen_")]
SALES = [column for column in FRAME if column.startswith("sales_")]


def changed(columns, change):
    frame = FRAME.copy()
    frame[columns] = change(frame[columns])
    return frame


CASES = {
    "all pending": (changed(SALES, lambda part: part * np.nan), False),
    "two rounds": (FRAME.head(2), False),
    "nothing chosen": (changed(CHOSEN, lambda part: 0 * part), False),
    "everything chosen": (changed(CHOSEN, lambda part: 0 * part + 1), False),
    "constant outcomes": (changed(SALES, lambda part: 0 * part + 1.0), False),
    "one arm never chosen": (changed(CHOSEN[:1], lambda part: 0 * part), True),
    "a third missing": (changed(SALES[:1], lambda part: part.mask(np.arange(40)[:, None] % 3 == 0)), True),
    "huge": (changed(SALES, lambda part: 1e30 * part), True),
    "tiny": (changed(SALES, lambda part: 1e-30 * part), True),
}


@pytest.mark.parametrize("options", [{}, {"minimise": True}, {"explore": True}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_there_is_an_answer(name, options) -> None:
    frame, clear = CASES[name]
    found = sp.next_decision(frame, budget=2, **options)
    assert len(found.choose) <= 2
    assert str(found)
    assert found.explain()
    assert len(found.to_frame()) == len(found.to_dict()["arms"]) == 4
    if not options:
        assert (found.not_yet == ()) == clear
        assert ("not yet clear" in str(found).splitlines()[0]) == (not clear)


def test_constant_outcomes_are_warned_about() -> None:
    found = sp.next_decision(CASES["constant outcomes"][0], budget=2)
    assert any("All outcomes are always the same" in warning for warning in found.warnings)
