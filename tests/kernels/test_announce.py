"""A message on the terminal while kernels are compiled."""

import io
import os
import subprocess
import sys

import numba
import pytest

from spillover.cli.output import ProgressBar
from spillover.kernels import silence
from spillover.kernels.compiling import ANNOUNCER, KERNELS, Counter, announced

LINE = "spillover: compiling first, which may take about a minute, once only\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def put_in_place(stream: io.StringIO, monkeypatch) -> io.StringIO:
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def compile_something() -> None:
    ready = numba.njit(lambda x: x + 1)
    assert ready(1) == 2
    assert ready(1.5) == 2.5  # compiled again, for another type


def test_a_kernel_that_is_compiled_is_announced_once(monkeypatch) -> None:
    terminal = put_in_place(Terminal(), monkeypatch)
    with announced(34):
        compile_something()
    shown = terminal.getvalue()
    assert shown.count("compiling kernel") == 1
    assert " of 34 " in shown
    assert shown.endswith("\r")  # and the line is empty again
    assert shown.split("\r")[-2].strip() == ""


def test_nothing_is_said_when_piped(monkeypatch) -> None:
    pipe = put_in_place(io.StringIO(), monkeypatch)
    with announced(34):
        compile_something()
    with Counter(3) as counter:
        counter.advance(2)
    assert pipe.getvalue() == ""


def test_nothing_is_said_without_stderr(monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with announced(34):
        compile_something()


def test_what_is_compiled_already_is_not_announced(monkeypatch) -> None:
    terminal = put_in_place(Terminal(), monkeypatch)
    ready = numba.njit(lambda x: x + 1)
    ready(1)
    with announced(34):
        ready(1)
    assert terminal.getvalue() == ""


def test_silence(monkeypatch) -> None:
    terminal = put_in_place(Terminal(), monkeypatch)
    with silence(), announced(34):
        compile_something()
    with ProgressBar(quiet=True), announced(34):
        compile_something()
    assert terminal.getvalue() == ""
    with ProgressBar(quiet=False), announced(34):
        compile_something()
    assert "compiling kernel" in terminal.getvalue()


def test_kernels_of_other_processes_are_counted(monkeypatch) -> None:
    terminal = put_in_place(Terminal(), monkeypatch)
    with Counter(34) as counter:
        counter.advance(6)
        counter.advance(28)
    lines = [line.strip() for line in terminal.getvalue().split("\r") if line.strip()]
    assert lines == ["compiling kernel 1 of 34 (once only)", "compiling kernel 7 of 34 (once only)"]


def test_many_kernels_are_announced_in_one_line_when_piped(monkeypatch) -> None:
    piped = put_in_place(io.StringIO(), monkeypatch)
    monkeypatch.setattr(ANNOUNCER, "said", False)
    with silence():
        ANNOUNCER.say_once()
    assert piped.getvalue() == ""
    ANNOUNCER.say_once()
    ANNOUNCER.say_once()
    assert piped.getvalue() == LINE
    terminal = put_in_place(Terminal(), monkeypatch)
    monkeypatch.setattr(ANNOUNCER, "said", False)
    ANNOUNCER.say_once()  # where each kernel is shown
    assert terminal.getvalue() == ""


def test_a_command_that_compiles_says_so_in_one_line_when_piped(monkeypatch) -> None:
    piped = put_in_place(io.StringIO(), monkeypatch)
    monkeypatch.setattr(ANNOUNCER, "said", False)
    with ProgressBar(quiet=True), announced(34):
        compile_something()
    assert piped.getvalue() == ""
    for _ in range(2):
        with ProgressBar(quiet=False), announced(34):
            compile_something()
    assert piped.getvalue() == LINE


@pytest.mark.long
def test_a_cold_cache_is_announced_on_a_terminal_and_nowhere_else(tmp_path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", "from spillover import kernels; kernels.play; kernels.best_arms"]
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    subprocess.run(command, stderr=theirs, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert f"compiling kernel 1 of {len(KERNELS)}" in shown
    assert f"compiling kernel 2 of {len(KERNELS)}" in shown
    for path in tmp_path.rglob("*.nb?"):
        path.unlink()
    piped = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert piped.stderr == b""
