"""Excel workbooks as programs other than Excel write them, and those that nobody should write."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spillover.history import read_history
from tests.history.tables import WIDE, in_format, refused

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
