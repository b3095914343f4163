"""Ask what the machine has, as this process may use it, and divide work among its processors."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
OWN_LIMITS = Path("/proc/self/limits")
Result = TypeVar("Result")


def memory() -> int | None:
    """Bytes of memory that this process may use: of the machine, its container and its own limit; None if unknown."""
    if sys.platform == "win32":
        return None
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(limit for limit in (physical, *container_limits(), *own_limits()) if limit > 0)


def own_limits(file: Path = OWN_LIMITS) -> list[int]:
    """The limit of this process on its memory, as `ulimit -v` sets it; none where Linux has none, or elsewhere."""
    try:
        found = re.search(r"^Max address space +(\d+)", file.read_text("utf-8"), re.MULTILINE)
    except OSError:
        return []
    return [int(found[1])] if found else []


def container_limits(own: Path = OWN_CGROUP, groups: Path = CGROUPS) -> list[int]:
    """The limits of the control groups that this process is in, innermost first; none where there are none."""
    try:
        lines = own.read_text("utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, place = line.split(":", 2)
        old = "memory" in controllers.split(",")
        root, name = (groups / "memory", "memory.limit_in_bytes") if old else (groups, "memory.max")
        if old or not controllers:
            inside = root / place.lstrip("/")
            folders = [folder for folder in (inside, *inside.parents) if root in (folder, *folder.parents)]
            found += [limit_in(folder / name) for folder in folders]
    return [limit for limit in found if limit is not None]


def limit_in(file: Path) -> int | None:
    """The number in a file; None if it has none, as `max` is."""
    try:
        return int(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def in_words(size: float) -> str:
    """A number of bytes for people.

    >>> in_words(3.2e9), in_words(5e5)
    ('3.2 GB', '1 MB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{max(size / 1e6, 1):,.0f} MB"


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
