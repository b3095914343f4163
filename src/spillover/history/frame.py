"""A whole table in memory, and what the cells of its columns can be read as."""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.history.cells import (
    NO,
    YES,
    HistoryError,
    Problems,
    Unclear,
    as_floats,
    clear_text,
    encoded,
    evidence,
    has_views,
    is_empty,
    not_null,
    parse_flags,
    parse_numbers,
    quote_cell,
    readable_cells,
    take_apart,
)
from spillover.history.files import OpenTable, batches, check_utf8, csv_error, typed_cells
from spillover.history.rounds import TWO_ORDERS, AskOrder, Rounds, parse_rounds
from spillover.types import Array, BoolArray, IntArray

SAMPLE = 50  # distinct cells that show whether a column may hold rounds
INDEX = re.compile(r"__index_level_\d+__")
MOST_ROWS = 100_000_000  # a decision from so many takes minutes and more than 6 GB of memory
MOST_CELLS = 500_000_000


@dataclass(frozen=True)
class Style:
    """Decimal sign and order of dates, where a cell alone does not settle them."""

    point: str | None = None  # the decimal sign, if it was given
    dates: str | None = None  # "day-first" or "month-first", if it was given
    elsewhere: frozenset[str] = frozenset()  # the decimal signs that some cells of the table allow only


PLAIN_STYLE = Style()  # nothing given, nothing shown


