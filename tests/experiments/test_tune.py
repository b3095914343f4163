"""Tuning: a cell is a single run, whatever the blocks; files, resuming, and the paper's grids."""

import json
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from spillover.delays import ArmDelays
from spillover.experiments import ExperimentError, parse_experiment, run_experiment
from spillover.experiments import experiment as searching
from spillover.experiments.compute import BlockTask
from spillover.experiments.experiment import Search
from spillover.experiments.parse import parse_search
from spillover.experiments.tune import run_search, tune
from spillover.studies import STUDIES, load_search, shipped_searches
from tests.support import sparse

SMALL = sp.SyntheticSEM(n_arms=5, budget=2, horizon=150, changes=(60,))
GRID = {"discount": [0.8, 0.95], "exploration": [1e-6, 1e-3, 0.1], "graph.sparsity": [1e-3, 1.0]}


def small(**changes) -> Search:
    given: dict[str, Any] = {
        "name": "small",
        "worlds": {"a": SMALL},
        "delays": {"0": sp.ConstantDelay(0), "late": sp.UniformDelay(0, 9)},
        "policies": {"ndc-sem": sp.NDCSEM()},
        "grid": GRID,
        "replications": 3,
    }
    return Search(**given | changes)


def test_a_cell_is_the_single_run() -> None:
    found = tune(sp.NDCSEM(), SMALL, 7, grid=GRID, replications=3, seed=5)
    frame = found.to_frame().rename(columns={"graph.sparsity": "sparsity"})
    for row, regret in zip(frame.itertuples(), next(iter(found.regret.values())), strict=True):
        policy = sp.NDCSEM(discount=row.discount, exploration=row.exploration, graph=sparse(row.sparsity))
        alone = sp.simulate(policy, SMALL, 7, replications=3, seed=5)
        np.testing.assert_array_equal(regret, alone.final_regret)
        interval = alone.interval("final_regret")
        assert (row.final_regret, row.low, row.high) == pytest.approx(tuple(interval), rel=1e-12)


@pytest.mark.parametrize("learners", [1, 2, 7, 1000])
def test_blocks_leave_no_trace(learners, monkeypatch) -> None:
    expected = run_search(small()).to_frame()
    monkeypatch.setattr(searching, "BATCH_SIZE", learners)
    blocks = small().blocks()
    assert max(len(block.cells) * block.replications for block in blocks) <= learners
    assert sum(len(block.cells) * block.replications for block in blocks) == 2 * 12 * 3
    pd.testing.assert_frame_equal(run_search(small()).to_frame(), expected, check_exact=True)


def test_other_processes_leave_no_trace(monkeypatch) -> None:
    expected = run_search(small()).to_frame()
    monkeypatch.setattr(searching, "BATCH_SIZE", 9)
    pd.testing.assert_frame_equal(run_search(small(), engine="loky", jobs=2).to_frame(), expected, check_exact=True)


def test_other_policies_are_tuned_too() -> None:
    found = tune(sp.policies.DiscountedCUCB(), SMALL, 3, grid={"discount": [0.9, 0.99]}, replications=2)
    alone = sp.simulate(sp.policies.DiscountedCUCB(discount=0.99), SMALL, 3, replications=2, seed=found.search.seed)
    np.testing.assert_array_equal(next(iter(found.regret.values()))[1], alone.final_regret)


def test_the_table_and_the_best() -> None:
    found = run_search(small())
    frame = found.to_frame()
    names = ["world", "delay", "policy", *GRID, "replications", "final_regret", "low", "high"]
    assert list(frame) == names
    assert len(frame) == 2 * 12
    assert not frame.duplicated(["delay", *GRID]).any()
    best = found.best()
    assert list(best["delay"]) == ["0", "late"]
    for row in best.itertuples():
        assert row.final_regret == frame[frame["delay"] == row.delay]["final_regret"].min()


