"""Rounds as people write them: order, labels, the next one."""

import pytest

from spillover.history.rounds import AskOrder, calendar, parse_rounds


@pytest.mark.parametrize(
    ("texts", "labels", "following"),
    [
        (["2026-02", "2026-01", "2026-03"], ("2026-01", "2026-02", "2026-03"), "2026-04"),
        (["Jan 2026", "December 2025"], ("2025-12", "2026-01"), "2026-02"),
        (["2025M12", "2026M01"], ("2025-12", "2026-01"), "2026-02"),
        (["12/2025", "1/2026"], ("2025-12", "2026-01"), "2026-02"),
        (["2026Q1", "2025Q4"], ("2025Q4", "2026Q1"), "2026Q2"),
        (["Q3 2025", "Q4 2025"], ("2025Q3", "2025Q4"), "2026Q1"),
        (["2026-Q1", "2026 q2"], ("2026Q1", "2026Q2"), "2026Q3"),
        (["2025-W52", "2026-W01"], ("2025-W52", "2026-W01"), "2026-W02"),
        (["2020-W53", "2020-W52"], ("2020-W52", "2020-W53"), "2021-W01"),
        (["KW 5 2026", "KW 6 2026"], ("2026-W05", "2026-W06"), "2026-W07"),
        (["1999", "2001", "2000"], ("1999", "2000", "2001"), "2002"),
        (["31/01/2026", "01/02/2026", "02/02/2026"], ("2026-01-31", "2026-02-01", "2026-02-02"), "2026-02-03"),
        (["01/31/2026", "02/01/2026", "02/02/2026"], ("2026-01-31", "2026-02-01", "2026-02-02"), "2026-02-03"),
        (["5.1.2026", "6.1.2026", "7.1.2026"], ("2026-01-05", "2026-01-06", "2026-01-07"), "2026-01-08"),
        (["30.12.25", "31.12.25", "01.01.26"], ("2025-12-30", "2025-12-31", "2026-01-01"), "2026-01-02"),
        (["2026/1/5", "2026/1/6", "2026/1/7"], ("2026-01-05", "2026-01-06", "2026-01-07"), "2026-01-08"),
        (["5 Jan 2026", "Jan 6, 2026", "07-Jan-2026"], ("2026-01-05", "2026-01-06", "2026-01-07"), "2026-01-08"),
        (["2026-01"], ("2026-01",), "2026-02"),
        (["Jan-26", "Dec-25", "Feb-26"], ("2025-12", "2026-01", "2026-02"), "2026-03"),
        (["Jan '26", "Feb '26"], ("2026-01", "2026-02"), "2026-03"),
        (["1-Jan-26", "2-Jan-26", "31-Dec-25"], ("2025-12-31", "2026-01-01", "2026-01-02"), "2026-01-03"),
        (["Week 10", "Week 9"], ("9", "10"), "11"),
        (["KW2", "KW1"], ("1", "2"), "3"),
    ],
)
def test_rounds_are_ordered_and_the_next_one_is_named(texts, labels, following) -> None:
    found = calendar(texts)
    assert (found.labels, found.following) == (labels, following)
    assert (found.rank >= 0).all()


def test_day_and_month_are_asked_for_if_no_value_settles_their_order() -> None:
    texts = ["05/01/2026", "06/01/2026"]
    with pytest.raises(AskOrder):
        parse_rounds(texts)
    assert calendar(texts, "day-first").labels == ("2026-01-05", "2026-01-06")
    assert calendar(texts, "month-first").labels == ("2026-05-01", "2026-06-01")


@pytest.mark.parametrize(
    "texts",
    [
        [f"{month}-{day:02d}" for month in ("Jan", "Feb") for day in (2, 9, 16, 23)],
        [f"Mar-{day:02d}" for day in range(1, 32)],
        ["Dec-19", "Dec-20", "Dec-21"],
        ["Week 1", "Day 2"],
    ],
)
def test_a_month_with_a_number_that_may_be_the_day_is_not_guessed(texts) -> None:
    assert (calendar(texts).rank == -1).all()


@pytest.mark.parametrize(
    "texts", [["2026-01", "soon"], ["2026Q1", "2026Q5"], ["2026-W01", "2026-W60"], ["31/02/2026", "30/01/2026"]]
)
def test_a_cell_that_is_none_has_no_rank(texts) -> None:
    assert sorted(calendar(texts).rank.tolist()) == [-1, 0]


def test_missing_months_are_noted_as_gaps() -> None:
    (note,) = calendar(["2026-01", "2026-02", "2026-03", "2026-06"]).notes
    assert note.startswith("a gap between the rounds, from 2026-03 to 2026-06, where 1 month is usual")
