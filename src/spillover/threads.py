"""Work divided among threads, for compiled code, which runs beside other threads."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Result = TypeVar("Result")


def cores() -> int:
    """How many processors this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def shares(first: int, count: int, threads: int) -> list[tuple[int, int]]:
    """Consecutive shares of `count` things from `first` on, one for each thread: (first, count), none of them empty.

    >>> shares(10, 5, 2)
    [(10, 3), (13, 2)]
    """
    threads = min(threads, count)
    cuts = [first + (count * k + threads - 1) // threads for k in range(threads + 1)]
    return [(start, end - start) for start, end in pairwise(cuts)]


def side_by_side(work: Callable[[int, int], Result], parts: Sequence[tuple[int, int]]) -> list[Result]:
    """The results of all parts, in their order, each from a thread of its own."""
    if len(parts) == 1:
        return [work(*parts[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(work, *zip(*parts, strict=True)))
