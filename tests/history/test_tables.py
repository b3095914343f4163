"""Tables as people have them: what each column is taken for, what is asked, what is said of missing cells."""

import io
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

import spillover as sp
from spillover.history import read_history
from spillover.recommendation.text import overview
from tests.history.tables import LONG, PAYOFF, WIDE, changed, csv_text, in_format, refused, without


def taken(history):
    return {column.column: (column.meaning, column.reason) for column in history.taken}


def test_a_wide_table_with_an_outcome_for_each_arm() -> None:
    found = read_history(WIDE)
    assert (found.arms, found.observes, found.following) == (("north", "south"), "overall", "2026-W09")
    assert found.x[:, 0].tolist() == [bool(cell) for cell in WIDE["promo_north"]]
    assert found.y[:, 1].tolist() == WIDE["sales_south"]
    assert found.columns_option == "--columns 'round=week,chosen=promo_*,outcome=sales_*'"
    assert taken(found)["promo_north"] == ("chosen", "by its name")
    assert found.notes == ("not used, but could be context if known before the decision: temp (--context temp)",)
    assert found.has_baseline
    assert found.outcome_names == ("sales_north", "sales_south")


def test_a_wide_table_with_one_outcome() -> None:
    found = read_history(PAYOFF)
    assert (found.arms, found.observes) == (("radio", "tv"), "payoff")
    assert found.y[:, 0].tolist() == PAYOFF["revenue"]
    assert not found.y[:, 1].any()
    assert taken(found)["tv"] == ("chosen", "by its content: only 0 and 1 (or yes and no)")
    assert found.outcome_names == ("revenue",)


def test_a_column_that_names_an_arm_is_an_outcome_of_0_and_1() -> None:
    table = without(WIDE, "sales_north", "sales_south") | {"choice": ["north", "south"] * 4}
    found = read_history(table)
    assert found.observes == "overall"
    assert found.y.tolist() == [[1.0, 0.0], [0.0, 1.0]] * 4
    assert taken(found)["choice"] == ("outcome", "by its content: its values are the arms")


def test_outcomes_of_arms_whose_names_are_numbers_are_numbers() -> None:
    table = {"week": WIDE["week"], "law_0": [1, 0] * 4, "law_1": [1, 1, 0, 0] * 2}
    found = read_history(table | {"cases_0": [0, 1, 1, 0] * 2, "cases_1": [1, 3, 2, 0] * 2})
    assert found.outcome_names == ("cases_0", "cases_1")
    assert found.y.tolist() == [[0, 1], [1, 3], [1, 2], [0, 0]] * 2


def test_a_log_of_one_decision_and_one_reward() -> None:
    found = read_history({"t": [1, 2, 3, 4], "action": ["a", "b", "a", "c"], "reward": [1, 0, 1, 0.5]})
    assert (found.arms, found.observes) == (("a", "b", "c"), "payoff")
    assert found.x.astype(int).tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    found = read_history({"t": [1, 2, 3, 4], "action": ["a", "none", "b", ""], "reward": [1, 0, 1, None]})
    assert found.x.astype(int).tolist() == [[1, 0], [0, 0], [0, 1]]
    assert found.following == "4"


def test_a_long_table() -> None:
    found = read_history(LONG)
    assert (found.arms, found.observes, found.following) == (("north", "south"), "overall", "2026-01-09")
    assert found.columns_option == "--columns round=date,arm=region,chosen=treated,outcome=orders"
    assert {reason for _, reason in taken(found).values()} == {"by its name"}


def test_an_outcome_that_is_the_same_for_all_arms_is_that_of_the_round() -> None:
    found = read_history(changed(LONG, orders=[value for value in PAYOFF["revenue"] for _ in "ns"]))
    assert found.observes == "payoff"
    assert found.y[:, 0].tolist() == PAYOFF["revenue"]


