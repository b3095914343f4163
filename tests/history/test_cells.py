"""Numbers, yes and no, as people write them; what is not clear is not guessed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillover.history.cells import Unclear, parse_flags, parse_numbers, take_apart
from spillover.history.columns import STAR, Item, as_wanted, read_columns, read_names, write_columns
from spillover.history.rounds import AskOrder, calendar, parse_rounds


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "2.5", "-3", "+4", ".5", "1e3", "2E-2"], [1, 2.5, -3, 4, 0.5, 1000, 0.02]),
        (["", "NA", "NaN", "null", "-", "n/a", "#N/A", "none", "7"], [math.nan] * 8 + [7]),
        (["45%", "0%", "5.5 %"], [0.45, 0, 0.055]),
        (["1,234.5", "12"], [1234.5, 12]),
        (["1.234,5", "12"], [1234.5, 12]),
        (["1,234,567"], [1234567]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["0,5", "1,234"], [0.5, 1.234]),
        (["0.5", "1,234"], [0.5, 1234]),
        (["1 234", "1\u00a0234\u00a0567", "12 345.5"], [1234, 1234567, 12345.5]),
        (["1'234.50", "5"], [1234.5, 5]),
        (["$ 5", "$1,200.50", "-$3"], [5, 1200.5, -3]),
        (["5 €", "7,50€"], [5, 7.5]),
        (["EUR 5", "6 eur"], [5, 6]),
        (["(1,200.5)", "3"], [-1200.5, 3]),
        (["−5", "2"], [-5, 2]),
        (["1.234", "2.500"], [1.234, 2.5]),
    ],
)
def test_numbers_are_read_as_they_are_meant(texts, values) -> None:
    found = parse_numbers(texts)
    assert isinstance(found, np.ndarray), found
    np.testing.assert_allclose(found, values)


@pytest.mark.parametrize(
    ("texts", "bad", "words"),
    [
        (["1,234", "2"], ("1,234",), "clear whether it is 1234 or 1.234: say which with --decimal point"),
        (["45%", "0.4"], ("0.4",), "written with a percent sign"),
        (["$5", "€6"], ("€6",), "in one currency; there are $ and €"),
        (["1", "lots", "few"], ("lots", "few"), "a finite number"),
        (["1,5", "1.5"], ("1,5",), "a finite number with a decimal point"),
        (["1e999"], ("1e999",), "a finite number"),
        (["12,34,567.5"], ("12,34,567.5",), "a finite number"),
    ],
)
def test_what_is_unclear_is_quoted_with_what_is_accepted(texts, bad, words) -> None:
    found = parse_numbers(texts)
    assert isinstance(found, Unclear)
    assert found.texts == bad
    assert words in found.accepted


@pytest.mark.parametrize("text", ["1_000", "0x10", "inf", "1.2.3", "1,,2", "--1", "5%%", "€5€", "(5", "1 2", "1e", "%"])
def test_other_texts_are_no_numbers(text) -> None:
    assert isinstance(parse_numbers([text]), Unclear), take_apart(text)


@pytest.mark.parametrize(
    ("text", "point", "elsewhere", "value"),
    [("1,234", ".", "", 1234.0), ("1,234", ",", "", 1.234), ("1,234", None, ",", 1.234), ("1.234", None, ",", 1234.0)],
)
def test_the_rest_of_the_table_or_the_user_settles_what_a_comma_means(text, point, elsewhere, value) -> None:
    found = parse_numbers([text], point, frozenset(elsewhere))
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [value]


@given(st.lists(st.floats(-1e9, 1e9).map(lambda v: round(v, 2)), min_size=1), st.sampled_from("., '"), st.booleans())
def test_any_number_survives_its_decoration(values, separator, euro) -> None:
    point = "," if separator == "." else "."
    texts = [f"{value:,.2f}".replace(",", "\0").replace(".", point).replace("\0", separator) for value in values]
    texts = [f"€{text}" if euro and not text.startswith("-") else text for text in texts]
    found = parse_numbers(texts)
    assert isinstance(found, np.ndarray), (texts, found)
    np.testing.assert_allclose(found, values, rtol=1e-12)


@pytest.mark.parametrize(
    ("texts", "flags"),
    [
        (["Y", "n", "NA"], [1, 0, -1]),
        (["TRUE", "False"], [1, 0]),
        (["x", "", "X"], [1, 0, 1]),
        (["1", ""], [1, -1]),
        (["1.0", "0.0"], [1, 0]),
        (["treatment", "control"], [1, 0]),
        (["1", "2"], None),
        (["", "NA"], None),
        (["yes", "maybe"], None),
    ],
)
def test_yes_and_no(texts, flags) -> None:
    found = parse_flags(texts)
    assert flags == (None if found is None else found.tolist())


# --- `--columns`: what is written is read back, whatever the names --------------------------------------------------


NAMES = st.text(st.characters(exclude_characters=STAR, exclude_categories=["Cs"]), min_size=1)
ITEMS = st.lists(st.builds(Item, NAMES, st.none() | NAMES), min_size=1, max_size=4).map(tuple)


@given(st.fixed_dictionaries({"chosen": ITEMS, "outcome": ITEMS, "context": ITEMS}), NAMES, NAMES)
def test_any_names_are_read_back(items, start, end) -> None:
    wanted = items | {"dose": (Item(f"{start}{STAR}{end}"),)}
    names = [item.name.casefold() for role in ("chosen", "outcome") for item in wanted[role]]
    if len(set(names)) == len(names):
        assert read_columns(write_columns(wanted)) == {
            role: wanted[role] for role in ("chosen", "dose", "outcome", "context")
        }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rund=day", "did you mean round?"),
        ("day", "must be pairs"),
        ("arm=a;b", "arm has 2 columns"),
        ("arm=", "arm has 0 columns"),
        ("round=a,round=b", "must be pairs"),
        ('round="a', "must close every quote"),
        ("chosen=a*b*", "one asterisk"),
        ("y=a,outcome=b", "not both"),
        ("chosen=a,outcome=A", "'a' is chosen and outcome"),
    ],
)
def test_what_is_wrong_is_said(text, words) -> None:
    with pytest.raises(ValueError, match="columns") as caught:
        read_columns(text)
    assert words in str(caught.value)


def test_other_forms_mean_the_same() -> None:
    expected = read_columns("round=day,chosen=promo.*,outcome=a;b")
    assert as_wanted({"round": "day", "chosen": "promo.*", "outcome": ["a", "b"]}) == expected
    assert as_wanted({"chosen": {"tv": "spend 1"}}) == {"chosen": (Item("spend 1", "tv"),)}
    assert as_wanted(expected) == expected
    assert read_names('price.*,"a, b"; temp') == (Item(f"price.{STAR}"), Item("a, b"), Item("temp"))


# --- Rounds as people write them: their order, what the next one is called, and what is said of gaps ----------------


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


@pytest.mark.parametrize(
    "texts",
    [
        ["9999-12-29", "9999-12-30", "9999-12-31"],
        ["9999-10-31", "9999-11-30", "9999-12-31"],
        ["9999-10-01", "9999-11-01", "9999-12-01"],
    ],
)
def test_there_is_no_round_after_the_last_year(texts) -> None:
    found = calendar(texts)
    assert found.following is None
    assert found.labels == tuple(texts)
