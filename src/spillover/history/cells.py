"""The values of cells: texts, yes or no, and numbers as people write them; and problems with them, reported at once.

What a comma or a point in a number means is decided for a whole column, by the values that allow one reading only.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover.types import Array, BoolArray, IntArray

EMPTY = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "–", "—"})
CURRENCY = r"(?:[$€£¥₹₩₽₺]|usd|eur|gbp|chf|jpy|cny|cad|aud|sek|nok|dkk|pln|zł|kr\.?)"
SHAPE = re.compile(
    rf"^(\(?)([+-]?)\s*({CURRENCY})?\s*([+-]?)\s*([\d.,' ]*\d[.,]?)\s*(%)?\s*({CURRENCY})?(\)?)$", re.IGNORECASE
)
SCIENTIFIC = re.compile(r"^[+-]?(\d+[.,]?\d*|[.,]\d+)[eE][+-]?\d+$")
DIGITS = re.compile(r"^\d+$")
THOUSANDS = {sign: re.compile(rf"^[1-9]\d{{0,2}}(?:{re.escape(sign)}\d{{3}})+$") for sign in ",. '"}
POINT, COMMA = ".", ","
MARKS = frozenset({"x", "✓", "✔"})  # with these an empty cell means no
YES = frozenset({"1", "1.0", "true", "yes", "y", "t", "on", "treated", "treatment", "chosen"}) | MARKS
NO = frozenset({"0", "0.0", "false", "no", "n", "f", "off", "control", "untreated", "not chosen"})
MISSING = -1
MOST_SPELLINGS = 100  # distinct cells of a column, case included
YES_OR_NO = "1 or 0, yes or no, true or false, Y or N, x or empty"
A_NUMBER = "a finite number, or empty until it is known"


def readable_cells(cells: Any) -> Any:
    """Cells of an arrow array as texts, numbers, truth values or dates; other types become texts.

    Texts that are not UTF-8 are an error of arrow's.
    """
    import pyarrow as pa

    kind = cells.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.array([None if text in ("NaT", "<NA>", "nan") else text for text in map(str, cells.to_pandas())])
    if pa.types.is_dictionary(kind):
        if has_views(kind):
            return pa.array(cells.to_pylist(), pa.string())
        cells, kind = cells.cast(kind.value_type), kind.value_type
    if pa.types.is_nested(kind) or pa.types.is_duration(kind):
        return pa.array([None if one is None else str(one) for one in cells.to_pylist()], pa.string())
    if pa.types.is_string(kind):
        cells.validate(full=True)
    texts = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    # arrow's own conversion of decimals to numbers rounds otherwise than text
    if texts or pa.types.is_null(kind) or pa.types.is_decimal(kind) or str(kind) == "string_view":
        return cells.cast(pa.string())
    return cells


def has_views(kind: Any) -> bool:
    """Whether a type is one of texts as Polars keeps them, which arrow can hardly compute with."""
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(inner) in ("string_view", "binary_view")


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
    return to_numpy(found.indices, -1), texts


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


class NumberText(NamedTuple):
    """A number taken apart."""

    digits: str  # with its points and commas
    negative: bool
    percent: bool
    currency: str


class Unclear(NamedTuple):
    """Why texts of a column are no numbers: which of them, and what is accepted."""

    texts: tuple[str, ...]
    accepted: str


def is_empty(text: str) -> bool:
    """Whether a cell says that there is no value.

    >>> is_empty("N/A"), is_empty("0")
    (True, False)
    """
    return text.casefold() in EMPTY


def take_apart(text: str) -> NumberText | None:
    """The parts of a number; None if it is none.

    >>> take_apart("-€ 1.234,50")
    NumberText(digits='1.234,50', negative=True, percent=False, currency='€')
    """
    clean = re.sub("[\u00a0\u2009\u202f]", " ", text).replace("−", "-").replace("’", "'").strip()
    if SCIENTIFIC.match(clean):
        return NumberText(clean.lstrip("+-"), clean.startswith("-"), False, "")
    found = SHAPE.match(clean)
    if not found:
        return None
    opened, sign, before, inner, digits, percent, after, closed = found.groups()
    if bool(opened) != bool(closed) or (sign and inner) or (before and after) or point_of(digits.strip()) == "?":
        return None
    negative = bool(opened) or "-" in (sign, inner)
    return NumberText(digits.strip(), negative, bool(percent), (before or after or "").casefold())


def point_of(digits: str) -> str:
    """What the digits say about the decimal sign: "." or ","; "" if they fit both; "?" if they fit neither.

    >>> [point_of(text) for text in ("1234", "0.5", "1,5", "1,234", "1,234.5", "1.234.567", "1.2.3")]
    ['', '.', ',', '', '.', ',', '?']
    """
    fits = [sign for sign in (POINT, COMMA) if value_of(digits, sign) is not None]
    return "" if len(fits) == 2 else fits[0] if fits else "?"


def value_of(digits: str, point: str) -> float | None:
    """The number that the digits mean with this decimal sign; None if they do not fit it."""
    mantissa, _, exponent = digits.casefold().partition("e")
    whole, _, fraction = mantissa.partition(point)
    if fraction and not DIGITS.match(fraction):
        return None
    if whole and not DIGITS.match(whole):
        used = {sign for sign in whole if not sign.isdigit()}
        if len(used) != 1 or not THOUSANDS[used.pop()].match(whole):
            return None
        whole = re.sub(r"\D", "", whole)
    return float(f"{whole or 0}.{fraction or 0}e{exponent or 0}") if whole or fraction else None


def evidence(texts: Iterable[str]) -> set[str]:
    """The decimal signs that some of the texts allow only."""
    parts = (take_apart(text) for text in texts if not is_empty(text))
    return {point_of(part.digits) for part in parts if part is not None} & {POINT, COMMA}


def parse_numbers(
    texts: Sequence[str], point: str | None = None, elsewhere: frozenset[str] = frozenset()
) -> Array | Unclear:
    """The numbers of a column's distinct texts, NaN for empty ones; or why they are not clear.

    point: the decimal sign, if it was given. elsewhere: the decimal signs that the rest of the table shows.

    >>> parse_numbers(["1.234", "0,5", ""])
    array([1.234e+03, 5.000e-01,       nan])
    >>> print(parse_numbers(["1,234", "2,500"]).accepted)
    clear whether it is 1234 or 1.234: say which with --decimal point or --decimal comma
    """
    parts = [None if is_empty(text) else take_apart(text) for text in texts]
    bad = [text for text, part in zip(texts, parts, strict=True) if part is None and not is_empty(text)]
    if bad:
        return Unclear(tuple(bad), A_NUMBER)
    known = [part for part in parts if part is not None]
    if mixed := mixed_signs(known):
        return Unclear(texts_like(texts, parts, mixed[0]), mixed[1])
    chosen = point or decided_point(known, elsewhere)
    if chosen is None:
        several = [part for part in known if COMMA in part.digits]
        return Unclear(texts_like(texts, parts, several), unclear_point(several[0]))
    values = [np.nan if part is None else signed_value(part, chosen) for part in parts]
    wrong = [
        text for text, value, part in zip(texts, values, parts, strict=True) if part is not None and np.isnan(value)
    ]
    if wrong:
        sign = "point" if chosen == POINT else "comma"
        return Unclear(tuple(wrong), f"a finite number with a decimal {sign}, as other cells have")
    return np.array(values, np.float64)


def signed_value(part: NumberText, point: str) -> float:
    value = value_of(part.digits, point)
    if value is None or not np.isfinite(value):
        return np.nan
    return (-value if part.negative else value) / (100.0 if part.percent else 1.0)


def texts_like(texts: Sequence[str], parts: Sequence[NumberText | None], some: Sequence[NumberText]) -> tuple[str, ...]:
    """The texts of some of the numbers."""
    wanted = set(some)
    return tuple(text for text, part in zip(texts, parts, strict=True) if part in wanted)


def mixed_signs(known: Sequence[NumberText]) -> tuple[list[NumberText], str] | None:
    """Percent signs on some cells only, or several currencies: these numbers do not belong on one scale."""
    without = [part for part in known if not part.percent and part.digits.strip("0.,")]
    if without and any(part.percent for part in known):
        return without, "written with a percent sign, as other cells are (or all without)"
    currencies = sorted({part.currency for part in known} - {""})
    if len(currencies) > 1:
        other = [part for part in known if part.currency == currencies[1]]
        return other, f"in one currency; there are {' and '.join(currencies)}"
    return None


def decided_point(known: Sequence[NumberText], elsewhere: frozenset[str]) -> str | None:
    """The decimal sign of a column; None if nothing settles it.

    A single point with three digits after it (1.234) is a decimal point unless the rest of the table has commas.
    """
    shown = {point_of(part.digits) for part in known}
    here = shown & {POINT, COMMA}
    if len(here) == 1:
        return here.pop()
    if len(here) == 2:
        return POINT  # the others are reported
    if len(elsewhere) == 1:
        return next(iter(elsewhere))
    return None if any(COMMA in part.digits for part in known) else POINT


def unclear_point(part: NumberText) -> str:
    whole, decimal = (f"{value_of(part.digits, point):.10g}" for point in (POINT, COMMA))
    return f"clear whether it is {whole} or {decimal}: say which with --decimal point or --decimal comma"


def parse_flags(texts: Sequence[str]) -> NDArray[np.int8] | None:
    """1 for yes, 0 for no, -1 for empty; None if a text is none of them or all are empty.

    In a column of marks (x and nothing else) an empty cell means no.

    >>> parse_flags(["Y", "n", ""]), parse_flags(["x", ""]), parse_flags(["1", "2"])
    (array([ 1,  0, -1], dtype=int8), array([1, 0], dtype=int8), None)
    """
    if len(texts) > MOST_SPELLINGS:
        return None
    folded = [text.casefold() for text in texts]
    filled = {text for text in folded if not is_empty(text)}
    if not filled or not filled <= YES | NO:
        return None
    empty = 0 if filled <= MARKS else MISSING
    return np.array([empty if is_empty(text) else int(text in YES) for text in folded], np.int8)


SHOWN = 5  # places of each kind of problem; all are counted


class Problem(NamedTuple):
    """One problem; `row` counts the rows of data from 0, None for a problem of the whole file."""

    row: int | None
    text: str
    line: int | None = None  # where it is known already


class HistoryError(ValueError):
    """A table with problems; `lines` has one line for each cause, with the number of cells and where the first are."""

    def __init__(self, name: str, lines: list[str], count: int, kinds: Sequence[str] = ()) -> None:
        self.summary = f"{name}: {count:,} problem{'s' if count > 1 else ''}; no decision was made"
        super().__init__("\n".join([self.summary, *lines]))
        self.name, self.lines, self.count, self.kinds = name, lines, count, tuple(kinds)

    def renamed(self, old: str, new: str) -> "HistoryError":
        """The same error under another name of the file."""
        lines = [line.replace(old, new) for line in self.lines]
        return HistoryError(self.name.replace(old, new), lines, self.count, self.kinds)


class Problems:
    """Collects problems by kind while a file is read; a kind is one cause, and becomes one line.

    >>> problems = Problems()
    >>> problems.add("number", [4, 9], lambda k: f"z of row {k}: must be a number")
    >>> problems.count, [problem.row for problem in problems.of_kind("number")]
    (2, [4, 9])
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.found: dict[str, list[Problem]] = {}

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def of_kind(self, kind: str) -> list[Problem]:
        return self.found.get(kind, [])

    def add(self, kind: str, items: Any, describe: Callable[[int], str], *, rows: bool = True) -> None:
        """Add problems of one kind; `items` are rows of data (unless rows=False), described only if they are shown."""
        room = max(SHOWN - len(self.of_kind(kind)), 0)
        if len(items):
            self.counts[kind] = self.counts.get(kind, 0) + len(items)
            described = [Problem(int(k) if rows else None, describe(int(k))) for k in items[:room]]
            self.found.setdefault(kind, []).extend(described)

    def add_text(self, kind: str, text: str, line: int | None = None) -> None:
        """Add a problem of the whole file, or of a line that is not a row."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.of_kind(kind)) < SHOWN:
            self.found.setdefault(kind, []).append(Problem(None, text, line))

    def error(self, name: str, places: Callable[[list[int]], Sequence[int | None]], word: str = "") -> HistoryError:
        """The error with all problems; `places` gives the lines of some rows of data."""
        rows = sorted({problem.row for kind in self.found.values() for problem in kind if problem.row is not None})
        where = dict(zip(rows, places(rows), strict=True)) if rows else {}
        lines = []
        for kind, found in self.found.items():
            places_of_kind = [line if row is None else where[row] for row, _, line in found]
            place, count = places_of_kind[0], self.counts[kind]
            text = found[0].text + also(places_of_kind, count, word, [problem.text for problem in found])
            lines.append(f"{name}: {text}" if place is None else f"{name}:{word}{place}: {text}")
        return HistoryError(name, lines, self.count, [kind.partition(" ")[0] for kind in self.found])


def also(places: Sequence[int | None], count: int, word: str, texts: Sequence[str] = ()) -> str:
    """Count the problems of a kind; say where the first are, and what was found there if it differs.

    >>> also([2, 3, 4, 5, 6], 50, "")
    ' (50 like this: lines 2, 3, 4, 5, 6, ...)'
    >>> also([2, 9], 2, "", ["y = 'x': must be a number", "y = '1o': must be a number"])
    " (2 like this: lines 2, 9 with y = '1o')"
    """
    if count == 1:
        return ""
    cells = [text.partition(": must")[0] for text in texts] if count == len(texts) else [""] * len(places)
    found = zip(places, cells, strict=True)
    some = [f"{place}{f' with {cell}' if cell != cells[0] else ''}" for place, cell in found if place is not None]
    more = ", ..." if count > len(some) else ""
    where = f": {word.strip() or 'line'}s {', '.join(some)}{more}" if some else ""
    return f" ({count:,} like this{where})"