def test_one_arm_is_enough() -> None:
    found = read_history({"year": [1999, 2000, 2001, 2002], "law": [0, 0, 1, 1], "deaths": [9, 8, 5, 4]}, minimise=True)
    assert (found.arms, found.observes, found.following) == (("law",), "overall", "2003")
    assert found.y[:, 0].tolist() == [-9, -8, -5, -4]
    assert found.minimise


def test_own_rewards_are_read_with_outcomes() -> None:
    own = [cell if chosen else None for cell, chosen in zip(LONG["orders"], LONG["treated"], strict=True)]
    found = read_history(LONG | {"own": own})
    assert found.observes == "both"
    assert taken(found)["own"] == ("z", "by its name")
    assert (found.z[~found.x] == 0).all()
    assert (found.z[found.x] == found.y[found.x]).all()


def test_synonyms_of_the_plain_form() -> None:
    plain = {
        "round": [1, 1, 2, 2],
        "arm": list("abab"),
        "chosen": [1, 0, 0, 1],
        "z": [0.5, None, None, 0.4],
        "y": [1, 0, 0, 1],
    }
    named = dict(zip(("day", "channel", "active", "own", "outcome"), plain.values(), strict=True))
    first, second = read_history(plain), read_history(named)
    assert (first.x == second.x).all()
    assert (first.y == second.y).all()
    assert second.observes == first.observes == "both"
    assert first.columns_option == "--columns round=round,arm=arm,chosen=chosen,z=z,y=y"
    again = read_history(named, columns="round=day,arm=channel,chosen=active,z=own,y=outcome")
    assert (again.z == first.z).all()


def test_two_readings_are_a_question_with_lines_to_paste(tmp_path) -> None:
    table = WIDE | {"feat_north": [0, 1] * 4, "feat_south": [1, 1, 0, 0] * 2}
    disp = {name.replace("promo", "disp"): values for name, values in table.items()}
    lines = refused(in_format(disp, "csv", tmp_path), "what was chosen may be disp_*, feat_*: say which")
    options = [line.split("--columns ")[1].strip("'") for line in lines[1:]]
    assert options == [f"round=week,chosen={group}_*,outcome=sales_*" for group in ("disp", "feat")]
    for option in options:
        assert read_history(disp, columns=option).arms == ("north", "south")


def test_outcomes_that_are_equally_plausible_are_listed() -> None:
    lines = refused(PAYOFF | {"sales": PAYOFF["revenue"]}, "the outcome may be revenue, sales")
    assert len(lines) == 3
    assert read_history(PAYOFF | {"sales": PAYOFF["revenue"]}, columns="outcome=sales").observes == "payoff"


def test_lines_to_paste_stay_short_however_many_decisions_there_are() -> None:
    table = {"week": PAYOFF["date"]} | {f"item {k}": [k % 2, 1 - k % 2] * 4 for k in range(1_520)}
    table |= {"clicks": PAYOFF["revenue"], "visits": PAYOFF["revenue"]}
    lines = refused(table, "the outcome may be clicks, visits")
    options = [line.split("--columns ")[1].strip("'") for line in lines[1:]]
    assert options == ["round=week,outcome=clicks", "round=week,outcome=visits"]
    assert len(read_history(table, columns=options[1]).arms) == 1_520
    assert len(str(overview(read_history(table, columns=options[1]), "t.csv"))) < 12_000


def test_long_options_and_lists_are_shortened_in_messages() -> None:
    names = [f"item {k}" for k in range(1_520)]
    table = {"week": PAYOFF["date"]} | {name: [0, 1] * 4 for name in names} | {"revenue": PAYOFF["revenue"]}
    pasted = f"chosen={';'.join(names)},outcom=revenue"
    (line,) = refused(table, "columns = 'chosen=item 0;", " … ", "did you mean outcome?", columns=pasted)
    assert len(line) < 600
    with pytest.raises(
        ValueError, match=r"item 0, item 1, item 2, … and 1,517 others; did you mean item 7\?$"
    ) as caught:
        sp.next_decision(table, budget=2, unavailable=[*names, "itm 7"])
    assert len(str(caught.value)) < 200
    context = {f"c{k}": range(8) for k in range(99)}
    options = {"columns": "outcome=revenue", "context": list(context), "next_context": {"d": 1}}
    (line,) = refused(PAYOFF | context, "c0, c1, c2, … and 96 others", **options)
    assert len(line) < 200


