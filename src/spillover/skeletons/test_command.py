"""example-command is called, prints tables and JSON, and refuses nonsense in a line."""

import json
from typing import Any

from click.testing import CliRunner

from spillover.cli import main


def call(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["spillover.skeletons.command:example_command", *arguments])


def test_it_prints_a_table() -> None:
    result = call("--rounds", "50")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split() == ["policy", "final", "regret"]


def test_programs_get_json() -> None:
    found = json.loads(call("--policy", "ndc-sem", "--json").stdout)
    assert found["ndc-sem"] < found["random"]


def test_an_error_is_one_line() -> None:
    result = call("--policy", "ndcsem")
    assert result.exit_code == 2
    assert "did you mean ndc-sem?" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_help_has_examples() -> None:
    assert "Examples:" in call("--help").stdout
