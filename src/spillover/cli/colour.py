"""Colour on terminals: the decision stands out, and so do warnings. None when piped, or where NO_COLOR is set."""

import os
import re
import sys
from typing import Any, TextIO

import click

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