def test_what_cannot_be_found_is_asked_for() -> None:
    refused(
        without(PAYOFF, "tv", "radio"),
        "no column says what was chosen (0 and 1, or yes and no)",
        "--columns chosen=NAME",
    )
    refused(without(PAYOFF, "revenue"), "no column of outcomes", "--columns outcome=NAME")
    refused(without(LONG, "region"), "up to 2 rows for one date, and no column names the arm", "--columns arm=NAME")
    refused(PAYOFF, "no column 'revenu' (the outcome)", "did you mean revenue?", columns="outcome=revenu")
    refused(PAYOFF, "must use each column once", columns="chosen=tv,outcome=TV")
    refused(PAYOFF, "no column 'promo*'", columns="chosen=promo*")


def test_amounts_need_the_option() -> None:
    spent = PAYOFF | {"tv_spend": [10.0, 0, 20, 0, 30, 0, 0, 20], "ooh_spend": [0.0, 0, 2, 0, 0, 4, 0, 0]}
    table = without(spent, "tv", "radio")
    refused(table, "tv_spend, ooh_spend may be amounts: add --doses")
    found = read_history(table, doses=True)
    assert found.columns_option == "--columns 'round=date,dose=*_spend,outcome=revenue'"
    assert found.reference_dose.tolist() == [3.0, 20.0]
    np.testing.assert_allclose(found.dose[:, 1], [0.5, 0, 1, 0, 1.5, 0, 0, 1])
    assert (found.x == (found.dose > 0)).all()
    again = read_history(table, columns="round=date,dose=*_spend,outcome=revenue")
    assert (again.dose == found.dose).all()
    refused(table, "tv_spend = 10: must be 1 or 0", "--doses", columns="chosen=*_spend")
    refused(
        changed(table, tv_spend=[-1.0] * 8),
        "tv_spend = -1: must be an amount from 0 on (8 like this",
        columns="dose=*_spend",
    )


def test_arms_that_came_later_or_went_are_used_where_they_are() -> None:
    rows = [k for k in range(16) if k not in (1, 3, 14)]  # south from the third day on, north until the seventh
    found = read_history({name: [values[k] for k in rows] for name, values in LONG.items()})
    assert np.isnan(found.y).sum() == 3
    assert not found.x[np.isnan(found.y)].any()
    assert found.notes == (
        "not in all rounds: south from 2026-01-03 on, north until 2026-01-07; in the others taken as not chosen, with "
        "unknown outcomes",
    )
    assert found.arrived.all()


def test_a_misspelt_arm_is_named(tmp_path) -> None:
    names = ["nroth" if k == 4 else name for k, name in enumerate(LONG["region"])]
    path = in_format(changed(LONG, region=names), "csv", tmp_path)
    (line,) = refused(path, "arm 'nroth' appears in 1 of 8 rounds, where 'north' is missing", "did you mean north?")
    assert line.startswith(f"{path}:6: ")
    later = read_history(changed(LONG, region=[*LONG["region"][:14], "north 2", "south"]))
    assert later.arms == ("north", "north 2", "south")


def test_single_missing_cells_are_counted_in_one_note() -> None:
    orders = [None if k in (2, 5, 6) else value for k, value in enumerate(LONG["orders"])]
    found = read_history(changed(LONG, orders=orders))
    assert np.isnan(found.y).sum() == 3
    assert found.notes == ("3 outcomes missing in 3 rounds: the others are used",)
    late = read_history(changed(LONG, orders=[*LONG["orders"][:14], None, None]))
    assert late.pending == ("2026-01-08",)
    assert late.notes == ()


