"""What an experiment takes is known before it runs, and what nobody can mean is refused."""

import pytest

from spillover import machine
from spillover.environments import Instance, SyntheticSEM
from spillover.environments.sizes import WorldSize, world_size
from spillover.experiments import ExperimentError, parse_experiment
from spillover.experiments.grids import parse_search
from spillover.experiments.size import PROCESS, check_size, refuse_world
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
WITHOUT_BLOCKS = TEXT.replace("block = 100\n", "")
GRID = WITHOUT_BLOCKS.replace("[policies.random]", "[policies.ndc-sem]") + "[grid]\ndiscount = {values}\n"


def text_of(replications=250, arms=4, horizon=1000) -> str:
    return TEXT.format(replications=replications, arms=arms, horizon=horizon)


def grid_of(values: str, arms=4) -> str:
    return GRID.format(replications=20, arms=arms, horizon=100, values=values)


def test_the_size_counts_cells_rounds_and_memory() -> None:
    size = parse_experiment(text_of()).size
    assert (size.cells, size.rounds, size.learner_rounds) == (3, 3000, 250_000)
    more = parse_experiment(text_of(horizon=2000)).size.memory
    assert more - PROCESS > 1.9 * (size.memory - PROCESS) > 0
    assert parse_experiment(text_of()).changed(replications=10).size.cells == 1
    search = parse_search(grid_of("{ from = 0.5, to = 0.9, points = 60 }")).size
    assert (search.cells, search.learner_rounds) == (3, 60 * 20 * 100)  # blocks of 25 cells and 20 replications


def test_more_memory_than_there_is() -> None:
    size = parse_experiment(text_of()).size
    line = check_size("sized", size, 2, 3 * size.memory)
    about = machine.in_words(2 * size.memory)
    assert line == f"sized: 3 cells, 250,000 rounds of learners, about {about} of memory in 2 processes"
    assert check_size("sized", size, 64, None).endswith(" in 3 processes")  # no more than there are cells
    with pytest.raises(ValueError, match=r"sized: 2 processes would take about .*--any-size .*--jobs 1 help"):
        check_size("sized", size, 2, int(1.5 * size.memory))


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
    synthetic = SyntheticSEM(n_arms=7, horizon=50, changes=(), budget=2)
    assert world_size(synthetic) == world_size(Instance(of=synthetic)) == WorldSize(7, 50)
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
    monkeypatch.setattr("spillover.experiments.size.MOST_CELLS", 1)
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
