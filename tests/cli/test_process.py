"""The command in a process of its own: exit codes of the process, pipes, terminals, Ctrl-C."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import command, outside
from tests.cli.conftest import GRID, STUDY, WORLD
from tests.waiting import HANG, wait_until

pty = pytest.importorskip("pty")  # terminals and groups of processes: POSIX
termios = pytest.importorskip("termios")


def test_results_go_to_stdout_and_nothing_else_anywhere_when_piped(here) -> None:
    done = outside("run", "my-study.toml", "--jobs", 2, "--no-report", "--json", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["experiment"] == "my-study"


def test_progress_goes_to_a_terminal_on_stderr(here) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    arguments = command("run", "my-study.toml", "--engine", "serial", "--no-report", "--json")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=theirs) as started:
        content, _ = started.communicate(timeout=HANG)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert started.returncode == 0
    assert "replications" in shown
    json.loads(content)


def test_bad_input_ends_with_2_and_no_traceback(here) -> None:
    done = outside("run", "none.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "spillover: none.toml: No such file or directory\n"


def test_a_pipe_that_closes_early_is_no_error(here) -> None:
    shell = f"set -o pipefail; {' '.join(command('policies'))} | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0
    assert done.stdout.startswith("switching-sem (SwitchingSEM)")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("closed", "code", "stdout", "stderr"),
    [
        ("<&-", 2, "", "spillover: stdin: is empty: must have"),
        ("< h.csv >&-", 0, "", ""),
        ("< h.csv 2>&-", 0, "stdin: 1 round", ""),
    ],
)
def test_standard_streams_that_are_closed(closed, code, stdout, stderr, here) -> None:
    (here / "h.csv").write_text("round,arm,chosen,z,y\n1,a,1,0.5,0.5\n1,b,0,,0.1\n")
    shell = f"{' '.join(command('check', '-'))} {closed}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == code
    for found, wanted in ((done.stdout, stdout), (done.stderr, stderr)):
        assert found.startswith(wanted)
        assert bool(found) == bool(wanted)


@pytest.mark.parametrize(
    ("what", "template", "engine"),
    [
        pytest.param("run", STUDY, "serial", marks=pytest.mark.long, id="run-serial"),
        pytest.param("run", STUDY, "loky", marks=pytest.mark.long, id="run-loky"),
        pytest.param("tune", GRID, "loky", marks=pytest.mark.long, id="tune-loky"),
    ],
)
def test_a_run_that_is_interrupted_goes_on_where_it_stopped(what, template, engine, here) -> None:
    """Ctrl-C reaches all processes of the terminal; every finished cell is kept."""
    text = template.format(world=WORLD.format(horizon=1000))
    if what == "tune":  # many blocks: one for each cell of the grid
        text = text.replace("points = 3", "points = 300").replace("replications = 3", "replications = 400")
    Path("long.toml").write_text(text.replace("replications = 4\n", "replications = 1000\n"))
    arguments = [what, "long.toml", "--engine", engine, "--jobs", 2]
    arguments += ["--no-report"] if what == "run" else []
    with subprocess.Popen(
        command(*arguments), start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            wait_until(lambda: len(list(Path("results").glob("*/cells/[!.]*.npz"))) >= 2, started)
            os.killpg(started.pid, signal.SIGINT)
            stdout, stderr = started.communicate(timeout=HANG)
        finally:
            if started.poll() is None:  # it must not go on for good
                os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 130, stderr
    assert stdout == ""
    assert stderr.splitlines()[-1].startswith("spillover: stopped: ")
    assert stderr.endswith("again to resume\n")
    assert "Traceback" not in stderr
    cells = next(Path("results").iterdir()) / "cells"
    kept = {path: path.stat().st_mtime_ns for path in cells.iterdir()}
    assert all(path.suffix == ".npz" for path in kept)  # nothing half-written
    if what == "run":  # the first cells are there already, and stay as they are
        again = outside(*arguments, "--engine", "serial", "--replications", 4)
        assert again.returncode == 0, again.stderr
        assert {path: path.stat().st_mtime_ns for path in kept} == kept
