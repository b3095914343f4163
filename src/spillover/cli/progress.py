"""Words on how far a long task is, on stderr."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from spillover import kernels

LARGE = 200_000_000  # bytes: what takes long enough to be announced even where no bar is shown


class Watch:
    """Progress bars, one after the other, if somebody looks; for a large file a line in any case."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.shown = not quiet and sys.stderr.isatty()
        self.bar: Any = None
        self.silence = kernels.silence() if quiet else nullcontext()

    def __enter__(self) -> "Watch":
        self.silence.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.silence.__exit__(None, None, None)
        self.close()

    def reading(self, path: Path) -> Callable[[int], None]:
        """Told how many bytes have been read."""
        size = path.stat().st_size if path.is_file() else 0
        if size > LARGE and not self.quiet and not self.shown:
            click.echo(f"spillover: reading {path}, {size / 1e9:.1f} GB", err=True)
        return self.open(f"reading {path.name}", size, unit="B", unit_scale=True)

    def telling(self, rounds: int) -> Callable[[int], None]:
        """Told how many rounds the policy has been told."""
        return self.open("learning", rounds, unit=" rounds")

    def open(self, what: str, total: int, **look: Any) -> Callable[[int], None]:
        self.close()
        if not self.shown:
            return lambda done: None
        from tqdm import tqdm

        self.bar = tqdm(desc=what, total=total, leave=False, delay=1.0, **look)
        return lambda done: self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
