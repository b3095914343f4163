"""A table in HTML, from columns of text."""

from collections.abc import Collection, Sequence
from html import escape


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