@dataclass(frozen=True, eq=False)
class Column:
    """A named column; everything else is derived from its cells when it is needed."""

    name: str
    cells: Any  # an arrow array of texts, numbers, truth values or dates
    style: Style = PLAIN_STYLE

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def encoded(self) -> tuple[IntArray, list[str]]:
        """For every row the position of its text, -1 where it is empty; and the distinct texts."""
        return encoded(self.cells)

    @property
    def texts(self) -> list[str]:
        return self.encoded[1]

    def by_text(self, values: Any, empty: Any) -> Any:
        """A value for every row: that of its text among `values`, one for each text, or `empty`."""
        return np.append(np.asarray(values, np.asarray(empty).dtype), empty)[self.encoded[0]]

    @cached_property
    def is_typed(self) -> bool:
        """Whether the cells are numbers or truth values, not texts that may be some."""
        from pyarrow import types

        kind = self.cells.type
        return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))

    @cached_property
    def numbers(self) -> Array | Unclear:
        """The number in every row, NaN where it is empty; or why they are none."""
        quick = self.quick_numbers
        if quick is not None:
            return quick
        found = parse_numbers(self.texts, self.style.point, self.style.elsewhere)
        return self.by_text(found, np.nan) if isinstance(found, np.ndarray) else found

    @cached_property
    def quick_numbers(self) -> Array | None:
        """Cells that arrow reads as finite numbers; None if there are others."""
        import pyarrow as pa

        if pa.types.is_temporal(self.cells.type):
            return None
        try:
            if pa.types.is_dictionary(self.cells.type):
                found = self.by_text(as_floats(self.cells.dictionary.cast(pa.float64(), safe=False)), np.nan)
            else:
                found = as_floats(self.cells.cast(pa.float64(), safe=False))  # rounded, as text is
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        commas = self.style.point == "," or "," in self.style.elsewhere  # then 1.234 is not 1 and a bit
        clear = not np.isinf(found).any() and (self.is_typed or not commas)
        return found if clear else None

    @property
    def is_number(self) -> bool:
        return self.seems_number and isinstance(self.numbers, np.ndarray)

    @cached_property
    def may_be_number(self) -> bool:
        """Whether some of the first cells are numbers: most columns of texts are ruled out quickly."""
        if self.quick_numbers is not None:
            return True
        some = [text for text in self.texts[: 2 * SAMPLE] if not is_empty(text)]
        return any(take_apart(text) is not None for text in some)

    @cached_property
    def seems_number(self) -> bool:
        """Whether most cells are numbers, or most different ones: the others are mistakes, to be reported."""
        if self.is_blank or self.is_typed or not self.may_be_number:
            return self.is_typed and not self.is_blank
        found = self.numbers
        if isinstance(found, np.ndarray):
            return True
        return self.are_few({text for text in found.texts if take_apart(text) is None})

    @cached_property
    def seems_flag(self) -> bool:
        """Whether most cells are yes or no, or most different ones: the others are mistakes, to be reported."""
        if self.flags is not None or self.is_typed:
            return self.flags is not None
        return self.are_few({text for text in self.texts if not is_empty(text) and text.casefold() not in YES | NO})

    def are_few(self, bad: set[str]) -> bool:
        """Whether texts are less than half of the cells, of which there are two kinds at least, or of their kinds."""
        good = {text for text in self.texts if not is_empty(text)} - bad
        wrong = self.by_text([text in bad for text in self.texts], False)
        often = len(good) > 1 and 2 * int(wrong.sum()) < int(self.filled.sum())
        return often or len(bad) < len(good)

    @cached_property
    def shows(self) -> set[str]:
        """The decimal signs that some cells allow only."""
        plain = self.quick_numbers is not None or self.is_typed
        return set() if plain or not self.may_be_number else evidence(self.texts)

    @cached_property
    def flags(self) -> NDArray[np.int8] | None:
        """1 for yes, 0 for no, -1 for empty; None if the cells are none of these."""
        if self.is_typed:
            values = self.quick_numbers
            good = (
                values is not None and not self.is_blank and bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())
            )
            return np.where(np.isnan(values), -1, values).astype(np.int8) if good and values is not None else None
        found = parse_flags([*self.texts, ""])
        return None if found is None else found[self.encoded[0]]

    @cached_property
    def parsed_rounds(self) -> Rounds | None:
        """The distinct texts as rounds, some perhaps unreadable; None if few of them are, or their order is unclear."""
        filled = [text for text in self.texts if text]
        try:
            for some in (filled[:SAMPLE], filled):  # most columns are no rounds, and may be long
                found = parse_rounds(some, self.style.dates)
                if 2 * sum(value is not None for value in found.values) < max(len(some), 1):
                    return None
        except AskOrder:
            return None
        return found

    @cached_property
    def rounds(self) -> Rounds | None:
        """The distinct texts as rounds of one kind; None if some of them are none."""
        found = self.parsed_rounds
        whole = found is not None and all(value is not None for value in found.values)
        return found if found and whole and len({type(value) for value in found.values}) == 1 else None

    @cached_property
    def asks_order(self) -> bool:
        """Whether these are dates whose order of day and month is not clear."""
        filled = [text for text in self.texts if text]
        if not TWO_ORDERS.fullmatch(filled[0].strip() if filled else ""):
            return False
        try:
            parse_rounds(filled, self.style.dates)
        except AskOrder:
            return True
        return False

    @cached_property
    def filled(self) -> BoolArray:
        """Which cells have a value."""
        if self.is_typed:
            values = self.quick_numbers
            return not_null(self.cells) if values is None else ~np.isnan(values)
        return np.asarray(self.by_text([not is_empty(text) for text in self.texts], False))

    @property
    def is_blank(self) -> bool:
        return not bool(self.filled.any())

    @property
    def says_missing(self) -> BoolArray:
        """Which cells have a text, such as NA, or no number (NaN) that says that there is no value."""
        if self.quick_numbers is not None:
            return np.isnan(self.quick_numbers) & not_null(self.cells)
        return np.asarray(self.by_text([bool(text) and is_empty(text) for text in self.texts], False))

    def quoted(self, row: int) -> str:
        """A cell as it is quoted in a message."""
        return quote_cell(self.cells[row].as_py())

    @cached_property
    def codes(self) -> IntArray:
        """For every row the number of its text, the same for equal texts; -1 where it is empty."""
        first: dict[str, int] = {}
        own = [first.setdefault(text, k) if text else -1 for k, text in enumerate(self.texts)]
        return np.asarray(self.by_text(own, np.int32(-1)))

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same text, and none is empty."""
        return (
            len(self.texts) >= len(self) and len(np.unique(self.codes)) == len(self) and bool((self.codes >= 0).all())
        )


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns of equal length, and where their rows are in the file."""

    table: OpenTable
    columns: tuple[Column, ...]
    rows: int
    kept: Any = None  # the rows of the table that are not blank; None: all
    broken: bool = False  # whether there are rows with more or fewer values than columns, which are left out

    @property
    def name(self) -> str:
        """The table's name in messages."""
        return str(self.table.path)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def __getitem__(self, name: str) -> Column:
        return self.by_name[name]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def error(self, problems: Problems) -> HistoryError:
        """The error with all problems of the table."""
        return self.table.error(
            problems, lambda rows: self.table.lines(rows if self.kept is None else self.kept[rows].tolist())
        )

    def styled(self, style: Style) -> "Frame":
        """The table with what the cells of all columns say about how they are written."""
        shown: set[str] = set().union(*(column.shows for column in self.columns)) if self.columns else set()
        known = replace(style, elsewhere=frozenset(shown))
        if known == PLAIN_STYLE:
            return self
        return replace(self, columns=tuple(replace(column, style=known) for column in self.columns))