def test_what_is_saved_reads_back(tmp_path) -> None:
    found = run_search(small())
    table, summary = found.save(tmp_path / "new")
    pd.testing.assert_frame_equal(pd.read_csv(table, dtype={"delay": str}), found.to_frame())
    content = json.loads(summary.read_text())
    assert [row["delay"] for row in content["best"]] == ["0", "late"]
    assert content["search"]["seed"] == found.search.seed
    assert content["search"]["grid"]["discount"] == GRID["discount"]


def test_a_search_goes_on_where_it_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(searching, "BATCH_SIZE", 9)
    whole = BlockTask.compute
    played: list[Any] = []

    def count(task):
        if len(played) == 3:
            raise KeyboardInterrupt
        played.append(task)
        return whole(task)

    monkeypatch.setattr(BlockTask, "compute", count)
    with pytest.raises(KeyboardInterrupt):
        run_search(small(), tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 3
    monkeypatch.setattr(BlockTask, "compute", whole)
    expected = run_search(small())
    before = {path: path.read_bytes() for path in (tmp_path / "cells").iterdir()}
    pd.testing.assert_frame_equal(run_search(small(), tmp_path).to_frame(), expected.to_frame(), check_exact=True)
    assert all(path.read_bytes() == content for path, content in before.items())
    monkeypatch.setattr(BlockTask, "compute", None)  # nothing is left to play
    first = next(iter(before))
    pd.testing.assert_frame_equal(run_search(small(), tmp_path).to_frame(), expected.to_frame(), check_exact=True)
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(RuntimeError, match="not callable"):  # a damaged block is played again
        run_search(small(), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 0}, "seed = 0: must be different from that of the reported results"),
        ({"seed": 9, "reported": 9}, "seed = 9: must be different"),
        ({"replications": 0}, "replications = 0: must be a whole number from 1 on"),
        ({"grid": {}}, "grid = {}: must be at least one"),
        ({"grid": {"gamma": [0.5]}}, "name in grid = 'gamma': must be one of discount, exploration, graph.sparsity"),
        ({"grid": {"discount": []}}, r"grid.discount = \[\]: must be a list of numbers"),
        ({"grid": {"discount": [0.5, 1.0]}}, "must be a number strictly between 0 and 1"),
        ({"policies": {"chance": sp.Uniform()}}, "must be one of none, which chance takes as arrays"),
    ],
)
def test_what_cannot_be_searched_is_refused(changes, message) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_the_reported_draws_may_be_forced() -> None:
    assert small(seed=0, reported=None).seed == 0


def test_the_papers_grids_ship() -> None:
    assert list(shipped_searches()) == ["covid-grid", "ndc-sem-grid", "sem-ucb-grid", "sparsity"]
    assert not set(STUDIES) & set(shipped_searches())
    covid = load_search("covid-grid")
    assert [len(values) for values in covid.grid.values()] == [10, 22]
    assert (covid.grid["discount"][0], covid.grid["exploration"][-1]) == (0.5, 0.7)
    assert (covid.replications, covid.worlds["fresh"], covid.delays["50"]) == (
        20,
        sp.SyntheticSEM(),
        sp.ConstantDelay(50),
    )
    assert covid.seed != covid.reported == 0
    sparsity = np.asarray(load_search("sparsity").grid["graph.sparsity"])
    assert (sparsity[0], sparsity[-1]) == (1e-5, 1e6)
    np.testing.assert_allclose(np.diff(np.log10(sparsity)), 0.5, rtol=1e-9)


def test_parameters_at_a_delay_are_kept() -> None:
    text = """
name = "at"
[worlds.a]
kind = "synthetic"
[delays.5]
kind = "constant"
rounds = 5
[delays.9]
kind = "constant"
rounds = 9
[policies.ndc-sem]
exploration = 1e-5
at.9.exploration = 1e-2
[grid]
discount = [0.5, 0.9]
"""
    found = parse_search(text)
    assert [found.task(block).policy.exploration for block in found.blocks()] == [1e-5, 1e-2]


