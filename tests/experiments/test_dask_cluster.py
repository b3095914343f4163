"""A Dask scheduler and workers in processes of their own, on the loopback interface."""

import os
import shutil
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import spillover
from benchmarks.local_clusters import dask_cluster, environment, stop
from spillover.experiments import open_results, parse_experiment, run, run_experiment
from spillover.experiments.engines import start_engine
from tests.cli.calls import command
from tests.experiments.small import TEXT, small
from tests.experiments.test_crash import ENDLESS, written
from tests.experiments.test_run import equal
from tests.waiting import HANG, wait_until

distributed = pytest.importorskip("distributed", reason="run it with: pip install 'spillover[dask]'")
pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="groups of processes: POSIX"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
SOURCE = Path(spillover.__file__).parent
STORE = Path("results/small")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with dask_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as started:
        yield started


@pytest.fixture
def empty_cluster(tmp_path):
    with dask_cluster(tmp_path, workers=0) as started:
        yield started


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_experiment(small(), tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Start the command on a cluster, in a process of its own; what is left of it is killed in the end."""
    monkeypatch.chdir(tmp_path)
    Path("experiment.toml").write_text(TEXT)
    started = []

    def begin_one(cluster, *more):
        asked = ["run", "experiment.toml", "--engine", "dask", "--address", cluster.address, "--no-report", "--quiet"]
        given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command(*asked, *more), env=environment(), start_new_session=True, **given)
        started.append(process)
        return process

    yield begin_one
    for process in started:
        stop(process)
        process.communicate()


def ends_with_one_line(process, *parts):
    _, error = process.communicate(timeout=HANG)
    assert process.returncode == 1, error
    assert error.startswith("spillover: ")
    assert error.count("\n") == 1, error
    for part in parts:
        assert part in error


def refused(process, *parts):
    """It ends with one line that names the address, and no cell was computed."""
    ends_with_one_line(process, "spillover: address = 'tcp://127.0.0.1:", *parts)
    assert written(STORE) == {}


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(cluster, tmp_path, undisturbed, monkeypatch):
    """The rest is computed without it, and all results are those of a serial run, bit for bit."""
    victim = cluster.workers[0]
    killed: list[int] = []

    class Killer:
        """A progress bar that kills a worker when the first cell is there."""

        def update(self, count):
            if not killed:
                os.killpg(victim.pid, signal.SIGKILL)
                killed.append(victim.wait())

    monkeypatch.setattr(run, "progress_bar", lambda *given: nullcontext(Killer()))
    found = run_experiment(small(), tmp_path, engine="dask", address=cluster.address)
    assert killed == [-signal.SIGKILL]
    equal(found, undisturbed)
    assert list((tmp_path / "claims").iterdir()) == []


def test_one_job_is_one_call_at_a_time(cluster):
    with start_engine("dask", 1, cluster.address) as pool:
        assert pool.room() == 1
    with start_engine("dask", None, cluster.address) as pool:
        assert pool.room() >= 2


@pytest.mark.long
def test_a_cluster_without_workers(empty_cluster, begin):
    refused(begin(empty_cluster), "must be a Dask cluster with workers; it has had none for 5 s")


@pytest.mark.long
@pytest.mark.parametrize("beside_a_good_one", [False, True])
def test_a_worker_without_the_package(empty_cluster, begin, beside_a_good_one, tmp_path):
    none = tmp_path / "none" / "spillover"
    none.mkdir(parents=True)
    (none / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'spillover'\")\n")
    if beside_a_good_one:
        empty_cluster.add_worker()
    empty_cluster.add_worker(str(none.parent))
    with distributed.Client(empty_cluster.address) as client:
        client.wait_for_workers(1 + beside_a_good_one, HANG)
    process = begin(empty_cluster)
    ends_with_one_line(process, "a Dask worker failed: No module named 'spillover'", "cells are kept in")


@pytest.mark.long
def test_a_worker_with_another_version(empty_cluster, begin, tmp_path):
    shutil.copytree(SOURCE, tmp_path / "other" / "spillover", ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / "other" / "spillover" / "delays.py", "a") as file:
        file.write("# another version\n")
    empty_cluster.add_worker(str(tmp_path / "other"))
    ends_with_one_line(begin(empty_cluster), "the worker has another version of spillover than this process")
    assert written(STORE) == {}


@pytest.mark.long
def test_a_scheduler_that_is_killed(cluster, begin, tmp_path):
    with dask_cluster(tmp_path, workers=1) as doomed:
        process = begin(doomed, "--replications", ENDLESS)
        wait_until(lambda: len(written(STORE)) >= 2, process)
        stop(doomed.scheduler)
        ends_with_one_line(process, "the Dask scheduler at tcp://127.0.0.1:", "run the same command again to resume")


@pytest.mark.long
def test_the_last_worker_is_killed(begin, tmp_path, undisturbed):
    """The run waits for another one."""
    with dask_cluster(tmp_path, workers=1) as cluster:
        process = begin(cluster, "--replications", 60)
        wait_until(lambda: len(written(STORE)) >= 2, process)
        stop(cluster.workers[0])
        cluster.add_worker()
        assert process.wait(HANG) == 0
        equal(run_experiment(small(), STORE), undisturbed)


@pytest.mark.long
def test_a_client_that_is_killed_and_resumed(cluster, begin, undisturbed):
    process = begin(cluster, "--replications", ENDLESS)
    wait_until(lambda: len(written(STORE)) >= 2, process)
    process.kill()
    process.communicate()
    kept = written(STORE)
    assert begin(cluster).wait(HANG) == 0
    assert kept.items() <= written(STORE).items()  # nothing is computed again
    equal(open_results(STORE), undisturbed)


@pytest.mark.long
def test_ctrl_c(cluster, begin, undisturbed):
    process = begin(cluster, "--replications", ENDLESS)
    wait_until(lambda: len(written(STORE)) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=HANG)
    assert process.returncode == 130, error
    assert error.startswith("spillover: stopped: ")
    assert error.count("\n") == 1, error
    run_experiment(parse_experiment(TEXT), STORE)
    equal(open_results(STORE), undisturbed)
