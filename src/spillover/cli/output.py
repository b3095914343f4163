"""Print on stdout and stderr: tables and answers for people, JSON for programs, notes and progress."""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from spillover import kernels
from spillover.formatting import printable
from spillover.recommendation.decide import to_json_types

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def say(line: str) -> None:
    """Print one line; names from files and folders cannot start another one, nor act on the terminal."""
    click.echo(printable(line))


def print_json(content: Any) -> None:
    """Strict JSON: infinities and NaN as the strings "inf" and "nan"."""
    click.echo(json.dumps(to_json_types(content), indent=2, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns; columns of numbers are aligned right."""
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    numbers = [all(is_number(row[k]) for row in rows) for k in range(len(header))]
    for line in lines:
        cells = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(line, widths, numbers, strict=True))
        click.echo("  ".join(cells).rstrip())


def is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()


STYLES = (  # of lines, by how they begin
    (re.compile(r"Warning: |Not yet: "), {"fg": "yellow"}),
    (re.compile(r"Note: |More: |Pending: "), {"dim": True}),
)


def print_answer(text: str) -> None:
    """Print an answer whose first line is the decision."""
    click.echo(painted(text) if has_colour(sys.stdout) else text)


def painted(text: str) -> str:
    """An answer in which the first line and lines with known beginnings have a style."""
    first, *rest = text.split("\n")
    return "\n".join([click.style(first, bold=True), *map(styled, rest)])


def styled(line: str) -> str:
    """A line as its beginning wants it.

    >>> styled("Next best: radio."), styled("Note: all is well.")
    ('Next best: radio.', '\\x1b[2mNote: all is well.\\x1b[0m')
    """
    found: dict[str, Any] = next((style for begins, style in STYLES if begins.match(line)), {})
    return click.style(line, **found) if found else line


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user wants colour (see no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def note(message: str) -> None:
    """One line on stderr that changes nothing."""
    name = click.style("spillover:", bold=True) if has_colour(sys.stderr) else "spillover:"
    print(f"{name} {printable(' '.join(message.split()))}", file=sys.stderr)


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
