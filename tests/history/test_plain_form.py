"""The plain form (round, arm, chosen, z, y): what is read, what is refused, and what is said of misspelt arms."""

import gzip

import numpy as np
import pytest

from spillover.history import HistoryError, read_history
from tests.history.tables import WIDE, csv_text, in_format, refused

PLAIN = [
    ["1", "a", "1", "0.45", "0.5"],
    ["1", "b", "0", "", "0.1"],
    ["2", "a", "0", "", "0.2"],
    ["2", "b", "1", "0.4", "0.4"],
]


def written(folder, rows, header="round,arm,chosen,z,y"):
    path = folder / "h.csv"
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def changed(place, column, text):
    rows = [list(row) for row in PLAIN]
    rows[place][column] = text
    return rows


@pytest.mark.parametrize("place_column_text", [(0, 2, "Y"), (0, 3, "€0.45"), (3, 4, " 0.4 "), (0, 2, "x")])
def test_other_ways_of_writing_give_the_same(place_column_text, tmp_path) -> None:
    first = read_history(written(tmp_path, PLAIN))
    found = read_history(written(tmp_path, changed(*place_column_text)))
    assert (found.x == first.x).all()
    np.testing.assert_array_equal(found.z, first.z)
    np.testing.assert_array_equal(found.y, first.y)
    assert found.observes == first.observes == "both"


def test_percent_signs(tmp_path) -> None:
    rows = [[*row[:3], f"{100 * float(row[3]):g}%" if row[3] else "", row[4]] for row in PLAIN]
    found = read_history(written(tmp_path, rows))
    np.testing.assert_allclose(found.z, read_history(written(tmp_path, PLAIN)).z)


@pytest.mark.parametrize(
    "place_column_text", [(0, 3, "nan"), (0, 3, "lots"), (0, 2, "maybe"), (0, 4, "NA"), (0, 3, "5,5,5")]
)
def test_other_texts_stay_refused_with_their_line(place_column_text, tmp_path) -> None:
    with pytest.raises(HistoryError) as caught:
        read_history(written(tmp_path, changed(*place_column_text)))
    (line,) = caught.value.lines
    assert line.startswith(f"{tmp_path / 'h.csv'}:2: ")


def test_months_are_rounds(tmp_path) -> None:
    rows = [[f"2026-0{row[0]}", *row[1:]] for row in PLAIN]
    assert read_history(written(tmp_path, rows)).following == "2026-03"
    rows = [[f"0{row[0]}/01/2026", *row[1:]] for row in PLAIN]
    with pytest.raises(ValueError, match="--dates day-first or --dates month-first"):
        read_history(written(tmp_path, rows))
    assert read_history(written(tmp_path, rows), dates="day-first").rounds == ("2026-01-01", "2026-01-02")


def test_a_misspelt_column_is_not_taken_by_its_content(tmp_path) -> None:
    with pytest.raises(HistoryError) as caught:
        read_history(written(tmp_path, PLAIN, "round,arm,chozen,z,y"))
    assert "did you mean chozen?" in caught.value.lines[0]
    found = read_history(written(tmp_path, PLAIN, "date,arm,chosen,z,y"))
    assert found.columns_option == "--columns round=date,arm=arm,chosen=chosen,z=z,outcome=y"
    option = found.columns_option.removeprefix("--columns ")
    again = read_history(written(tmp_path, PLAIN, "date,arm,chosen,z,y"), columns=option)
    assert (again.z == found.z).all()
    assert again.columns_option == found.columns_option


def test_the_option_to_paste_reads_the_same_form(tmp_path) -> None:
    """The plain form is strict and written with y=, any other with outcome=."""
    rows = [[*row[:3], row[3] and str(100 * float(row[3])), row[4]] for row in PLAIN]
    any_form = written(tmp_path, rows, "day,store,promo,own,sales")
    found = read_history(any_form)
    option = found.columns_option.removeprefix("--columns ")
    assert option == "round=day,arm=store,chosen=promo,z=own,outcome=sales"
    assert (read_history(any_form, columns=option).z == found.z).all()
    with pytest.raises(HistoryError, match="2 problems"):
        read_history(any_form, columns=option.replace("outcome", "y"))
    plain = read_history(written(tmp_path, PLAIN))
    assert plain.columns_option == "--columns round=round,arm=arm,chosen=chosen,z=z,y=y"


def test_minimised_rewards_are_negated(tmp_path) -> None:
    first, found = (read_history(written(tmp_path, PLAIN), minimise=minimise) for minimise in (False, True))
    assert (found.z == -first.z).all()
    assert (found.y == -first.y).all()
    assert found.minimise


