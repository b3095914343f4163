"""`spillover check`: what a table has, and what can be learned from it."""

import json

import pytest

from spillover.history.example import example_file
from tests.cli.calls import call, refused
from tests.recommendation.tables import wide


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.csv").write_text(example_file())
    wide(1, context=1).to_csv("wide.csv", index=False)
    return tmp_path


def test_the_example() -> None:
    result = call("check", "h.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    words = result.stdout
    assert words.startswith("h.csv: 40 rounds (2026-01-05 to 2026-10-05), 6 arms; 38 rounds with outcomes.\n")
    assert "Exactly 2 arms were chosen in every round" in words
    assert words.endswith("Next: spillover next h.csv --budget 2\n")


def test_columns_are_said_and_the_next_command_runs() -> None:
    words = call("check", "wide.csv", "--context", "price_1", "--minimise").stdout
    assert "chosen_radio" in words
    assert "context" in words
    line = words.splitlines()[-1]
    assert line == "Next: spillover next wide.csv --budget 2 --context price_1 --minimise"
    assert call(*line.split()[2:]).exit_code == 0


def test_for_programs() -> None:
    content = json.loads(call("check", "wide.csv", "--json").stdout)
    assert {column["meaning"] for column in content["columns"]} >= {"chosen", "outcome"}
    assert [arm["arm"] for arm in content["arms"]] == ["posters", "radio", "search", "video"]
    assert {finding["severity"] for finding in content["findings"]} <= {"fine", "note", "warning"}


def test_bad_input() -> None:
    refused(call("check", "none.csv"), "none.csv: No such file or directory")
    assert call("check").exit_code == 2
