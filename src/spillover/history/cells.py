"""The values of cells: names, yes or no, numbers, rounds."""

import re
import unicodedata
from datetime import datetime
from typing import Any

import numpy as np

from spillover.history.problems import Problems
from spillover.types import Array, BoolArray, IntArray

YES_AND_NO = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0}
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
ROUND = "a whole number or a date such as 2026-03-31"


class Names:
    """The distinct values of a column, numbered in order of appearance.

    >>> import pyarrow as pa
    >>> names = Names(most=3, what="arms in north.csv")
    >>> names.codes(pa.array(["north", " south", None, "north"]))
    array([ 0,  1, -1,  0])
    >>> names.values
    ['north', 'south']
    """

    def __init__(self, *, most: int, what: str) -> None:
        self.most, self.what = most, what
        self.known: dict[str, int] = {}

    @property
    def values(self) -> list[str]:
        return list(self.known)

    def codes(self, column: Any) -> IntArray:
        """The number of the value of each cell; -1 where the cell is empty."""
        place, texts = encoded(column)
        own = np.empty(len(texts) + 1, np.int64)
        own[-1] = -1  # empty cells
        for k, text in enumerate(texts):
            own[k] = self.known.setdefault(text, len(self.known)) if text else -1
        if len(self.known) > self.most:
            raise ValueError(
                f"more than {self.most:,} {self.what}: must be at most that many (if this is the wrong column, "
                "name the right one with --columns)"
            )
        return np.asarray(own[place])


def clear_text(text: str) -> str:
    """A text without blanks around it, in one of the ways in which accents and blanks can be written.

    >>> clear_text("Cafe\u0301\u00a0Nord ") == "Caf\u00e9 Nord"
    True
    """
    if text.isascii():
        return text.strip()
    return re.sub("[\u00a0\u2007\u202f]", " ", unicodedata.normalize("NFC", text)).strip()


def encoded(column: Any) -> tuple[IntArray, list[str]]:
    """For every cell its position in a list of trimmed texts; -1 where the cell is empty."""
    import pyarrow as pa

    found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = found.dictionary
    if not pa.types.is_string(values.type):
        values = values.cast(pa.string())
    texts = [clear_text(text or "") for text in values.to_pylist()]
    place = to_numpy(found.indices, -1)
    return place.astype(np.int64, copy=False), texts


def decisions(column: Any, problems: Problems, first: int) -> Array:
    """1 where an arm was chosen, 0 where it was not; `first` is the number of the first row."""
    place, texts = encoded(column)
    own = np.array([YES_AND_NO.get(text.casefold(), -1) for text in texts] + [-1], np.int8)
    found = own[place]
    bad = np.flatnonzero(found < 0)

    def describe(row: int) -> str:
        text = texts[place[row - first]] if place[row - first] >= 0 else ""
        return f"chosen {quote_cell(text)}: must be 1 or 0, yes or no, true or false"

    problems.add("chosen", bad + first, describe)
    return np.asarray(found)


def numbers(column: Any, name: str, problems: Problems, first: int, *, comma: bool) -> Array:
    """The numbers of a column; NaN where the cell is empty. comma: decimal commas are accepted too."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        found = column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        import pyarrow.compute as compute  # loaded only when needed: it takes longer than reading most files

        trimmed = compute.utf8_trim_whitespace(column)
        if comma:
            trimmed = compute.replace_substring(trimmed, ",", ".")  # 1.234,5 becomes no number at all
        bad = compute.invert(compute.match_substring_regex(trimmed, NUMBER))
        empty = compute.equal(trimmed, "")
        found = compute.if_else(compute.or_(bad, empty), pa.scalar(None, pa.string()), trimmed).cast(pa.float64())
        wrong = compute.and_not(compute.fill_null(bad, False), compute.fill_null(empty, True))
        report_cells(bits(wrong.buffers()[1], wrong), column, name, problems, first)
        return as_floats(found)
    values = as_floats(found)
    infinite = ~np.isfinite(values) & not_null(column)
    if infinite.any():
        report_cells(infinite, column, name, problems, first)
        return np.where(infinite, np.nan, values)
    return values


def as_floats(found: Any) -> Array:
    return np.asarray(to_numpy(found, np.nan), np.float64)


def bits(buffer: Any, found: Any) -> BoolArray:
    """The truth values of an arrow array, which packs eight of them into a byte."""
    unpacked = np.unpackbits(np.frombuffer(buffer, np.uint8), count=found.offset + len(found), bitorder="little")
    return unpacked[found.offset :].view(np.bool_)


def not_null(found: Any) -> BoolArray:
    """Which cells of an arrow array are not empty."""
    if found.null_count in (0, len(found)):
        return np.full(len(found), found.null_count == 0)
    return bits(found.buffers()[0], found)


def to_numpy(found: Any, empty: Any) -> Any:
    """The numbers of an arrow array, with `empty` for nulls; arrow's own conversion would load pandas."""
    if found.null_count == len(found):
        return np.full(len(found), empty)
    kind = np.dtype({"double": "float64"}.get(str(found.type), str(found.type)))
    values = np.frombuffer(found.buffers()[1], kind, len(found), found.offset * kind.itemsize)
    return values if found.null_count == 0 else np.where(not_null(found), values, empty)


def report_cells(wrong: Any, column: Any, name: str, problems: Problems, first: int) -> None:
    """Report the cells that hold no finite number."""

    def describe(row: int) -> str:
        return f"{name} {quote_cell(column[row - first].as_py())}: must be a finite number, or empty until it is known"

    problems.add(f"number {name}", np.flatnonzero(wrong) + first, describe)


def quote_cell(value: object) -> str:
    """A cell as it is quoted in a message."""
    text = str(value).strip() if value is not None else ""
    short = text if len(text) <= 40 else f"{text[:37]}..."
    return f"= {short!r}" if isinstance(value, str) and text else f"= {short}" if text else "is empty"


def round_value(text: str) -> int | datetime | None:
    """A round: a whole number, or a date and time; None if the text is neither.

    >>> round_value("12"), round_value("2026-03-31"), round_value("31.3.2026")
    (12, datetime.datetime(2026, 3, 31, 0, 0), None)
    """
    if re.fullmatch(r"[+-]?\d{1,15}(\.0*)?", text):
        return int(text.partition(".")[0])
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
