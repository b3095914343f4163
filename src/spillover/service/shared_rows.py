"""Memory that the histories of a stream share, so that a new round does not copy all earlier ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

SPARE = 8  # there is room for one more row in so many
FEWEST_SPARE = 64


class SharedRows:
    """Tables with the same number of rows, made longer in place while rows are only added.

    No row is written twice, so earlier and shorter tables stay as they are.

    >>> rows = SharedRows()
    >>> (first,) = rows.joined([np.zeros((0, 2))], 0, [np.ones((3, 2))])
    >>> (second,) = rows.joined([first], 3, [np.full((1, 2), 7.0)])
    >>> len(first), second[-1], np.shares_memory(first, second)
    (3, array([7., 7.]), True)
    """

    def __init__(self) -> None:
        self.memory: list[Any] = []
        self.filled = 0

    def joined(self, before: Sequence[Any], start: int, parts: Sequence[Any]) -> list[Any]:
        """The first `start` rows of the tables before, followed by others; `before` stays as it is."""
        total = start + len(parts[0])
        if not self.ends_with(before, start) or total > len(self.memory[0]):
            self.memory = [np.empty((with_spare(total), *part.shape[1:]), part.dtype) for part in parts]
            for memory, old in zip(self.memory, before, strict=True):
                memory[:start] = old[:start]
        for memory, part in zip(self.memory, parts, strict=True):
            memory[start:total] = part
        self.filled = total
        return [memory[:total] for memory in self.memory]

    def ends_with(self, before: Sequence[Any], start: int) -> bool:
        """Whether these tables are here, and nothing was written after their first `start` rows."""
        return self.filled == start > 0 and all(
            old.base is memory for old, memory in zip(before, self.memory, strict=True)
        )


def with_spare(rows: int) -> int:
    return rows + max(rows // SPARE, FEWEST_SPARE)
