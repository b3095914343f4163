"""Tables as strangers export them: words in dates, empty decisions, titles, totals, cells that cannot be read."""

import numpy as np
import pandas as pd
import pytest

from spillover.history import read_history
from tests.history.tables import PAYOFF, WEEKS, WIDE, changed, csv_text, in_format, refused, without


@pytest.mark.parametrize(
    ("part", "cells", "first", "following"),
    [
        ("Month", ["Oct", "November", "Dec", "1", "Feb", "Mar", "Apr", "May"], "2025-10", "2026-06"),
        ("Quarter", ["Q4", "Q4", "Q4", "Q1", "Q1", "Q1", "Q1", "Q1"], "2020Q4", "2028Q1"),
        ("Week", ["W50", "W51", "W52", "W1", "W2", "W3", "W4", "W5"], "2025-W50", "2026-W06"),
    ],
)
def test_parts_of_a_year_may_be_written_with_words(part, cells, first, following) -> None:
    years = range(2020, 2028) if part == "Quarter" else [2025] * 3 + [2026] * 5
    table = {"Year": list(years), part: cells, **without(WIDE, "week", "temp")}
    found = read_history(table)
    assert (found.rounds[0], found.following, found.arms) == (first, following, ("north", "south"))


def test_rounds_that_cannot_be_read_are_not_replaced_by_the_order_of_rows() -> None:
    table = changed(WIDE, week=[f"stage {letter}" for letter in "abcdefgh"])
    refused(table, "week = 'stage a': must be a whole number", "--columns round=")
    assert read_history(table, columns="round=").rounds == tuple("12345678")


def test_rows_in_their_order_are_said() -> None:
    said = "no column of rounds: the rows are taken in their order"
    assert said in read_history(without(WIDE, "week")).notes
    assert said not in read_history(without(WIDE, "week"), columns="round=").notes
    assert said not in read_history(WIDE).notes


@pytest.mark.parametrize("form", ["csv", "xlsx", "pandas", "polars"])
def test_empty_decisions_mean_no_where_nothing_else_does(form, tmp_path) -> None:
    marks = {name: [value or None for value in WIDE[name]] for name in ("promo_north", "promo_south")}
    found = read_history(in_format(changed(WIDE, **marks), form, tmp_path))
    np.testing.assert_array_equal(found.x, read_history(WIDE).x)
    assert "8 empty decisions taken as not chosen: no other cell says so" in found.notes
    coming = {
        name: [*values, "2026-W09" if name == "week" else None] for name, values in changed(WIDE, **marks).items()
    }
    assert read_history(coming).following == "2026-W09"
    assert len(read_history(coming).rounds) == 8
    one_no = changed(WIDE, **marks | {"promo_south": [0, *marks["promo_south"][1:]]})
    refused(one_no, "7 decisions missing although there is an outcome")


def test_empty_decisions_of_columns_with_plain_names() -> None:
    marks = {name: [value or None for value in PAYOFF[name]] for name in ("tv", "radio")}
    found = read_history(changed(PAYOFF, **marks))
    assert found.arms == ("radio", "tv")
    np.testing.assert_array_equal(found.x, read_history(PAYOFF).x)


def test_an_outcome_may_be_yes_or_no() -> None:
    table = changed(PAYOFF, revenue=["yes", "no", "yes", None, "no", "Y", "N", "yes"])
    found = read_history(table, columns="outcome=revenue")
    assert found.y[found.arrived, 0].tolist() == [1, 0, 1, 0, 1, 0, 1]
    refused(changed(PAYOFF, revenue=["yes"] * 8), "revenue = 'yes': must be", columns="outcome=revenue")


def test_amounts_without_telling_names_are_asked_for_with_a_line_to_paste() -> None:
    spend = changed(PAYOFF, tv=[10, 0, 5, 3, 8, 0, 2, 1], radio=[0, 4, 3, 0, 2, 1, 7, 9])
    line = "--columns 'dose=tv;radio'"
    refused(spend, line, doses=True)
    refused(spend, line)
    assert read_history(spend, columns="dose=tv;radio").arms == ("radio", "tv")