def test_a_missing_decision_with_an_outcome_is_one_error_with_its_count() -> None:
    treated = [None if k in (2, 5) else value for k, value in enumerate(LONG["treated"])]
    (line,) = refused(changed(LONG, treated=treated), "2 decisions missing although there is an outcome")
    assert "the first for 'north' in round 2026-01-02" in line
    north = [None, *WIDE["promo_north"][1:]]
    refused(changed(WIDE, promo_north=north), "1 decision missing although there is an outcome")
    refused(changed(PAYOFF, tv=[None, *PAYOFF["tv"][1:]]), "1 decision missing although there is an outcome")


def test_rounds_to_decide_are_at_the_end() -> None:
    blank = {
        name: [*values[:6], None, None] if name not in ("week", "temp") else values for name, values in WIDE.items()
    }
    found = read_history(blank, context="temp")
    assert (len(found.rounds), found.following) == (6, "2026-W07")
    assert found.context[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert found.next_context.tolist() == [7.0]
    assert found.notes == ("2 rounds are to decide: the answer is for the first, 2026-W07",)


def test_rounds_in_two_columns() -> None:
    table = without(PAYOFF, "date") | {"Year": [2025] * 4 + [2026] * 4, "Month": [9, 10, 11, 12, 1, 2, 3, 4]}
    found = read_history(table)
    assert found.rounds[0] == "2025-09"
    assert found.following == "2026-05"
    assert found.columns_option.startswith("--columns 'round=Year;Month,")
    assert read_history(table, columns="round=Year;Month").rounds == found.rounds


def test_day_and_month_are_asked_for() -> None:
    table = changed(PAYOFF, date=[f"0{k}/01/2026" for k in range(1, 9)])
    refused(
        table,
        "date = '01/01/2026' may have the day first or the month first",
        "--dates day-first or --dates month-first",
    )
    assert read_history(table, dates="day-first").following == "2026-01-09"
    found = read_history(table, dates="month-first")
    assert found.following == "2026-09-01"
    assert found.columns_option.endswith(" --dates month-first")


def test_what_a_comma_means_is_asked_for(tmp_path) -> None:
    table = changed(PAYOFF, revenue=["1,234", "1,500"] * 4)
    (line, *_) = refused(table, "revenue = '1,234': must be clear whether it is 1234 or 1.234")
    assert "(8 like this: rows 1, 2, 3, 4, 5, ...)" in line
    assert read_history(table, decimal="point").y[0, 0] == 1234
    assert read_history(table, decimal="comma").y[0, 0] == 1.234


def test_cells_are_read_as_people_write_them(tmp_path) -> None:
    table = {
        "Week starting": [f"{k}.1.2026" for k in range(5, 13)],
        "Promo North": ["x", "", "x", "", "x", "", "", "x"],
        "Promo South": ["N", "N", "Y", "Y", "N", "Y", "N", "Y"],
        "Sales North": ["€1.005,50", "1", "2", "3", "NA", "5", "6", "7"],
        "Sales South": ["45%", "5%", "0%", "5%", "5%", "-", "5%", "100%"],
    }
    path = tmp_path / "t.csv"
    path.write_text("\ufeff" + csv_text(table, ";", ","), encoding="utf-8")
    found = read_history(path, columns="round=week starting")
    assert found.arms == ("North", "South")
    assert found.x[:, 0].tolist() == [cell == "x" for cell in table["Promo North"]]
    assert found.y[0].tolist() == [1005.5, 0.45]
    assert np.argwhere(np.isnan(found.y)).tolist() == [[4, 0], [5, 1]]


def test_bad_cells_are_one_line_with_their_count(tmp_path) -> None:
    table = changed(PAYOFF, revenue=["many", 1.0, "few", 2.0, 3.0, 4.0, 5.0, 6.0], tv=["maybe", *PAYOFF["tv"][1:]])
    path = in_format(table, "csv", tmp_path)
    lines = refused(path, columns="chosen=tv;radio,outcome=revenue")
    two = "(2 like this: lines 2, 4 with revenue = 'few')"
    assert lines == [
        f"{path}:2: tv = 'maybe': must be 1 or 0, yes or no, true or false, Y or N, x or empty",
        f"{path}:2: revenue = 'many': must be a finite number, or empty until it is known {two}",
    ]


@pytest.mark.parametrize("outcomes", [("sales_north", "sales_south"), ("north", "south")])
@pytest.mark.parametrize("values", [[0, 1] * 4, [0, 1, 2, 3] * 2, [12.5, 3, 8, 9, 20, 30, 5, 7]])
def test_two_typos_in_the_outcomes_of_one_of_two_arms_are_reported(outcomes, values) -> None:
    typos = ["12,x", *map(str, values[1:5]), "1o3", *map(str, values[6:])]
    table = without(WIDE, "sales_north", "sales_south") | {outcomes[0]: values, outcomes[1]: typos}
    (line,) = refused(table)
    accepted = "must be a finite number, or empty until it is known"
    two = f"(2 like this: rows 1, 6 with {outcomes[1]} = '1o3')"
    assert line == f"table:row 1: {outcomes[1]} = '12,x': {accepted} {two}"


def test_an_outcome_with_more_typos_than_numbers_is_reported() -> None:
    refused(
        WIDE | {"sales_south": ["12,x"] * 5 + ["1", "2", "3"]}, "table:row 1: sales_south = '12,x': must be a finite"
    )


def test_two_typos_in_decisions_or_in_a_long_table_are_reported() -> None:
    decided = WIDE | {"promo_south": ["maybe", "1", "0", "1", "0", "si?", "1", "1"]}
    refused(decided, "promo_south = 'maybe': must be 1 or 0", "(2 like this: rows 1, 6 with promo_south = 'si?')")
    orders = ["12,x", *["0", "1"] * 7, "1o3"]
    refused(LONG | {"orders": orders, "spend": range(16)}, "orders = '12,x'", "rows 1, 16 with orders = '1o3')")


def test_a_row_twice_is_refused() -> None:
    twice = {name: [*values, values[0]] for name, values in LONG.items()}
    refused(twice, "round 2026-01-01, arm 'north': appears more than once", columns="arm=region")
    again = {name: [*values, values[0]] for name, values in PAYOFF.items()}
    refused(again, "up to 2 rows for one date", columns=None)
    refused(again, "round 2026-01-01: appears more than once", columns="round=date,chosen=tv;radio")


def test_the_first_rounds_may_be_all_there_is() -> None:
    first = read_history({name: values[:1] for name, values in WIDE.items()})
    assert first.x.tolist() == [[True, False]]
    waiting = {name: [None] * 2 if name.startswith("sales") else values[:2] for name, values in WIDE.items()}
    assert read_history(waiting).pending == ("2026-W01", "2026-W02")
    assert read_history({name: values[:1] for name, values in LONG.items()}).arms == ("north",)


def test_infinite_outcomes_are_refused_not_left_out() -> None:
    refused(changed(WIDE, sales_north=[np.inf] * 8), "sales_north = inf: must be a finite number", "(8 like this")


def test_data_frames_of_any_kind() -> None:
    frame = pd.DataFrame(WIDE)
    expected = read_history(WIDE)
    mixed = frame.assign(sales_north=[str(value) if k % 2 else value for k, value in enumerate(WIDE["sales_north"])])
    others = [frame.convert_dtypes(), frame.astype({"promo_north": "category"}), mixed, frame.set_index("week")]
    others.append(frame.assign(promo_north=frame["promo_north"] == 1))
    polar = polars.DataFrame(frame).with_columns(polars.col("week").cast(polars.Categorical))
    for other in (*others, polar, pa.table(frame).to_reader()):
        found = read_history(other)
        assert found.notes == expected.notes
        assert found.rounds == expected.rounds
        assert (found.x == expected.x).all()
        assert (found.y == expected.y).all()


def test_an_index_of_dates_is_the_round() -> None:
    dates = pd.DatetimeIndex(PAYOFF["date"])
    frame = pd.DataFrame(without(PAYOFF, "date"), index=dates)
    assert read_history(frame).rounds == tuple(PAYOFF["date"])
    assert read_history(frame.rename_axis("when")).rounds == tuple(PAYOFF["date"])
    assert read_history(frame.reset_index(drop=True), columns="chosen=tv;radio").rounds == tuple("12345678")
    monthly = frame.set_axis(pd.period_range("2026-01", periods=8, freq="M"), axis=0)
    assert read_history(monthly).rounds[0] == "2026-01"


def test_without_rounds_the_rows_are_taken_in_their_order() -> None:
    found = read_history(without(PAYOFF, "date"), columns="chosen=tv;radio")
    assert found.rounds == tuple("12345678")
    assert found.following == "9"
    assert found.columns_option == "--columns 'round=,chosen=tv;radio,outcome=revenue'"


def test_standard_input(monkeypatch) -> None:
    content = csv_text(LONG).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_history("-").arms == ("north", "south")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.replace(b"5.0", b"five"))))
    lines = refused("-", "stdin:2: orders = 'five': must be a finite number")
    assert len(lines) == 1


