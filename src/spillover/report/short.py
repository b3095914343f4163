"""The first section of a page: a few sentences that say what to take away, then the main numbers."""

from collections.abc import Sequence
from html import escape

import pandas as pd

from spillover import validate
from spillover.report.tables import html_table


def short_body(sentences: Sequence[str], numbers: pd.DataFrame, caption: str = "") -> str:
    """Three or four points of a sentence or more, then a small table; columns without numbers are text.

    >>> print(short_body(["It works.", "It is fast.", "It is tested."], pd.DataFrame({"tests": [3]}))[:46])
    <p>It works. It is fast. It is tested.</p><div
    """
    whole = len(sentences) in (3, 4) and all(sentence.endswith(".") for sentence in sentences)
    validate.require(whole, "sentences", list(sentences), "three or four, each with its full stop")
    text = [str(name) for name in numbers.columns if not numbers[name].map(has_number).any()]
    table = html_table(numbers, caption=caption, text=text)
    return f'<p>{escape(" ".join(sentences))}</p><div class="wide">{table}</div>'


def has_number(cell: object) -> bool:
    """Whether a cell starts with a number."""
    return str(cell).lstrip("+−-")[:1].isdigit()
