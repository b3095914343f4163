"""Runs that are killed, stopped, and run twice at once."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from spillover.experiments import open_results, parse_experiment, run_experiment
from spillover.experiments.store import CellStore
from tests.cli.calls import command
from tests.experiments.small import TEXT
from tests.experiments.test_run import equal
from tests.sampling import few_or_many
from tests.waiting import HANG, wait_until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="groups of processes: POSIX")

LARGER = TEXT.replace("replications = 6", "replications = 12")
ENDLESS = 2000  # replications: a run that is interrupted must not be at its end by then
SCRIPT = """
import sys
from pathlib import Path
from spillover.experiments import load_experiment, run_experiment
experiment, folder, engine, replications = sys.argv[1:]
if __name__ == "__main__":
    print("ready", flush=True)
    asked = load_experiment(experiment)
    if replications:
        asked = asked.changed(replications=int(replications))
    run_experiment(asked, folder, engine=engine, jobs=2)
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

    def begin_one(engine="serial", replications=""):
        command = [sys.executable, "script.py", "experiment.toml", "store", engine, str(replications)]
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


def wait_for_another_cell(folder: Path, known: int, process: subprocess.Popen[str]) -> None:
    wait_until(lambda: len(written(folder)) > known or process.poll() is not None)


def kill_and_resume(begin, folder: Path, kills: int) -> None:
    """Kill it again and again, at random moments after it has written one more cell, and let it finish in the end."""
    chance = random.Random(kills)
    before: dict[str, int] = {}
    for _ in range(kills):
        process = begin()
        wait_for_another_cell(folder, len(before), process)
        time.sleep(chance.uniform(0, 0.05))
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


@pytest.mark.parametrize("kills", few_or_many(1, 50))
def test_killed_and_resumed(begin, tmp_path, undisturbed, kills):
    kill_and_resume(begin, tmp_path / "store", kills)
    equal(open_results(tmp_path / "store"), undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3])
def test_several_processes_share_the_work(begin, tmp_path, undisturbed, count):
    started = [begin() for _ in range(count)]
    assert [process.wait() for process in started] == [0] * count
    equal(open_results(tmp_path / "store"), undisturbed)
    assert list((tmp_path / "store").glob("claims/*")) == []


@pytest.mark.long
def test_a_full_disk(begin, tmp_path, undisturbed):
    """A limit on the size of files stands for a disk that is full when a cell is written."""
    resource = pytest.importorskip("resource")
    experiment = tmp_path / "experiment.toml"
    begin().communicate()
    largest = max(path.stat().st_size for path in (tmp_path / "store/cells").glob("*.npz"))
    shutil.rmtree(tmp_path / "store/cells")
    arguments = command("run", experiment, "--engine", "serial", "--no-report", "--quiet")
    limits = (largest - 1, resource.RLIM_INFINITY)
    done = subprocess.run(
        arguments, cwd=tmp_path, capture_output=True, text=True, timeout=HANG,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("spillover: ")
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert list(tmp_path.glob("results/*/cells/.*")) == []


@pytest.mark.long
def test_one_goes_on_with_what_the_other_left(begin, tmp_path, undisturbed):
    first, second = begin(), begin()
    wait_until(lambda: len(written(tmp_path / "store")) >= 2)
    first.kill()
    assert second.wait() == 0
    equal(open_results(tmp_path / "store"), undisturbed)


@pytest.mark.parametrize("engine", ["serial", pytest.param("loky", marks=pytest.mark.long)])
def test_ctrl_c(begin, tmp_path, engine, undisturbed):
    process, folder = begin(engine, ENDLESS), tmp_path / "store"
    wait_until(lambda: len(written(folder)) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, error = process.communicate(timeout=HANG)
    assert process.returncode not in (0, None)
    assert "cells are kept in store; run the same command again to resume" in error
    kept = written(folder)
    assert len(kept) >= 2
    assert list(folder.glob("claims/*")) == []
    run_experiment(parse_experiment(LARGER), folder)
    assert kept.items() <= written(folder).items()
    equal(open_results(folder), undisturbed)


@pytest.mark.long
def test_workers_leave_with_a_process_that_is_killed(begin, tmp_path):
    process = begin("loky", ENDLESS)
    wait_until(lambda: len(written(tmp_path / "store")) >= 2, process)
    process.kill()
    process.communicate(timeout=HANG)  # ends only when the workers, which share its stderr, are gone too
