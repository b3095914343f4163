"""Groups of cells: large enough that sending them costs little, small enough that every worker gets some."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spillover.experiments.pools import Pool
from spillover.experiments.specification import Cell

SHARE = 0.05  # of the time, at most, that may go into sending cells and results
LATEST = 0.5  # weight of the latest time of a cell: the first ones of a worker include loading the kernels


class Pace:
    """How long cells take, from those that are done. Cells of one policy in one world are alike."""

    def __init__(self) -> None:
        self.known: dict[Any, float] = {}

    def kind(self, cell: Cell) -> Any:
        return type(cell.task.policy), cell.world, cell.count

    def learn(self, cell: Cell, seconds: float) -> None:
        kind = self.kind(cell)
        self.known[kind] = LATEST * seconds + (1 - LATEST) * self.known.get(kind, seconds)

    def seconds(self, cell: Cell) -> float:
        """As far as it is known: a kind that was never seen goes alone, as it may take long."""
        return self.known.get(self.kind(cell), float("inf"))


def group_seconds(pool: Pool) -> float:
    """How long a group should take: then workers wait for at most a share of the time, and the pool keeps up with them.

    >>> from spillover.experiments.pools import SerialPool
    >>> group_seconds(SerialPool())
    0.0
    """
    return max(pool.overhead, pool.dispatch * pool.slots()) / SHARE if pool.overhead else 0.0


def groups(cells: Iterable[Cell], pool: Pool, pace: Pace, left: Callable[[], int]) -> Iterator[list[Cell]]:
    """Cells in their order, in groups that are made when they are asked for.

    left: how many cells remain, these included. Towards the end groups get smaller, so that no worker is left with a
    long one while the others have nothing to do.
    """
    group: list[Cell] = []
    expected = 0.0
    for cell in cells:
        group.append(cell)
        expected += pace.seconds(cell)
        if expected >= group_seconds(pool) or len(group) >= left() // (2 * pool.slots()):
            yield group
            group, expected = [], 0.0
    if group:
        yield group
