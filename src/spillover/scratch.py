"""Memory that kernels of many arms work in, over and over.

The operating system hands out large blocks of memory page by page, as they are first written to. For a line of 100,000
numbers that takes longer than to fill it, and a kernel that asks for new memory in every round pays each time.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scratch(threading.local):
    """Arrays by name, for each thread its own, each as large as it was last asked for."""

    def __init__(self) -> None:
        self.held: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any = float, batch: tuple[int, ...] = ()) -> NDArray[Any]:
        """An array that is zero when it is first used; whoever relies on that leaves it so.

        batch: of a kernel, whose rows use the same memory one after another.

        >>> scratch = Scratch()
        >>> scratch.array("line", (3,)) is scratch.array("line", (3,))
        True
        """
        found = self.held.get(name)
        if found is None or found.shape != shape or found.dtype != dtype:
            found = self.held[name] = np.zeros(shape, dtype)
        if not batch:
            return found
        return np.ndarray((*batch, *shape), dtype, found, 0, (*(0 for _ in batch), *found.strides))


SCRATCH = Scratch()
