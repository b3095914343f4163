"""Rounds in their order, what the next one is called, and what is said of gaps."""

import numpy as np
import pytest

from spillover.history.rounds import calendar


@pytest.mark.parametrize(
    ("rounds", "following"),
    [
        (["1", "2", "3"], "4"),
        (["10", "20", "30"], "40"),
        (["7"], "8"),
        (["2026-01-05", "2026-01-12", "2026-01-19"], "2026-01-26"),
        (["2026-02-26", "2026-02-27", "2026-02-28"], "2026-03-01"),
        (["2025-10-15", "2025-11-15", "2025-12-15"], "2026-01-15"),
        (["2025-11-30", "2025-12-31", "2026-01-31"], "2026-02-28"),
        (["2025-01-01", "2025-04-01", "2025-07-01", "2025-10-01"], "2026-01-01"),
        (["2026-01-01 00:00", "2026-01-01 06:00", "2026-01-01 12:00"], "2026-01-01 18:00:00"),
        ([f"2026-01-01T0{hour}:00:00+01:00" for hour in range(3)], "2026-01-01 03:00:00+01:00"),
    ],
)
def test_regular_rounds_have_a_next_one_and_no_notes(rounds, following) -> None:
    found = calendar(rounds)
    assert found.following == following
    assert found.notes == ()
    assert found.rank.tolist() == list(range(len(rounds)))


def test_any_order_and_two_spellings() -> None:
    found = calendar(["3", "1", "02", "2.0", "1"])
    assert found.rank.tolist() == [2, 0, 1, 1, 0]
    assert found.labels == ("1", "2", "3")


def test_weekends_are_gaps_and_the_next_date_is_not_guessed() -> None:
    days = [str(day) for day in np.arange("2026-01-05", "2026-01-24", dtype="datetime64[D]")]
    work = [day for k, day in enumerate(days) if k % 7 < 5]
    found = calendar(work)
    assert found.following is None
    (note,) = found.notes
    assert note.startswith("2 gaps between the rounds, the first from 2026-01-09 to 2026-01-12, where 1 day is usual")


def test_numbers_that_look_like_dates_are_noted() -> None:
    gap, dashes = calendar(["20260130", "20260131", "20260201"]).notes
    assert "from 20260131 to 20260201" in gap
    assert dashes.endswith("dates must be written like 2026-01-30")


def test_unreadable_rounds_have_no_rank() -> None:
    assert calendar(["1", "soon", "1_000", "2.5", "2"]).rank.tolist() == [0, -1, -1, -1, 1]


@pytest.mark.parametrize("rounds", [["1", "2026-01-01"], ["2026-01-01T00:00", "2026-01-01T01:00+01:00"]])
def test_kinds_that_have_no_order_are_refused(rounds) -> None:
    with pytest.raises(TypeError):
        calendar(rounds)
