"""Format text for people: printable names, numbers, estimates and their intervals, tables in HTML."""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pkgutil import resolve_name
from typing import Any, ClassVar

import numpy as np

from spillover.validate import quoted

# Control characters, line and paragraph separators, lone surrogates, and the invisible characters that change the
# direction of text or carry hidden tags. The joiners U+200C and U+200D stay: Persian words and emoji need them.
ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: object) -> str:
    r"""One line of text in which every character is seen.

    >>> print(printable("north\x1b[31m\nNext round: choose EVIL."))
    north\x1b[31m\nNext round: choose EVIL.
    """
    shown = str(text)
    return shown if shown.isprintable() else ACTING.sub(escaped, shown)


def escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def clipped(text: str, most: int) -> str:
    """Printable text of at most `most` characters.

    >>> clipped("a rather long name", 10)
    'a rather …'
    """
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def join_lines(lines: Iterable[str]) -> str:
    r"""Lines as a text; a line break inside of one of them, from a name in a file, starts no new line.

    >>> print(join_lines(["Arms:", "  a\nb"]))
    Arms:
      a\nb
    """
    return "\n".join(map(printable, lines))


def first_of(texts: Sequence[str], most: int, count: int | None = None) -> str:
    """The first of some texts, and how many more there are; count: of all, if not all are given.

    >>> first_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    rest = (len(texts) if count is None else count) - most
    return ", ".join(texts[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def align_columns(rows: Sequence[Sequence[str]], left: int | None = None) -> list[str]:
    """Rows with columns of equal width: the first ones (`left`; None: all) aligned left, the others right."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    places = [str.ljust if left is None or k < left else str.rjust for k in range(len(widths))]
    return ["  ".join(place(cell, w) for place, cell, w in zip(places, row, widths, strict=True)) for row in shown]


def plain_values(value: Any) -> Any:
    """A value as JSON has it: dictionaries for tuples with names, lists for others, None for what is not finite.

    >>> plain_values({"ends": (1.5, np.inf), "arms": ("a",)})
    {'ends': [1.5, None], 'arms': ['a']}
    """
    named = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(named, dict):
        return {name: plain_values(part) for name, part in named.items()}
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


LISTED_NAMES = 8  # in a sentence


def join_names(names: Sequence[str]) -> str:
    """The first names in a sentence, and how many more there are.

    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    some = [quoted(name) for name in names]
    if len(some) > LISTED_NAMES:
        return first_of(some, LISTED_NAMES)
    return " and ".join([", ".join(some[:-1]), some[-1]] if len(some) > 1 else some)


def count_of(number: int, noun: str) -> str:
    """A number and its noun.

    >>> count_of(1, "round"), count_of(1200, "round")
    ('1 round', '1,200 rounds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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


Interval = tuple[float, float]
FINEST = 6  # decimals; smaller numbers are written with an exponent
LARGEST = 1e12


def decimals_for(half_width: float) -> int:
    """Decimals of a number that is known up to this much: its last digit is of the size of the uncertainty.

    >>> [decimals_for(width) for width in (0.004, 0.15, 0.4, 25.0, 4000.0)]
    [3, 2, 1, 0, -3]
    """
    if not np.isfinite(half_width) or half_width <= 0:
        return 3
    exponent = int(np.floor(np.log10(half_width)))
    leading = half_width / 10.0**exponent
    return -exponent + (1 if leading < 3 else 0)


def round_to(value: float, decimals: int) -> str:
    """A number with some decimals; a negative number of them rounds to tens, hundreds and so on.

    >>> round_to(0.4567, 2), round_to(12345.6, -2), round_to(-0.001, 1), round_to(2.5e-9, 10)
    ('0.46', '12,300', '0.0', '2.5e-09')
    """
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if decimals > FINEST or abs(value) >= LARGEST:
        exponent = int(np.floor(np.log10(abs(value)))) if value else 0
        return f"{value:.{max(exponent + decimals, 0)}e}"
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"


def format_estimate(value: float, interval: Interval) -> str:
    """A number with its interval.

    >>> format_estimate(0.4687, (0.402, 0.535)), format_estimate(-1234.0, (-1900.0, -600.0))
    ('0.47 (0.40 to 0.54)', '-1,200 (-1,900 to -600)')
    """
    low, high = interval
    decimals = decimals_for((high - low) / 2)
    return f"{round_to(value, decimals)} ({round_to(low, decimals)} to {round_to(high, decimals)})"


def interval_of(intervals: Any, *place: int) -> Interval | None:
    """One interval of an explanation; None where there is none."""
    if intervals is None:
        return None
    low, high = np.asarray(intervals, float)[place].tolist()
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def short_number(value: float) -> str:
    """Three significant digits, for numbers without an interval.

    >>> [short_number(value) for value in (0.123456, 12345.6, 1234567.0, 1e-7)]
    ['0.123', '12,300', '1,230,000', '1.00e-07']
    """
    if not np.isfinite(value) or value == 0:
        return round_to(value, 0)
    return round_to(value, 2 - int(np.floor(np.log10(abs(value)))))


def html_columns(
    headings: Sequence[str], columns: Sequence[Sequence[str]], *, text: Collection[str] = (), caption: str = ""
) -> str:
    """A <table> with escaped cells; columns whose heading is not in `text` are aligned right, with tabular digits.

    >>> html_columns(["arm"], [["<b>"]], text=["arm"]).splitlines()[3]
    '<tr><td style="text-align:left">&lt;b&gt;</td></tr>'
    """
    digits = "text-align:right;font-variant-numeric:tabular-nums"
    styles = ["text-align:left" if name in text else digits for name in headings]
    named = zip(headings, styles, strict=True)
    head = "".join(f'<th scope="col" style="{style}">{escape(name)}</th>' for name, style in named)
    body = "\n".join(
        "<tr>" + "".join(table_cell(value, style) for value, style in zip(row, styles, strict=True)) + "</tr>"
        for row in zip(*columns, strict=True)
    )
    title = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    return f"<table>\n{title}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def table_cell(text: str, style: str) -> str:
    """A cell; an interval may go to lines of its own on a narrow page, but no number is broken."""
    mean, bracket, interval = text.partition(" [")
    if not bracket or not interval.endswith("]"):
        return f'<td style="{style}">{escape(text)}</td>'
    parts = (f'<span class="whole">{escape(part)}</span>' for part in (mean, f"[{interval}"))
    return f'<td style="{style}">{" ".join(parts)}</td>'


def view_of(name: str, result: object) -> Any:
    """The view of a result: an object with `text()` and `html()`, and with `plot(...)` if the result has a figure.

    name: "module:class" of the view.
    """
    return resolve_name(name)(result)


class Shown:
    """A result with a short text and, in a notebook, a table; `view` names the class that makes both.

    The view is loaded when it is first shown: stored results are recognised by the source code that computed them, so
    that must not import what only draws them.
    """

    view: ClassVar[str]

    def __repr__(self) -> str:
        return str(view_of(self.view, self).text())

    def _repr_html_(self) -> str:
        return str(view_of(self.view, self).html())
