"""Output on stdout: tables for people, JSON for programs."""

import json
from collections.abc import Sequence
from typing import Any

import click

from spillover.formatting import printable
from spillover.recommendation.json_types import to_json_types

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
