"""Files and workbooks that are written in odd ways are read, or refused with their line or column."""

import datetime
import decimal
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from spillover.history import HistoryError, read_history
from spillover.history.files import BLOCK
from tests.history.tables import WIDE, in_format, refused

ROWS = ["1,a,1,0.5,0.5", "1,b,0,,0.1", "2,a,0,,0.2", "2,b,1,0.4,0.4"]
TABLE = {"round": [1, 1], "arm": ["a", "b"], "chosen": [1, 0], "z": [0.5, None], "y": [0.5, 0.1]}


def written(folder, rows, end="\n"):
    path = folder / "h.csv"
    path.write_bytes("".join(f"{row}{end}" for row in ["round,arm,chosen,z,y", *rows]).encode())
    return path


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_any_line_ending_is_read(end, tmp_path) -> None:
    assert read_history(written(tmp_path, ROWS, end)).arms == ("a", "b")
    with pytest.raises(HistoryError) as found:
        read_history(written(tmp_path, [*ROWS[:3], "2,b,1,lots,0.4"], end))
    assert found.value.lines[0].startswith(f"{tmp_path / 'h.csv'}:5: z = 'lots'")


def test_a_line_break_within_a_value_is_part_of_it_and_lines_are_counted(tmp_path) -> None:
    rows = [row.replace(",a,", ',"a\nx",') for row in ROWS]
    assert read_history(written(tmp_path, rows)).arms == ("a\nx", "b")
    with pytest.raises(HistoryError) as found:
        read_history(written(tmp_path, [*rows[:3], "2,b,1,lots,0.4"]))
    assert found.value.lines[0].startswith(f"{tmp_path / 'h.csv'}:7: z = 'lots'")
    with pytest.raises(HistoryError) as found:
        read_history(written(tmp_path, [*rows[:3], "2,b,1"]))
    assert found.value.lines[0].endswith(":7: has 3 values: must have 5, one for each column")


def test_a_quote_that_is_never_closed_is_no_crash(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"h\.csv"):
        read_history(written(tmp_path, [ROWS[0], '1,"b,0,,0.1', *ROWS[2:]]))


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        (
            "z",
            pa.array([datetime.datetime(2026, 1, 1), None]),
            "row 1: z = 2026-01-01 00:00:00: must be a finite number",
        ),
        ("y", pa.array([datetime.timedelta(1)] * 2), "row 1: y = '1 day, 0:00:00': must be a finite number"),
        ("y", pa.array([[0.5], [0.1]]), r"row 1: y = '\[0.5\]': must be a finite number"),
        ("arm", pa.array([b"\xff", b"b"]), " column 'arm' is not all UTF-8: must be UTF-8 text"),
    ],
)
def test_wrong_types_of_parquet_columns_are_refused(column, values, words, tmp_path) -> None:
    path = tmp_path / "h.parquet"
    parquet.write_table(pa.table(TABLE | {column: values}), path)
    with pytest.raises(ValueError, match=rf"h\.parquet:{words}"):
        read_history(path)


def test_the_columns_of_a_parquet_file_may_be_in_any_order(tmp_path) -> None:
    path = tmp_path / "h.parquet"
    parquet.write_table(pa.table(dict(reversed(TABLE.items()))), path)
    found = read_history(path)
    assert (found.arms, found.x.tolist(), found.y.tolist()) == (("a", "b"), [[True, False]], [[0.5, 0.1]])


def test_valid_bytes_and_decimals_are_read(tmp_path) -> None:
    path = tmp_path / "h.parquet"
    y = pa.array([decimal.Decimal("0.5"), decimal.Decimal("0.1")])
    parquet.write_table(pa.table(TABLE | {"arm": pa.array([b"a", b"b"]), "y": y}), path)
    found = read_history(path)
    assert found.arms == ("a", "b")
    assert found.y.tolist() == [[0.5, 0.1]]


@pytest.mark.parametrize(
    "numbers",
    [
        ("0.5", "1", "0", "1e-1"),  # plain, read the quick way
        (" 0.5", "1 ", "  ", "+0.1"),  # with blanks
        ("0,5", "1,0", "0", "0,1"),  # a decimal comma, where columns have another separator
    ],
)
def test_numbers_are_the_same_however_they_are_written(numbers, tmp_path) -> None:
    separator = ";" if "," in numbers[0] else ","
    cells = [("1", "a", "1", numbers[0], numbers[1]), ("1", "b", "yes", numbers[2], numbers[3])]
    path = tmp_path / "h.csv"
    path.write_text("\n".join(separator.join(row) for row in [("round", "arm", "chosen", "z", "y"), *cells]))
    history = read_history(path)
    assert history.x.tolist() == [[True, True]]
    if numbers[2].strip():
        assert (history.z.tolist(), history.y.tolist()) == ([[0.5, 0.0]], [[1.0, 0.1]])
    else:
        assert not history.arrived.any()