def read_frame(table: OpenTable, progress: Callable[[int], None], plain: Mapping[str, int] | None = None) -> Frame:
    """The columns of a table in memory; rows without any value are left out.

    plain: the places of the only columns wanted, by their meaning in the plain form; they take little memory.
    """
    import pyarrow as pa

    name = str(table.path)
    places = list(range(len(table.names)) if plain is None else plain.values())
    data, broken = whole_table(table, progress, places, plain)
    given = [table.names[place] for place in places]
    labels, columns = clear_names(given, data) if plain is None else list(given), []
    for place, label in enumerate(labels):
        whole = data.column(place).combine_chunks()
        if isinstance(whole, pa.ChunkedArray):  # too large for one array
            raise ValueError(f"{name}: column {label!r} is too large: keep the latest rounds: old ones hardly matter")
        if label is not None:
            try:
                columns.append(Column(label, whole if table.layout else readable_cells(whole)))
            except pa.ArrowInvalid:
                raise ValueError(f"{name}: column {label!r} is not all UTF-8: must be UTF-8 text") from None
    doubled = {label: count for label, count in Counter(labels).items() if label is not None and count > 1}
    if doubled:
        label = min(doubled)
        raise ValueError(f"{name}: column {label!r} appears {doubled[label]} times: must appear once")
    kept = filled_rows(columns, data.num_rows)
    if kept is None:
        return Frame(table, tuple(columns), data.num_rows, broken=broken)
    columns = [Column(column.name, column.cells.take(kept)) for column in columns]
    return Frame(table, tuple(columns), len(kept), kept, broken)


def whole_table(
    table: OpenTable, progress: Callable[[int], None], places: Sequence[int], plain: Mapping[str, int] | None
) -> tuple[Any, bool]:
    """The columns at some places as an arrow table, and whether rows of another width were left out.

    The cells of a CSV file are texts. Those of the plain form are numbers, and positions in a list of texts, if they
    can be; if not, all are texts, and rows of another width are left out: every problem is reported, with those too.
    """
    import pyarrow as pa

    if table.layout is None:
        return joined_batches(table, progress, places), False
    types: dict[int, Any] = {}
    for meaning, place in (plain or {}).items():
        types[place] = pa.float64() if meaning in ("z", "y") else pa.dictionary(pa.int32(), pa.string())
    broken: list[int] = []

    def skip(row: Any) -> str:
        broken.append(row.actual_columns)
        return "skip"

    try:
        if plain is not None:
            with suppress(pa.ArrowInvalid, OSError, EOFError):
                found = joined_batches(table, progress, places, types=types)
                if all(is_finite(part) for part in chain(*(column.chunks for column in found.columns))):
                    return found, False
            check_utf8(table.path)  # before arrow shows rows of a wrong width to Python, as text
        return joined_batches(table, progress, places, skip=None if plain is None else skip), bool(broken)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        raise csv_error(table.layout, error) from None


