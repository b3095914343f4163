"""Yes or no, as people write it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spillover.history.number_text import is_empty

MARKS = frozenset({"x", "✓", "✔"})  # with these an empty cell means no
YES = frozenset({"1", "1.0", "true", "yes", "y", "t", "on", "treated", "treatment", "chosen"}) | MARKS
NO = frozenset({"0", "0.0", "false", "no", "n", "f", "off", "control", "untreated", "not chosen"})
MISSING = -1
MOST_SPELLINGS = 100  # distinct cells of a column, case included
ACCEPTED = "1 or 0, yes or no, true or false, Y or N, x or empty"


def parse_flags(texts: Sequence[str]) -> NDArray[np.int8] | None:
    """1 for yes, 0 for no, -1 for empty; None if a text is none of them or all are empty.

    In a column of marks (x and nothing else) an empty cell means no.

    >>> parse_flags(["Y", "n", ""]), parse_flags(["x", ""]), parse_flags(["1", "2"])
    (array([ 1,  0, -1], dtype=int8), array([1, 0], dtype=int8), None)
    """
    if len(texts) > MOST_SPELLINGS:
        return None
    folded = [text.casefold() for text in texts]
    filled = {text for text in folded if not is_empty(text)}
    if not filled or not filled <= YES | NO:
        return None
    empty = 0 if filled <= MARKS else MISSING
    return np.array([empty if is_empty(text) else int(text in YES) for text in folded], np.int8)
