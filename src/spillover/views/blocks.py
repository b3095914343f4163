"""The parts of a table in a notebook. They have no colours of their own: those of the notebook are used.

Every text is escaped here, so a name may hold anything.
"""

from collections.abc import Collection, Iterable, Sequence
from html import escape

from spillover.formatting import clipped, html_columns, printable

MOST_ROWS = 12
LONGEST_CELL = 60  # characters
WIDTH = 100  # of a line of text


def card(title: str, *parts: str) -> str:
    """A title and what is below it."""
    return f"<div><p><strong>{escape(printable(title))}</strong></p>{''.join(parts)}</div>"


def rows_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, text: Collection[str], what: str) -> str:
    """The first rows, and how many more there are; text: headings of the columns that hold no numbers.

    >>> print(rows_table(["arm"], [["a"]] * 14, text=["arm"], what="arms")[-20:])
    <p>… 2 more arms</p>
    """
    shown = [[clipped(cell, LONGEST_CELL) for cell in row] for row in rows[:MOST_ROWS]]
    table = html_columns(headings, list(zip(*shown, strict=True)) or [()] * len(headings), text=text)
    left = len(rows) - MOST_ROWS
    return table + (f"<p>… {left:,} more {escape(what)}</p>" if left > 0 else "")


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values, one pair a line."""
    lines = (f"{escape(name)}: {escape(clipped(value, 4 * LONGEST_CELL))}" for name, value in pairs)
    return f"<p>{'<br>'.join(lines)}</p>"


def sentences(lines: Sequence[str], most: int = MOST_ROWS) -> str:
    """Sentences, one a line, and how many more there are."""
    if not lines:
        return ""
    shown = [escape(printable(line)) for line in lines[:most]]
    left = [f"… {len(lines) - most:,} more"] if len(lines) > most else []
    return f"<p>{'<br>'.join([*shown, *left])}</p>"


def line(kind: str, *parts: str) -> str:
    """The text of a result on one line, such as "Run(NDCSEM, delay 5)".

    >>> line("Run", "NDCSEM", "", "delay 5")
    'Run(NDCSEM, delay 5)'
    """
    inside = ", ".join(part for part in parts if part)
    return f"{kind}({clipped(inside, WIDTH - len(kind) - 2)})"