def test_a_block_that_fails_says_which_it_was(monkeypatch) -> None:
    def fail(*_):
        raise ZeroDivisionError("the world ended")

    monkeypatch.setattr("spillover.experiments.compute.final_regret", fail)
    message = "ndc-sem in a at delay 0, cells 0 to 11 of the grid: ZeroDivisionError: the world ended"
    with pytest.raises(RuntimeError, match=message):
        run_search(small())


@pytest.mark.long
def test_the_papers_grid_takes_less_than_two_minutes() -> None:
    """220 cells, 20 replications, 5,000 rounds at delay 50, on 2 cores."""
    start = perf_counter()
    found = run_search(load_search("covid-grid"), engine="loky", jobs=2)
    assert perf_counter() - start < 120
    assert len(found.to_frame()) == 220


# --- Experiment files with baselines, context, hidden causes, and outcomes that are not observed --------------------


TEXT = """
name = "real"
title = "Only y is seen"
seed = 1
replications = 2
block = 2
record = 20

[worlds.drawn]
kind = "synthetic"
n_arms = 5
budget = 2
horizon = 40
changes = [20]
baseline = [0.5, 2.0]
context = 2
confounding = 0.3
noise = 0.2
observes = "overall"

[delays.5]
kind = "constant"
rounds = 5
[delays.apart]
kind = "per-arm"
delays = [0, 1, 2, 3, 4]

[policies.random]
[policies.delayed-oracle]
"""


def test_a_file_with_everything_runs(tmp_path):
    experiment = parse_experiment(TEXT, "real.toml")
    world: Any = experiment.worlds["drawn"]
    assert (world.baseline, world.context, world.confounding, world.observes) == ((0.5, 2.0), 2, 0.3, "overall")
    assert experiment.delays["apart"] == ArmDelays((0, 1, 2, 3, 4))
    results = run_experiment(experiment, tmp_path / "real", progress=False)
    regret = {(r.delay, r.policy): float(r.regret[:, -1].mean()) for r in results.records()}
    for delay in ("5", "apart"):
        run = sp.simulate(sp.Uniform(), world, experiment.delays[delay], replications=2, seed=1)
        assert regret[delay, "random"] == run.final_regret.mean()


def test_a_given_world_is_read_from_tables():
    given = '\n[worlds.given]\nkind = "fixed"\nadjacency = [[0, 0.5], [0, 0]]\nmeans = [0.3, 0.6]\nbudget = 1\n'
    given += "horizon = 2\nbaseline = [1.0, 2.0]\ncontext = [[0.0], [1.0]]\ncontext_effect = [[0.1], [-0.1]]\n"
    chosen = '\n[[studies]]\nworlds = ["given"]\ndelays = ["5"]\n'
    world: Any = parse_experiment(TEXT + given + chosen, "real.toml").worlds["given"].draw(sp.Rng(0))
    assert world.means(2).tolist() == [0.4, 0.5]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[policies.random]", "[policies.ndc-sem]", r"real.toml:28: ndc-sem in drawn .*NDCSEM: must be one that does"),
        ("[0, 1, 2, 3, 4]", "[0, 1]", r"real.toml:\d+: .*number of delays = 2: must be 5, one for each arm"),
        ('"overall"', '"y"', r"observes = 'y': must be one of both, overall, payoff"),
        ("context = 2", "contexts = 2", "did you mean context"),
    ],
)
def test_what_does_not_fit_is_one_line(before, after, message):
    with pytest.raises(ExperimentError, match=message) as caught:
        parse_experiment(TEXT.replace(before, after), "real.toml")
    assert "\n" not in str(caught.value)


def test_tuning_a_policy_that_does_not_fit_is_one_line():
    world = sp.SyntheticSEM(n_arms=4, budget=2, horizon=20, changes=(), observes="overall")
    with pytest.raises(
        RuntimeError, match="NDCSEM: must be one that does not need the instantaneous rewards"
    ) as caught:
        tune(sp.NDCSEM(), world, 2, grid={"discount": [0.5, 0.9]}, replications=2)
    assert "\n" not in str(caught.value)