@pytest.mark.parametrize("text", ["inf", "nan", "-Infinity", "0x1p-1", "1_0", "half", "1.2.3"])
def test_text_instead_of_a_number_is_quoted(text, tmp_path) -> None:
    path = tmp_path / "h.csv"
    path.write_text(f"round,arm,chosen,z,y\n1,a,1,0.5,0.5\n2,a,1,{text},0.5\n")
    with pytest.raises(HistoryError) as caught:
        read_history(path)
    assert caught.value.lines == [
        f"{path}:3: z = {text!r}: must be a finite number, or empty until it is known",
    ]


@pytest.mark.long
def test_text_instead_of_a_number_late_in_a_long_file_is_found(tmp_path) -> None:
    """The blocks before it have already been parsed as numbers by then."""
    path, rows = tmp_path / "h.csv", 300_000
    lines = [f"{k},a,1,0.5,0.5" for k in range(1, rows + 1)]
    lines[rows - 5] = f"{rows - 4},a,1,oops,0.5"
    path.write_text("round,arm,chosen,z,y\n" + "\n".join(lines))
    assert path.stat().st_size > BLOCK
    with pytest.raises(HistoryError) as caught:
        read_history(path)
    assert [line.removeprefix(f"{path}:") for line in caught.value.lines] == [
        f"{rows - 3}: z = 'oops': must be a finite number, or empty until it is known"
    ]


def test_names_of_columns_without_end(tmp_path) -> None:
    """Only the beginning of such a line is read."""
    path = tmp_path / "h.csv"
    path.write_text("é" * (1 << 19) + "\n1\n")
    with pytest.raises(ValueError, match=r"h.csv:1: column names of more than 1,048,576 bytes: must be fewer"):
        read_history(path)


def test_many_columns_with_long_names_are_read(tmp_path) -> None:
    """More than 64 KiB of them, in cells and in lines that are longer than the csv module likes."""
    arms = [f"{k} {'x' * 200}" for k in range(400)]
    rows = ["\t".join([str(week)] + [str((week + k) % 2) for k in range(400)] + ["5"]) for week in range(3)]
    (tmp_path / "h.csv").write_text("\n".join(["\t".join(["week", *arms, "sales"]), *rows]))
    assert len(read_history(tmp_path / "h.csv").arms) == 400


@pytest.mark.parametrize("kind", ["csv", "frame"])
def test_more_columns_than_any_sheet_has(kind, tmp_path) -> None:
    names = [f"c{k}" for k in range(16_385)]
    path = tmp_path / "h.csv"
    path.write_text(",".join(names) + "\n")
    with pytest.raises(ValueError, match=r"16,385 columns: must be at most 16,384"):
        read_history(path if kind == "csv" else {name: [1] for name in names})


SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"


def rewritten(folder: Path, changes: dict[str, Callable[[str], str]], table=WIDE) -> Path:
    """A workbook of which some parts were changed."""
    path: Path = in_format(table, "xlsx", folder)
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name).decode() for name in book.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, changes.get(name, str)(text))
    return path


def without_dimension(text: str) -> str:
    return re.sub("<dimension[^>]*>", "", text)


def test_rows_of_unequal_length_without_a_dimension(tmp_path):
    short = WIDE | {"temp": [*WIDE["temp"][:-3], None, None, None]}
    found = read_history(rewritten(tmp_path, {SHEET: without_dimension}, short))
    assert len(found.rounds) == 8
    assert found.arms == ("north", "south")


def test_a_dimension_that_is_too_small(tmp_path):
    path = rewritten(tmp_path, {SHEET: lambda text: re.sub('ref="A1:F9"', 'ref="A1:E4"', text)})
    assert len(read_history(path).rounds) == 8


def test_a_row_that_no_sheet_has(tmp_path):
    path = rewritten(
        tmp_path, {SHEET: lambda text: without_dimension(text).replace('<row r="9"', '<row r="2000000000"')}
    )
    refused(path, "has a row below 1,048,576: must have none, as that is the last of a sheet")


