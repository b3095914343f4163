"""Names of arms in pictures: as they are written, and shortened so that they can be told apart."""

import textwrap
from collections.abc import Sequence
from itertools import takewhile

NAMED_NODES = 12  # up to so many arms there is room for names in the graph, else they are numbered
LONG_NAME = 26  # the same for longer names


def short(name: str, most: int) -> str:
    """A long name without its middle: names of a kind begin alike and end differently."""
    if len(name) <= most:
        return name
    tail = most // 2
    return f"{name[: most - 1 - tail].rstrip()}…{name[-tail:].lstrip()}"


def as_written(text: str) -> str:
    """Dollars are no formulas."""
    return text.replace("$", r"\$")


def row_names(names: Sequence[str]) -> list[str]:
    """Names for the bars: of few arms in two lines, of many without their middle, and all of them different."""
    if len(names) <= NAMED_NODES:
        return [textwrap.fill(text, 32) for text in short_names(names, 60)]
    return short_names(names, 30)


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Short names that are all different: where the middle is what differs, it is kept rather than the end."""
    texts = [short(name, most) for name in names]
    for text in {text for text in texts if texts.count(text) > 1}:
        alike = [k for k, other in enumerate(texts) if other == text]
        letters = zip(*(names[k] for k in alike), strict=False)
        same = sum(1 for _ in takewhile(lambda these: len(set(these)) == 1, letters))
        for k in alike:
            texts[k] = around(names[k], same, most)
    return [text if texts.count(text) == 1 else f"{text} ({k + 1})" for k, text in enumerate(texts)]


def around(name: str, place: int, most: int) -> str:
    """The beginning of a name and what stands around a place in it."""
    head, room = most // 4, most - most // 4 - 2
    start = max(place - room // 2, 0)
    if start <= head:
        return f"{name[: most - 1].rstrip()}…"
    return f"{name[:head].rstrip()}…{name[start : start + room].strip()}…"
