"""Names of arms in figures: escaped, and shortened so that they stay distinct."""

import textwrap
from collections.abc import Sequence
from itertools import takewhile

from spillover.formatting import printable

NAMED_NODES = 12  # arms that may have names in the graph; more are numbered
LONG_NAME = 26  # letters of a name in the graph; with longer names arms are numbered


def shorten(name: str, most: int) -> str:
    """A long name without its middle: similar names often differ at the end."""
    if len(name) <= most:
        return name
    tail = most // 2
    return f"{name[: most - 1 - tail].rstrip()}…{name[-tail:].lstrip()}"


def as_written(text: str) -> str:
    """Escape dollar signs, which would start a formula, and characters that are not seen."""
    return "\n".join(printable(line) for line in text.split("\n")).replace("$", r"\$")


def row_names(names: Sequence[str]) -> list[str]:
    """Distinct names for the bars: in two lines for few arms, shortened for many."""
    if len(names) <= NAMED_NODES:
        return [textwrap.fill(text, 32) for text in short_names(names, 60)]
    return short_names(names, 30)


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Distinct short names: where names differ in the middle, the middle is kept rather than the end."""
    names = [printable(name) for name in names]
    texts = [shorten(name, most) for name in names]
    for text in {text for text in texts if texts.count(text) > 1}:
        alike = [k for k, other in enumerate(texts) if other == text]
        letters = zip(*(names[k] for k in alike), strict=False)
        same = sum(1 for _ in takewhile(lambda these: len(set(these)) == 1, letters))
        for k in alike:
            texts[k] = keep_around(names[k], same, most)
    return [text if texts.count(text) == 1 else f"{text} ({k + 1})" for k, text in enumerate(texts)]


def keep_around(name: str, place: int, most: int) -> str:
    """The beginning of a name and the letters around a position in it."""
    head, room = most // 4, most - most // 4 - 2
    start = max(place - room // 2, 0)
    if start <= head:
        return f"{name[: most - 1].rstrip()}…"
    return f"{name[:head].rstrip()}…{name[start : start + room].strip()}…"
