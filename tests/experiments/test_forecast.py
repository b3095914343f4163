"""What nobody can mean is refused before it runs."""

import pytest

import spillover as sp
from spillover.experiments import ExperimentError, parse_experiment, run_experiment
from spillover.experiments.compute import BlockTask, CellTask
from spillover.experiments.forecast import (
    PROCESS,
    WorldSize,
    plan,
    refuse_world,
    world_size,
)
from spillover.experiments.parse import parse_search
from spillover.experiments.tune import run_search
from spillover.simulation import machine
from tests.cli.calls import call, refused

TEXT = """
name = "sized"
replications = {replications}
block = 100
[worlds.w]
kind = "synthetic"
n_arms = {arms}
budget = 1
horizon = {horizon}
changes = []
edge_density = 0.0
[delays.d]
kind = "constant"
rounds = 5
[policies.random]
"""
GRID = TEXT.replace("block = 100\n", "").replace("[policies.random]", "[policies.ndc-sem]")


def text_of(replications=250, arms=4, horizon=1000) -> str:
    return TEXT.format(replications=replications, arms=arms, horizon=horizon)


def grid_of(values: str) -> str:
    return GRID.format(replications=20, arms=4, horizon=100) + f"[grid]\ndiscount = {values}\n"


def test_the_size_counts_cells_rounds_and_memory() -> None:
    size = parse_experiment(text_of()).size
    assert (size.cells, size.rounds, size.learner_rounds) == (3, 3000, 250_000)
    more = parse_experiment(text_of(horizon=2000)).size.memory
    assert more - PROCESS > 1.9 * (size.memory - PROCESS) > 0
    assert parse_experiment(text_of()).changed(replications=10).size.cells == 1
    search = parse_search(grid_of("{ from = 0.5, to = 0.9, points = 60 }")).size
    assert (search.cells, search.learner_rounds) == (3, 60 * 20 * 100)  # blocks of 25 cells and 20 replications


def test_more_memory_than_there_is_is_refused(monkeypatch) -> None:
    size = parse_experiment(text_of()).size
    monkeypatch.setattr(machine, "memory", lambda: int(1.5 * size.memory))
    assert plan("sized", size, False) == "sized: 3 cells, 250,000 rounds of learners"
    for workers in (2, 64):
        with pytest.raises(ValueError, match=r"sized: [23] processes would take about .*--any-size .*--jobs 1 help"):
            plan("sized", size, False, "loky", workers)
    plan("sized", size, True, "loky", 2)
    plan("sized", size, False, "dask", 64, "tcp://10.0.0.1:8786")  # who knows what a cluster has?


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"arms": 2_000_000}, "sized.toml:5: 2,000,000 arms: must be at most 1,000,000"),
        ({"horizon": 10**12}, "sized.toml:5: horizon = 1000000000000: must be at most 2,000,000,000 rounds"),
    ],
)
def test_a_world_that_is_too_large_is_not_drawn(given, words) -> None:
    with pytest.raises(ExperimentError, match=words):
        parse_experiment(text_of(**given), "sized.toml")


def test_worlds_know_their_size() -> None:
    synthetic = sp.SyntheticSEM(n_arms=7, horizon=50, changes=(), budget=2)
    assert world_size(synthetic) == world_size(sp.environments.Instance(of=synthetic)) == WorldSize(7, 50)
    assert world_size(object()) is None
    refuse_world(None, 1)
    with pytest.raises(ValueError, match="one world would take"):
        refuse_world(WorldSize(2000, 1), 10**6)


@pytest.mark.parametrize("points", [400, 1_000_000])
def test_a_grid_that_is_too_large_is_not_laid_out(points) -> None:
    values = f"{{ from = 0.1, to = 0.9, points = {points} }}"
    with pytest.raises(ExperimentError, match=r"must be (at most|a whole number from 2 to) 100"):
        parse_search(grid_of(values) + f"exploration = {values}\n")


@pytest.mark.parametrize("replications", [10**9, 2**62])
def test_the_command_refuses_unless_told_otherwise(replications, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sized.toml").write_text(text_of(replications))
    refused(call("run", "sized.toml"), "sized:", "cells: must be at most 100,000", "--any-size")
    assert not (tmp_path / "results").exists()
    monkeypatch.setattr("spillover.experiments.forecast.MOST_CELLS", 1)
    usual = ["run", "sized.toml", "--replications", 101, "--engine", "serial", "--no-report"]
    refused(call(*usual), "sized: 2 cells: must be at most 1 (--any-size")
    assert call(*usual, "--any-size", "--quiet").exit_code == 0


def test_the_memory_of_a_container(tmp_path) -> None:
    groups, own = tmp_path / "groups", tmp_path / "own"
    (groups / "a/b").mkdir(parents=True)
    own.write_text("0::/a/b\n")
    (groups / "a/b/memory.max").write_text("max\n")
    (groups / "a/memory.max").write_text("123\n")
    assert machine.container_limits(own, groups) == [123]
    old = groups / "memory/x"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("456\n")
    own.write_text("4:cpu,memory:/x\n2:pids:/x\n")
    assert machine.container_limits(own, groups) == [456]
    assert machine.container_limits(tmp_path / "none", groups) == []
    (tmp_path / "limits").write_text("Max cpu time  1  1  seconds\nMax address space    789   unlimited   bytes\n")
    assert machine.own_limits(tmp_path / "limits") == [789]
    assert machine.own_limits(tmp_path / "none") == []
    assert (machine.memory() or 1) > 0


def test_runs_and_searches_tell_what_they_will_compute(tmp_path) -> None:
    begun: list[CellTask | BlockTask] = []
    experiment = parse_experiment(text_of(replications=3, horizon=20))
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)  # nothing is missing
    run_search(parse_search(grid_of("[0.5, 0.9]")), begin=begun.extend)
    assert [each.count for each in begun] == [3, 20]
