"""What nobody can mean is refused before it runs, and what takes long must be confirmed."""

import itertools
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

import spillover as sp
from spillover.cli import main
from spillover.experiments import ExperimentError, parse_experiment, run_experiment
from spillover.experiments.compute import BlockTask, CellTask
from spillover.experiments.forecast import (
    HALF,
    PROCESS,
    WORTH_A_TRIAL,
    WorldSize,
    expected_seconds,
    plan,
    refuse_world,
    seconds_of_round,
    time_in_words,
    timed,
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
LONG = 2 * HALF * WORTH_A_TRIAL  # rounds that are worth a trial
WORLD = sp.SyntheticSEM(n_arms=4, budget=1, horizon=LONG, changes=(), edge_density=0.0)
RANDOM = sp.Uniform()


def text_of(replications=250, arms=4, horizon=1000) -> str:
    return TEXT.format(replications=replications, arms=arms, horizon=horizon)


def grid_of(values: str) -> str:
    return GRID.format(replications=20, arms=4, horizon=100) + f"[grid]\ndiscount = {values}\n"


def task(policy=RANDOM, environment=WORLD, replications=3) -> CellTask:
    return CellTask(environment, sp.ConstantDelay(5), policy, 1, 50, 0, replications)


# --- size ---------------------------------------------------------------------------------------------------------


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


# --- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "share"), [(1, 1.0), (2, 0.5), (64, 1 / 3)])  # no more than there are cells
def test_the_time_is_that_of_all_rounds_divided_among_the_workers(workers, share) -> None:
    tasks = [task(), task(), task(sp.NDCSEM())]
    found = expected_seconds(tasks, workers, lambda one: 0.001 if one.policy is RANDOM else 0.01)
    assert found == pytest.approx(LONG * 0.012 * share)


def test_each_kind_is_tried_once_unless_it_is_short() -> None:
    tried = []

    def seconds_of(one: CellTask) -> float:
        tried.append(one)
        return 0.001

    short = task(environment=replace(WORLD, n_arms=5, horizon=LONG // 2))
    assert expected_seconds([short], 1, seconds_of) is None
    assert expected_seconds([task(), task(), short], 1, seconds_of) == pytest.approx(LONG * 0.002)
    assert tried == [task()]


def test_a_trial_has_two_halves() -> None:
    """The first one loads kernels."""
    endless = itertools.count(1)
    assert timed(1 for _ in endless) > 0.0
    assert next(endless) == 2 * (HALF - 1) + 1
    assert timed(iter([5])) > 0.0  # a world with fewer rounds


@pytest.mark.parametrize("policy", [RANDOM, sp.NDCSEM(), sp.policies.CTS()])
@pytest.mark.parametrize("horizon", [1, HALF, 5 * HALF])
def test_a_trial_in_any_world(policy, horizon) -> None:
    assert 0.0 < seconds_of_round(task(policy, replace(WORLD, horizon=horizon), replications=2)) < float("inf")


def test_runs_and_searches_tell_what_they_will_compute(tmp_path) -> None:
    begun: list[CellTask | BlockTask] = []
    experiment = parse_experiment(text_of(replications=3, horizon=20))
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)  # nothing is missing
    run_search(parse_search(grid_of("[0.5, 0.9]")), begin=begun.extend)
    assert [each.count for each in begun] == [3, 20]


def test_the_command_line_tells_the_time(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sized.toml").write_text(text_of(replications=2, horizon=LONG))
    result = call("run", "sized.toml", "--engine", "serial", "--no-report")
    lines = result.stderr.splitlines()
    assert len(lines) == 2, result.stderr
    assert lines[0].startswith("spillover: plan: sized: 1 cell, ")
    assert re.fullmatch(r"spillover: time: about \d+ (s|min|h|days), from a short trial", lines[1])


@pytest.mark.parametrize("name", ["run", "tune"])
def test_what_takes_more_than_ten_minutes_must_be_confirmed(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = text_of(replications=2, horizon=20) if name == "run" else grid_of("[0.5, 0.9]")
    (tmp_path / "sized.toml").write_text(text)
    asked = [name, "sized.toml", "--engine", "serial", *(["--no-report"] if name == "run" else [])]
    seconds = [601.0]
    monkeypatch.setattr("spillover.cli.runs.expected_seconds", lambda tasks, workers: seconds[0])
    result = call(*asked)
    assert result.exit_code == 2
    last = "spillover: time = 10 min: must be confirmed where it is more than 10 min: add --yes"
    assert result.stderr.splitlines()[-1] == last
    assert call(*asked, "--yes").exit_code == 0
    monkeypatch.setattr("spillover.cli.runs.can_ask", lambda: True)
    for answer, code in (("n\n", 2), ("y\n", 0)):
        result = CliRunner().invoke(main, [*asked, "--output", answer.strip()], input=answer, prog_name="spillover")
        assert result.exit_code == code, result.output
        assert "Run it? [y/N]" in result.stderr
    assert "not run: nothing was computed" not in result.stderr
    monkeypatch.setattr("spillover.cli.runs.can_ask", lambda: False)
    seconds[0] = 599.0
    assert call(*asked, "--output", "short").exit_code == 0


def test_times_in_words() -> None:
    assert [time_in_words(s) for s in (0.0, 89, 91, 5399, 5401, 86400 * 1.49, 86400 * 10)] == [
        *("1 s", "89 s", "2 min", "90 min", "2 h", "36 h", "10 days"),
    ]
