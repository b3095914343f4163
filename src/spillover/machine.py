"""What the machine has, as this process may use it."""

import os
import re
import sys
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
OWN_LIMITS = Path("/proc/self/limits")


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