@pytest.mark.parametrize("row", [1, 9])
def test_a_column_that_no_sheet_has(row, tmp_path):
    cell = f'<c r="XFE{row}" t="inlineStr"><is><t>9</t></is></c></row>'
    end = re.compile(rf'(<row r="{row}".*?)</row>')
    path = rewritten(tmp_path, {SHEET: lambda text: end.sub(lambda found: found[1] + cell, text)})
    refused(path, "has a cell beyond column XFD: must have none, as that is the last of a sheet")


def with_shared_string(folder: Path, text: str) -> Path:
    """A workbook in which a column of notes has one text in all of its cells."""
    table = WIDE | {"note": ["as usual"] * 8}
    own = '<c r="G{}" t="inlineStr"><is><t>as usual</t></is></c>'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"

    def shared(sheet: str) -> str:
        for row in range(2, 10):
            assert own.format(row) in sheet
            sheet = sheet.replace(own.format(row), f'<c r="G{row}" t="s"><v>0</v></c>')
        return sheet

    def declared(types: str) -> str:
        return types.replace("</Types>", f'<Override PartName="/{STRINGS}" ContentType="{kind}"/></Types>')

    path = rewritten(folder, {SHEET: shared, "[Content_Types].xml": declared}, table)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
        space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
        book.writestr(STRINGS, f"<sst {space}><si><t>{text}</t></si></sst>")
    return path


def test_strings_that_expand_too_far(tmp_path, monkeypatch):
    """By compression, and by one text in many cells."""
    monkeypatch.setattr("spillover.history.files.MOST_FREELY", 1_000_000)
    monkeypatch.setattr("spillover.history.files.MOST_EXPANDED", 10)
    assert len(read_history(with_shared_string(tmp_path, "as usual")).rounds) == 8
    assert len(read_history(with_shared_string(tmp_path, "a" * 100_000)).rounds) == 8
    for length in (2_000_000, 200_000):
        refused(with_shared_string(tmp_path, "a" * length), "expands to more than 10 times its size, which no table")


def test_rows_of_spaces_are_blank(tmp_path, monkeypatch):
    spaces = {name: [*values, *["   "] * 500] for name, values in WIDE.items()}
    path = in_format(spaces, "xlsx", tmp_path)
    assert len(read_history(path).rounds) == 8
    monkeypatch.setattr("spillover.history.files.MOST_FREELY", 10_000)
    monkeypatch.setattr("spillover.history.files.MOST_EXPANDED", 1)
    refused(path, "expands to more than 1 times its size")


def test_formulas_without_a_stored_result_are_named(tmp_path):
    path = in_format(WIDE | {"sales_north": [*WIDE["sales_north"][:-2], "=1+1", "=A1"]}, "xlsx", tmp_path)
    found = read_history(path)
    assert found.notes[0].startswith("cells with a formula whose result is not stored: 2; they are read as empty")
    assert np.isnan(found.y[:, 0]).sum() == 2


def test_an_error_names_them_too(tmp_path):
    path = in_format(WIDE | {"week": ["=1+1"] * 8}, "xlsx", tmp_path)
    refused(path, "cells with a formula whose result is not stored: 8; they are read as empty", columns="round=week")


def test_a_formula_with_its_result_is_a_value(tmp_path):
    stored = rewritten(
        tmp_path,
        {SHEET: lambda text: re.sub(r"<f>[^<]*</f><v\s*/>|<f>[^<]*</f><v></v>", "<f>1+1</f><v>2</v>", text)},
        WIDE | {"sales_north": [*WIDE["sales_north"][:-1], "=1+1"]},
    )
    found = read_history(stored)
    assert found.y[-1, 0] == 2.0
    assert not any("formula" in note for note in found.notes)


@pytest.mark.parametrize("form", ["xlsx", "columns", "pandas", "csv", "polars"])
@pytest.mark.parametrize("column", ["temp", "sales_north", "customer"])
def test_whole_numbers_of_64_bits(form, column, tmp_path):
    large = [2**63 + 2**12 * k for k in range(8)]
    found = read_history(in_format(WIDE | {column: large}, form, tmp_path))
    assert len(found.rounds) == 8
    if column == "sales_north":
        assert found.y[:, 0].tolist() == [float(value) for value in large]