def test_titles_above_the_column_names_are_recognised(tmp_path) -> None:
    path = tmp_path / "report.csv"
    path.write_text("Report" + "," * (len(WIDE) - 1) + "\n" + csv_text(WIDE))
    refused(path, "5 of 6 columns have no name: the first line must have the column names")


def test_other_sheets_are_named(tmp_path) -> None:
    path = tmp_path / "book.xlsx"
    notes = pd.DataFrame({"Notes": ["see the other sheet", "by me"]})
    for first, second, names in ((notes, pd.DataFrame(WIDE), ("Read me", "Data")), (pd.DataFrame(WIDE), notes, "AB")):
        with pd.ExcelWriter(path) as book:
            first.to_excel(book, sheet_name=names[0], index=False)
            second.to_excel(book, sheet_name=names[1], index=False)
        if first is notes:
            refused(path, "sheet 'Read me' (only the first sheet is read; there are also: 'Data')")
    assert read_history(path).notes[0] == "sheet 'A' is read, the first one that has cells; not used: 'B'"


def test_names_in_levels_are_joined() -> None:
    frame = pd.DataFrame(without(WIDE, "temp")).set_index("week")
    for order in (1, -1):
        levels = frame.set_axis(
            pd.MultiIndex.from_tuples([tuple(c.split("_")[::order]) for c in frame.columns]), axis=1
        )
        for table in (levels, levels.reset_index()):
            found = read_history(table)
            assert (found.arms, found.rounds) == (("north", "south"), tuple(WEEKS))
            np.testing.assert_array_equal(found.y, read_history(WIDE).y)


def test_a_table_without_anything_is_refused_in_one_line() -> None:
    assert len(refused(pd.DataFrame(), "table: is empty: must have a row for each round")) == 1


@pytest.mark.parametrize("key", ["promo", "on", "treated"])
@pytest.mark.parametrize(("cell", "said"), [("planned", "'planned': must be 1 or 0"), (2, "2: must be 1 or 0")])
def test_a_decision_that_cannot_be_read_is_reported_and_its_arm_not_left_out(key, cell, said) -> None:
    table = {name.replace("promo", key): values for name, values in without(WIDE, "temp").items()}
    table |= {f"{key}_west": [0, 1, 0, 1, 1, 0, cell, 0], "sales_west": WIDE["sales_south"]}
    refused(table, said)


def test_amounts_that_cannot_be_read_are_reported() -> None:
    spend = changed(PAYOFF, tv_spend=[10, 0, 5, 3, 8, 0, 2, 1], radio_spend=[0, 4, 3, 0, 2, 1, 7, -9])
    spend |= {"mail_spend": [1, 2, 0, 0, 3, "n/k", 2, 0], "web_spend": spend["tv_spend"][::-1]}
    refused(without(spend, "tv", "radio"), "radio_spend = -9: must be", "mail_spend = 'n/k': must be", doses=True)


def test_an_outcome_that_cannot_be_read_is_reported() -> None:
    table = changed(WIDE, promo_west=WIDE["promo_south"], sales_west=["5k", "1k", "6k", "2k", "5k", "1k", "1k", "6k"])
    refused(table, "sales_west = '5k': must be")


@pytest.mark.parametrize("name", ["sales_total", "Total", "sales_all", "turnover"])
def test_totals_are_neither_arms_nor_context(name) -> None:
    total = [a + b for a, b in zip(WIDE["sales_north"], WIDE["sales_south"], strict=True)]
    found = read_history({**without(WIDE, "temp"), name: total})
    assert found.arms == ("north", "south")
    np.testing.assert_array_equal(found.y, read_history(WIDE).y)
    assert f"columns not used: {name}" in found.notes


def test_one_question_about_commas_for_all_columns() -> None:
    table = changed(WIDE, sales_north=["1,200"] * 4 + ["1,300"] * 4, sales_south=["2,200"] * 8)
    lines = refused(table, "(16 like this", "--decimal point or --decimal comma")
    assert len(lines) == 1
