"""What docs/command-line.md shows is what the command takes."""

import re
import shlex
from pathlib import Path

import click
import pytest

from spillover.cli import main
from spillover.experiments import parse_experiment
from spillover.experiments.parse import parse_search

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
FILES = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("spillover")])
def test_every_line_is_understood(line) -> None:
    found: click.Command = main
    name, *words = shlex.split(line, comments=True)
    while isinstance(found, click.Group):
        name, *words = words
        found = found.commands[name]
    found.make_context(name, words)


def test_every_command_is_in_the_table() -> None:
    for name in main.commands:
        assert f"| `spillover {name}" in TEXT


def test_the_files_are_understood() -> None:
    study, grid = FILES
    assert parse_experiment(study).name == "my-study"
    assert len(parse_search(grid).cells) == 3 * 8
