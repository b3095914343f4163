import importlib.util
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from spillover.experiments import run_experiment
from spillover.experiments.engines import ENGINES, start_engine
from tests.experiments.small import small
from tests.waiting import wait_until

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


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_library_that_is_not_installed(engine, monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", absent)
    with (
        pytest.raises(ModuleNotFoundError, match=rf"engine = '{engine}': needs .*pip install 'spillover\[{engine}\]'"),
        start_engine(engine),
    ):
        pass


def test_every_engine_is_tried():
    assert set(LIBRARY) == set(ENGINES)


def test_an_error_in_a_worker_comes_back():
    with start_engine("loky", 2) as mapping, pytest.raises(ValueError, match="invalid literal"):
        list(mapping(int, ["1", "x", "3"]))


def test_closing_early_stops_the_work():
    with start_engine("loky", 2) as mapping:
        results = mapping(abs, count())  # all of it would never end
        assert next(results) is not None
        results.close()


def test_closing_early_is_quiet_about_results_that_were_ready(tmp_path):
    with start_engine("loky", 2) as mapping:
        results = mapping(Path.touch, [tmp_path / str(k) for k in range(100)])
        assert next(results) is None
        # the last are handed out when those before them are done, so more are ready than were taken
        wait_until(lambda: len(list(tmp_path.iterdir())) == 100)
        results.close()
