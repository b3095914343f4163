"""Calling the command, in this process or in one of its own."""

import os
import subprocess
import sys

from click.testing import CliRunner

from spillover.cli import main
from tests.waiting import HANG


def call(*arguments: object):
    """The command in this process: exit_code, stdout, stderr; as on a terminal, escape sequences are not filtered."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], prog_name="spillover", color=True)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def command(*arguments: object) -> list[str]:
    """The command for a process of its own."""
    return [sys.executable, "-W", "error", "-m", "spillover", *(str(a) for a in arguments)]


def outside(*arguments: object, **extra):
    """The command in a process of its own, piped."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=HANG, env=os.environ, **extra)


def refused(result, *parts: str, code: int = 2) -> None:
    """One line on stderr that says what is wrong; nothing on stdout."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("spillover: ")
    for part in parts:
        assert part in lines[0]
