"""Divide work among the processors that this process may use."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Result = TypeVar("Result")


def cores() -> int:
    """Count the processors that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def shares(first: int, count: int, threads: int) -> list[tuple[int, int]]:
    """Divide `count` things from `first` on into consecutive shares (first, count), one a thread, none of them empty.

    >>> shares(10, 5, 2)
    [(10, 3), (13, 2)]
    """
    threads = min(threads, count)
    cuts = [first + (count * k + threads - 1) // threads for k in range(threads + 1)]
    return [(start, end - start) for start, end in pairwise(cuts)]


def side_by_side(work: Callable[[int, int], Result], parts: Sequence[tuple[int, int]]) -> list[Result]:
    """Work on all parts, each in a thread of its own, and return the results in their order; for compiled code."""
    if len(parts) == 1:
        return [work(*parts[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(work, *zip(*parts, strict=True)))