def test_context_can_be_added_to_the_plain_form(tmp_path) -> None:
    rows = [[*row, price] for row, price in zip(PLAIN, ["2", "2", "3", "3"], strict=True)]
    found = read_history(
        written(tmp_path, rows, "round,arm,chosen,z,y,price"), context="price", next_context={"price": 2}
    )
    assert found.context.tolist() == [[2.0], [3.0]]
    assert found.observes == "both"
    assert found.z.tolist() == [[0.45, 0.0], [0.0, 0.4]]


def file_of(folder, rows):
    path = folder / "h.csv"
    path.write_text("round,arm,chosen,z,y\n" + "".join(f"{row}\n" for row in rows))
    return path


def rows_of(rounds, arms=("posters", "radio", "video"), y=("0.5", "0.5")):
    """Every arm in every round, the first one chosen; y of the chosen arm and of the others."""
    return [
        f"{t},{arm},{int(arm == arms[0])},{0.5 if arm == arms[0] else ''},{y[arm != arms[0]]}"
        for t in range(1, rounds + 1)
        for arm in arms
    ]


def lines(folder, rows):
    with pytest.raises(HistoryError) as found:
        read_history(file_of(folder, rows))
    return [line.removeprefix(str(folder / "h.csv")) for line in found.value.lines]


def test_a_misspelt_arm_is_named_once_with_its_line(tmp_path) -> None:
    rows = rows_of(30)
    rows[10] = rows[10].replace("radio", "raido")
    words = (
        "arm 'raido' appears in 1 of 30 rounds, where 'radio' is missing: must be one of the arms; did you mean radio?"
    )
    assert lines(tmp_path, rows) == [f":12: {words}"]


def test_other_missing_rows_are_reported_too(tmp_path) -> None:
    rows = rows_of(30)
    rows[10] = rows[10].replace("radio", "raido")
    del rows[80]
    first, second = lines(tmp_path, rows)
    assert "did you mean radio?" in first
    assert second.startswith(": round 27 has no row for 'video': must have one for each of the 3 arms")


def test_a_new_arm_with_a_similar_name_is_not_misspelt(tmp_path) -> None:
    found = lines(tmp_path, [*rows_of(5), "5,radio 2,0,,0"])
    words = "round 1 has no row for 'radio 2': must have one for each of the 4 arms (4 like this)"
    assert found == [f": {words}"]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (("", ""), "column y is empty, so all rounds count as pending"),
        (("0.5", ""), "column y has values of chosen arms"),
    ],
)
def test_a_missing_y_gets_a_hint(y, words, tmp_path) -> None:
    found = read_history(file_of(tmp_path, rows_of(3, y=y)))
    assert not found.arrived.any()
    assert any(note.startswith(words) and "--columns y=" in note for note in found.notes)
    some = read_history(
        file_of(tmp_path, [*rows_of(3, y=y), *(f"4,{arm},0,,0" for arm in ("posters", "radio", "video"))])
    )
    assert not any("--columns y=" in note for note in some.notes)


# --- The limits on the size of tables, which docs/reliability.md states: each is refused with a message that names


NAMES = ("round", "arm", "chosen", "z", "y")


def test_a_compressed_table_that_expands_too_far(tmp_path, monkeypatch):
    """Beyond a size that any file may have, the limit is 100 times that of the compressed file."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(csv_text(WIDE).encode() + b"\n" * 100_000))
    found = read_history(path)
    assert found.arms == ("north", "south")
    monkeypatch.setattr("spillover.history.files.MOST_FREELY", 10_000)
    with pytest.raises(ValueError, match="expands to more than 100 times its size, which no table does"):
        read_history(path)


@pytest.mark.parametrize("form", ["csv", "columns"])
def test_a_table_with_too_many_cells(form, tmp_path, monkeypatch):
    cells = len(WIDE) * len(WIDE["week"])
    source = in_format(WIDE, form, tmp_path)
    monkeypatch.setattr("spillover.history.frame.MOST_CELLS", 2 * cells)
    assert read_history(source).arms == ("north", "south")
    monkeypatch.setattr("spillover.history.frame.MOST_CELLS", cells - 1)
    with pytest.raises(ValueError, match=f"more than {cells - 1} cells: must be at most that many"):
        read_history(source)


@pytest.mark.parametrize("columns", ["round,arm,chosen,z,y", "week,store,promo,reward,sales"])
def test_a_table_with_too_many_arms(columns, tmp_path, monkeypatch):
    """In the names that need no options, which are read in parts, and in others."""
    monkeypatch.setattr("spillover.history.panel.MOST_ARMS", 20)
    rows = [(t, f"arm-{k}", k % 2, 0, 0) for t in (1, 2) for k in range(21)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]) + "\n")
    refused(path, "more than 20 arms", columns=",".join(map("=".join, zip(NAMES, columns.split(","), strict=True))))


def test_rows_without_any_value_are_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("round,arm,chosen,z,y\n1,a,1,1,1\n2,a,0,0,0\n" + ", ,,,\n" * 10 + "3,a,1,1,1\n")
    assert len(read_history(path).x) == 3