def test_a_workbook_without_the_extra_says_what_to_install(tmp_path, monkeypatch) -> None:
    path = in_format(LONG, "xlsx", tmp_path)
    assert read_history(path).arms == ("north", "south")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    refused(path, 'is a spreadsheet: to read it, pip install "spillover[xlsx]", or save it as CSV')


@pytest.mark.parametrize("source", [3, None, [1, 2], object()])
def test_other_sources_are_refused(source) -> None:
    refused(source, 'must be a path, "-" for standard input, a data frame')


def test_arms_are_permuted_with_their_names_and_outcomes_scale() -> None:
    found = read_history(LONG)
    swapped = read_history(changed(LONG, region=["zebra" if name == "north" else name for name in LONG["region"]]))
    assert swapped.arms == ("south", "zebra")
    assert (swapped.y == found.y[:, ::-1]).all()
    assert (swapped.x == found.x[:, ::-1]).all()
    cents = read_history(changed(LONG, orders=[100 * value for value in LONG["orders"]]))
    assert (cents.y == 100 * found.y).all()


def test_one_arm_in_two_ways_of_writing_accents_and_blanks(tmp_path) -> None:
    """NFC and NFD, and no-break spaces, in cells and in column names."""
    one, other = "Caf\u00e9 Nord", "Cafe\u0301\u00a0Nord"
    regions = [one if k % 4 else other for k in range(16) for _ in "x"]
    table: dict[str, list[Any]] = {
        "date": [f"2026-01-{k // 2 + 1:02d}" for k in range(16)],
        "region": [regions[k] if k % 2 else "south" for k in range(16)],
        "treated": [(k // 2 + k) % 2 for k in range(16)],
        "sales": [float(k % 5) for k in range(16)],
    }
    table["region"] = [name if name == "south" else (one, other)[k // 2 % 2] for k, name in enumerate(table["region"])]
    assert set(read_history(table).arms) == {one, "south"}
    wide = {name.replace("north", one if "promo" in name else other): values for name, values in WIDE.items()}
    assert set(read_history(wide).arms) == {one, "south"}


def test_the_message_of_an_error_has_the_problems(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"1 problem; no decision was made\n.*sales_north = 'many': must be"):
        read_history(WIDE | {"sales_north": [*map(str, WIDE["sales_north"][:-1]), "many"]})
