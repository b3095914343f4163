import importlib.util
import os
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import count
from threading import Event
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest

from spillover.experiments import run_experiment
from spillover.experiments.engines import ENGINES, own_token, results, start_engine
from tests.experiments.small import small

LIBRARY = {"serial": "numpy", "loky": "joblib", "dask": "distributed", "ray": "ray"}


def needs(engine):
    if importlib.util.find_spec(LIBRARY[engine]) is None:
        pytest.skip(f"run it with: pip install 'spillover[{engine}]' (Ray has no release for the newest Pythons)")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return run_experiment(small(), tmp_path_factory.mktemp("serial"))


# Ray and Dask leave sockets and event loops to the garbage collector
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("engine", ["loky", "dask", pytest.param("ray", marks=pytest.mark.long)])  # it starts slowly
def test_every_engine_gives_the_same_numbers(engine, expected, tmp_path):
    needs(engine)
    found = run_experiment(small(), tmp_path, engine=engine, jobs=2)
    for one, other in zip(found.records(), expected.records(), strict=True):
        for name in set(one._fields) - {"seconds"}:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert found.missing() == []
    assert list((tmp_path / "claims").iterdir()) == []


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("engine", "address"), [("dask", "tcp://127.0.0.1:9"), ("ray", "127.0.0.1:9"), ("ray", "x")])
def test_a_cluster_that_does_not_answer(engine, address, tmp_path, monkeypatch):
    needs(engine)
    monkeypatch.setattr("spillover.experiments.engines.SECONDS_TO_CONNECT", 0.2)
    with pytest.raises(ConnectionError, match=f"address = '{address}': must be that of a .* cluster that answers"):
        run_experiment(small(), tmp_path, engine=engine, address=address)
    assert list((tmp_path / "cells").iterdir()) == []


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_dask_cluster_that_is_running(expected, tmp_path):
    needs("dask")
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        found = run_experiment(small(), tmp_path, engine="dask", address=cluster.scheduler_address)
    np.testing.assert_array_equal(found.records()[0].regret, expected.records()[0].regret)


def of_this_process(_):
    return os.getpid()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_nobody_else_can_reach_a_local_dask_cluster():
    """It has no processes and no port of its own; the status servers listen at this machine only, and serve nothing."""
    needs("dask")
    from distributed import default_client

    with start_engine("dask", 2) as pool:
        assert set(results(pool, of_this_process, range(4))) == {os.getpid()}
        about = default_client().scheduler_info()
        assert about["address"].startswith("inproc://")
        for worker in about["workers"]:
            assert worker.startswith("inproc://")
        port = about["services"]["dashboard"]
        for page in ("status", "json/counts.json", "api/v1/retire_workers"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"http://127.0.0.1:{port}/{page}")


def end_this_process(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals: POSIX")
def test_a_worker_process_that_dies_is_said_in_a_line():
    said = r"a worker process died \(SIGKILL\(-9\)\), perhaps for lack of memory"
    with pytest.raises(ConnectionError, match=said), start_engine("loky", 1) as pool:
        list(results(pool, end_this_process, [1]))


RELEASED, ENDED = Event(), list[str]()


def wait_to_be_released(_):
    """As a cell that takes long; less than Dask would wait for it."""
    RELEASED.wait(20)
    ENDED.append("ended")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_ctrl_c_does_not_wait_for_the_threads_of_a_local_dask_cluster():
    needs("dask")
    with suppress(KeyboardInterrupt), start_engine("dask", 1) as pool:
        pool.submit(wait_to_be_released, None)
        raise KeyboardInterrupt
    left_before = not ENDED
    RELEASED.set()
    assert left_before


def test_a_local_ray_cluster_gets_a_token_of_its_own(monkeypatch):
    """Otherwise Ray writes one into the user's folder."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with own_token():
        token = os.environ["RAY_AUTH_TOKEN"]
        os.environ["RAY_AUTH_MODE"] = "token"  # as Ray does
    assert len(token) == 64
    assert not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} & os.environ.keys()
    with own_token():
        assert os.environ["RAY_AUTH_TOKEN"] == token  # Ray remembers it
    monkeypatch.setenv("RAY_AUTH_TOKEN", "the user's")
    with own_token():
        assert os.environ["RAY_AUTH_TOKEN"] == "the user's"
    assert os.environ["RAY_AUTH_TOKEN"] == "the user's"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_local_ray_run_writes_nothing_into_the_user_s_folder(tmp_path, monkeypatch):
    needs("ray")
    script = "from spillover.experiments.engines import results, start_engine\n"
    script += "with start_engine('ray', 1) as pool:\n    print(sorted(results(pool, abs, [-2, 1])))\n"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**kept, "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[1, 2]", done.stderr
    assert not (tmp_path / ".ray" / "auth_token").exists()


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_library_that_is_not_installed(engine, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with (
        pytest.raises(ModuleNotFoundError, match=rf"engine = '{engine}' needs .*pip install \"spillover\[{engine}\]\""),
        start_engine(engine),
    ):
        pass


def test_every_engine_is_tried():
    assert set(LIBRARY) == set(ENGINES)


def test_an_error_in_a_worker_comes_back():
    with start_engine("loky", 2) as pool, pytest.raises(ValueError, match="invalid literal"):
        list(results(pool, int, ["1", "x", "3"]))


def test_closing_early_stops_the_work():
    with start_engine("loky", 2) as pool:
        found = results(pool, abs, count())  # all of it would never end
        assert next(found) is not None
        found.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("engine", ["serial", "loky", "dask"])
def test_results_do_not_pile_up(engine):
    """No more calls are made than are taken and than the workers have room for."""
    needs(engine)
    taken = []

    def numbers():
        for k in range(100):
            taken.append(k)
            yield k

    with start_engine(engine, 2) as pool:
        found = results(pool, abs, numbers())
        for k in range(1, 101):
            next(found)
            assert len(taken) <= k + pool.room()
        assert list(found) == []
        assert pool.room() <= 4
