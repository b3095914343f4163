"""Whether the texts of a figure can be read: inside the page, and not on top of each other."""

from itertools import combinations
from typing import Any
from unittest.mock import patch

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def texts(figure: Figure) -> dict[str, Bbox]:
    """Where each text is that is really drawn, in pixels; the same word in two places counts twice.

    Asking the figure for its texts would not do: it also keeps tick labels beyond the limits of an axis.
    """
    met: list[Text] = []
    draw = Text.draw

    def note(self: Text, renderer: Any, *arguments: Any, **options: Any) -> None:
        met.append(self)
        draw(self, renderer, *arguments, **options)

    with patch.object(Text, "draw", note):
        figure.canvas.draw()
    shown = [text for text in met if text.get_visible() and text.get_text().strip()]
    return {f"{k}: {text.get_text()}": Text.get_window_extent(text) for k, text in enumerate(shown)}


def faults(figure: Figure, slack: float = 1.0) -> list[str]:
    """What cannot be read, in words."""
    page = figure.bbox
    boxes = texts(figure)
    wrong = [
        f"{name!r} leaves the page"
        for name, box in boxes.items()
        if box.x0 < -slack or box.y0 < -slack or box.x1 > page.x1 + slack or box.y1 > page.y1 + slack
    ]
    for (one, first), (other, second) in combinations(boxes.items(), 2):
        width = min(first.x1, second.x1) - max(first.x0, second.x0)
        height = min(first.y1, second.y1) - max(first.y0, second.y0)
        if width > slack and height > slack:
            wrong.append(f"{one!r} and {other!r} overlap")
    return wrong
