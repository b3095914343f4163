"""A column of a table, and what its cells can be read as: yes or no, numbers, rounds, names."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.history.cells import as_floats, encoded, not_null
from spillover.history.flags import NO, YES, parse_flags
from spillover.history.number_text import Unclear, evidence, is_empty, parse_numbers, take_apart
from spillover.history.periods import TWO_ORDERS, AskOrder, Rounds, parse_rounds
from spillover.history.style import PLAIN_STYLE, Style
from spillover.types import Array, BoolArray, IntArray

SAMPLE = 50  # distinct cells that show whether a column may hold rounds


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
        return np.append(found, np.nan)[self.encoded[0]] if isinstance(found, np.ndarray) else found

    @cached_property
    def quick_numbers(self) -> Array | None:
        """Cells that arrow reads as finite numbers; None if there are others."""
        import pyarrow as pa

        if pa.types.is_temporal(self.cells.type):
            return None
        try:
            plain = (
                self.cells.cast(self.cells.type.value_type) if pa.types.is_dictionary(self.cells.type) else self.cells
            )
            found = as_floats(plain.cast(pa.float64(), safe=False))  # rounded, as text is
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
        wrong = np.array([text in bad for text in self.texts] + [False], np.bool_)[self.encoded[0]]
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
        empty = np.array([is_empty(text) for text in self.texts] + [True], np.bool_)
        return np.asarray(~empty[self.encoded[0]])

    @property
    def is_blank(self) -> bool:
        return not bool(self.filled.any())

    @cached_property
    def codes(self) -> IntArray:
        """For every row the number of its text, the same for equal texts; -1 where it is empty."""
        place, texts = self.encoded
        own = np.array([k if text else -1 for k, text in enumerate(texts)] + [-1], np.int64)
        first: dict[str, int] = {}
        for k, text in enumerate(texts):
            if text:
                own[k] = first.setdefault(text, k)
        return np.asarray(own[place])

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same text, and none is empty."""
        return (
            len(self.texts) >= len(self) and len(np.unique(self.codes)) == len(self) and bool((self.codes >= 0).all())
        )
