"""Runs that are killed, stopped, and run twice at once."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from spillover.experiments import open_results, parse_experiment, run_experiment
from spillover.store import CellStore
from tests.experiments.small import TEXT
from tests.experiments.test_run import equal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="groups of processes: POSIX")

LARGER = (  # many cells of tens of milliseconds each
    TEXT.replace("replications = 6", "replications = 30").replace("150", "400")
)
SCRIPT = """
import sys
from pathlib import Path
from spillover.experiments import load_experiment, run_experiment
experiment, folder, engine = sys.argv[1:]
if __name__ == "__main__":
    print("ready", flush=True)
    run_experiment(load_experiment(experiment), folder, engine=engine, jobs=2)
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_experiment(parse_experiment(LARGER), tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def begin(tmp_path):
    """Start a run in a process of its own, in a group of its own; what is left of it is killed in the end."""
    (tmp_path / "experiment.toml").write_text(LARGER)
    (tmp_path / "script.py").write_text(SCRIPT)
    started = []

    def begin_one(engine="serial"):
        command = [sys.executable, "script.py", "experiment.toml", "store", engine]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin_one
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def written(folder: Path) -> dict[str, int]:
    """The cells that are there, with the time at which each was written."""
    return {path.stem: path.stat().st_mtime_ns for path in folder.glob("cells/[!.]*.npz")}


def kill_and_resume(begin, folder: Path, kills: int, longest: float) -> None:
    chance = random.Random(kills)
    before: dict[str, int] = {}
    for _ in range(kills):
        process = begin()
        time.sleep(chance.uniform(0, longest))
        process.kill()
        process.communicate()
        after = written(folder)
        assert before.items() <= after.items()  # nothing is lost, nothing is done again
        store = CellStore(folder)
        for cell in after:
            store.read(cell)  # and nothing looks whole that is not
        before = after
    assert begin().wait() == 0
    assert before.items() <= written(folder).items()
    assert list(folder.glob("cells/.*")) == []
    assert list(folder.glob("claims/*")) == []


def test_killed_and_resumed(begin, tmp_path, undisturbed):
    kill_and_resume(begin, tmp_path / "store", kills=3, longest=1.0)
    equal(open_results(tmp_path / "store"), undisturbed)


@pytest.mark.long
def test_killed_fifty_times_and_resumed(begin, tmp_path, undisturbed):
    kill_and_resume(begin, tmp_path / "store", kills=50, longest=0.15)
    equal(open_results(tmp_path / "store"), undisturbed)


def test_two_processes_share_the_work(begin, tmp_path, undisturbed):
    first, second = begin(), begin()
    assert (first.wait(), second.wait()) == (0, 0)
    folder = tmp_path / "store"
    equal(open_results(folder), undisturbed)
    assert list(folder.glob("claims/*")) == []


def test_one_goes_on_with_what_the_other_left(begin, tmp_path, undisturbed):
    first, second = begin(), begin()
    time.sleep(0.3)
    first.kill()
    assert second.wait() == 0
    equal(open_results(tmp_path / "store"), undisturbed)


def wait_for_cells(folder: Path, number: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while len(written(folder)) < number and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None


@pytest.mark.parametrize("engine", ["serial", "loky"])
def test_ctrl_c(begin, tmp_path, engine, undisturbed):
    process, folder = begin(engine), tmp_path / "store"
    wait_for_cells(folder, 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, error = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "cells are kept in store; run the same again to go on" in error
    kept = written(folder)
    assert len(kept) >= 2
    assert list(folder.glob("claims/*")) == []
    run_experiment(parse_experiment(LARGER), folder)
    assert kept.items() <= written(folder).items()
    equal(open_results(folder), undisturbed)


def test_workers_leave_with_a_process_that_is_killed(begin, tmp_path):
    process = begin("loky")
    wait_for_cells(tmp_path / "store", 2, process)
    process.kill()
    process.communicate(timeout=30)  # ends only when the workers, which share its stderr, are gone too