def is_finite(cells: Any) -> bool:
    """Whether an arrow array has no infinities and no NaN, which messages quote as they are written."""
    if str(cells.type) != "double":
        return True
    return bool((np.isfinite(as_floats(cells)) | ~not_null(cells)).all())


def joined_batches(table: OpenTable, progress: Callable[[int], None], places: Sequence[int], **options: Any) -> Any:
    """All batches as one arrow table. options: those of `csv_batches`."""
    import pyarrow as pa

    parts, rows = [], 0
    for part, read in batches(table, places, **options):
        parts.append(part)
        rows += part.num_rows
        if rows > MOST_ROWS:
            advice = "keep the latest rounds: old ones hardly matter"
            raise ValueError(f"{table.path}: more than {MOST_ROWS:,} rows: must be at most that many ({advice})")
        if rows * len(places) > MOST_CELLS:
            advice = "keep the latest rounds"
            raise ValueError(f"{table.path}: more than {MOST_CELLS:,} cells: must be at most that many ({advice})")
        progress(read)
    if not parts:
        return pa.table([pa.array([], pa.string())] * len(places), [table.names[place] for place in places])
    return pa.Table.from_batches(parts).unify_dictionaries()


def filled_rows(columns: Sequence[Column], rows: int) -> Any:
    """The rows in which some cell has a value; None: all. Spreadsheets write lines with nothing but separators."""
    blank = np.arange(rows)
    for column in columns:
        blank = blank[~column.filled[blank] if column.is_typed else column.codes[blank] < 0]
        if not len(blank):
            return None
    return np.setdiff1d(np.arange(rows), blank) if columns else None


def clear_names(names: Sequence[str], table: Any) -> list[str | None]:
    """Names without blanks around them; None for row labels of pandas that only count the rows."""
    import pyarrow as pa

    found: list[str | None] = []
    for place, name in enumerate(names):
        text = clear_text(joined_levels(str(name)))
        if INDEX.fullmatch(text):
            text = "index" if not pa.types.is_integer(table.schema.field(place).type) else ""
            found.append(text or None)
        else:
            found.append(text or ("rownames" if place == 0 else f"column {place + 1}"))
    return found


def joined_levels(name: str) -> str:
    """A name in several levels, as pandas has them, with points between the levels.

    >>> joined_levels("('sales', 'north')"), joined_levels("('week', '')"), joined_levels("(sales)")
    ('sales.north', 'week', '(sales)')
    """
    if not (name.startswith("(") and name.endswith(")")):
        return name
    try:
        levels = ast.literal_eval(name)
    except (ValueError, SyntaxError):
        return name
    return ".".join(str(level) for level in levels if level != "") if isinstance(levels, tuple) else name


def without_views(table: Any) -> Any:
    """A table with ordinary texts."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if has_views(field.type):
            texts = pa.array(table.column(place).to_pylist(), pa.string())
            table = table.set_column(place, field.name, texts)
    return table


def table_of(given: Any) -> Any:
    """A data frame (pandas, Polars, Arrow: whatever streams Arrow data) or a mapping to columns, as an arrow table."""
    import pyarrow as pa

    accepted = (
        'a path, "-" for standard input, a data frame (pandas, Polars, Arrow) or a mapping from names to columns of '
        "equal length"
    )
    if isinstance(given, Mapping):
        try:
            return pa.table({str(name): typed_cells(list(values)) for name, values in given.items()})
        except (pa.ArrowInvalid, TypeError) as error:
            raise ValueError(f"source = {type(given).__name__}: must be {accepted}: {error}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas, of column names that are numbers
            return without_views(pa.table(given))
    except (TypeError, ValueError, pa.ArrowException):
        pass
    try:  # pandas, with columns of mixed types, such as numbers and texts
        whole = given.reset_index()
        columns = {str(name): list(whole[name]) for name in whole.columns}
        if columns.get("index") == list(range(len(whole))):
            del columns["index"]  # it only counts the rows
        return pa.table({name: typed_cells(values) for name, values in columns.items()})
    except (AttributeError, TypeError, ValueError, KeyError, pa.ArrowException):
        raise ValueError(f"source = {type(given).__name__}: must be {accepted}") from None
