"""Numbers as text, alike in every table, page and notebook."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def estimate_text(mean: float, low: float, high: float) -> str:
    """A mean with its interval, in four digits; without the interval where there is none.

    >>> estimate_text(531.27, 498.1, 564.9), estimate_text(-0.0123, -0.2, 0.1761), estimate_text(3.0, np.nan, np.nan)
    ('531.3 [498.1, 564.9]', '−0.0123 [−0.2000, 0.1761]', '3')
    """
    numbers = [float(value) for value in (mean, low, high) if np.isfinite(value)]
    largest = max(map(abs, numbers), default=0.0)
    least = 1e-3 * max(largest, 1.0) if largest >= 1e-3 else 0.0  # an end that is almost 0 needs no digits of its own
    return short_exponent(format_span(mean, low, high, shared_format([n for n in numbers if abs(n) >= least])))


def format_span(mean: float, low: float, high: float, form: str) -> str:
    """A mean with its interval in a given format."""
    interval = "" if np.isnan(low) else f" [{format_value(low, form)}, {format_value(high, form)}]"
    return format_value(mean, form) + interval


def format_value(value: float, form: str) -> str:
    """A number as text, with a proper minus sign; a dash for NaN."""
    if np.isnan(value):
        return "–"
    text = format(value, form)
    return text.replace("-", "−") if float(value) < 0 else text


def column_texts(values: Iterable[Any]) -> list[str]:
    """The cells of a column as text; all of its numbers that are not whole have the same format."""
    cells = list(values)
    numbers = [float(cell) for cell in cells if isinstance(cell, float | np.floating)]
    form = shared_format(numbers)
    return [
        short_exponent(format_value(float(cell), form)) if isinstance(cell, float | np.floating) else format_cell(cell)
        for cell in cells
    ]


def shared_format(numbers: Sequence[float]) -> str:
    """A format in which all numbers of a column can be read: as many decimals as they have, at most four digits.

    A number that is not 0 is never shown as 0, unless others are in the thousands.

    >>> shared_format([0.985, 0.9]), shared_format([1234.5, 2.0]), shared_format([1e-10, 0.01]), shared_format([1 / 3])
    ('.3f', ',.0f', '.0e', '.4f')
    >>> shared_format([0.001, 10.0])
    '.3f'
    """
    sizes = [abs(number) for number in numbers if np.isfinite(number) and number != 0]
    if not sizes:
        return ".0f"
    if min(sizes) < 1e-3 or max(sizes) >= 1e9:
        return next(form for form in (".0e", ".1e", ".2e", ".3e") if exact(sizes, form) or form == ".3e")
    if max(sizes) >= 1000:
        return ",.0f"
    digits, needed = (int(-np.floor(np.log10(size))) for size in (max(sizes), min(sizes)))
    most = max(min(3 + digits, 4), needed)
    return next(f".{k}f" for k in range(most + 1) if exact(sizes, f".{k}f") or k == most)


def exact(numbers: Sequence[float], form: str) -> bool:
    """Whether a format loses nothing."""
    return all(np.isclose(float(format(number, form)), number, rtol=1e-9, atol=0) for number in numbers)


def short_exponent(text: str) -> str:
    """Exponents without leading zeros.

    >>> short_exponent("1e-06")
    '1e−6'
    """
    return re.sub(r"e([-+])0*(\d)", lambda found: f"e{'−' if found[1] == '-' else ''}{found[2]}", text)


def format_cell(value: Any) -> str:
    """A value as text in a table.

    >>> [format_cell(v) for v in (1e-10, 1234.5, 3, True, "a", float("nan"))]
    ['1e-10', '1,234', '3', 'yes', 'a', '–']
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None:
        return "–"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        size = abs(float(value))
        return format_value(float(value), ",.0f" if 1000 <= size < 1e9 else ".4g")
    return str(value)
