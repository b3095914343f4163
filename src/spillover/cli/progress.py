"""Progress of `spillover next` on stderr."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spillover import kernels
from spillover.cli.app import note

LARGE = 200_000_000  # bytes: reading takes long enough to be announced even where no bar is shown


class ProgressBar:
    """One bar after the other if stderr is a terminal; without one, a line each for large files and for compiling."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.visible = not quiet and sys.stderr.isatty()
        self.bar: Any = None
        self.compiling = kernels.silence() if quiet else kernels.awaited()

    def __enter__(self) -> "ProgressBar":
        self.compiling.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.compiling.__exit__(None, None, None)
        self.close()

    def for_reading(self, path: Path) -> Callable[[int], None]:
        """A function to call with the number of bytes read so far."""
        size = path.stat().st_size if path.is_file() else 0
        if size > LARGE and not self.quiet and not self.visible:
            note(f"reading {path}, {size / 1e9:.1f} GB")
        return self.open(f"reading {path.name}", size, unit="B", unit_scale=True)

    def for_learning(self, rounds: int) -> Callable[[int], None]:
        """A function to call with the number of rounds learned so far."""
        return self.open("learning", rounds, unit=" rounds")

    def open(self, title: str, total: int, **options: Any) -> Callable[[int], None]:
        self.close()
        if not self.visible:
            return lambda done: None
        from tqdm import tqdm

        self.bar = tqdm(desc=title, total=total, leave=False, delay=1.0, **options)
        return lambda done: self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
