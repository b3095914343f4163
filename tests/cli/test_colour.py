"""Colour where a terminal has it."""

import io

import click
import pytest

from spillover.cli import output

ANSWER = "Next round: choose a.\n\n  a  1.0\nWarning: old data.\nNote: a note."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_the_user_decides(environment, wanted, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.has_colour(Terminal()) is wanted
    assert not output.has_colour(io.StringIO())


def test_colour_changes_no_word():
    painted = output.painted(ANSWER)
    assert click.unstyle(painted) == ANSWER
    assert [line.startswith("\x1b[") for line in painted.splitlines()] == [True, False, False, True, True]


def test_no_colour_in_a_pipe(capsys):
    output.print_answer(ANSWER)
    assert capsys.readouterr().out == ANSWER + "\n"
