import errno
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from spillover.experiments import open_results, parse_experiment, results, run, run_experiment
from spillover.experiments.compute import CellTask, Failed, Job, compute_job
from spillover.experiments.engines import start_engine
from spillover.experiments.store import CellStore
from spillover.files import write_atomically
from spillover.studies import load_experiment
from tests.experiments.small import TEXT, small


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "small"
    run_experiment(small(), path)
    return path


@pytest.fixture
def counted(monkeypatch):
    """Cells that are computed, in their order."""
    done = []

    def count(task, whole=CellTask.compute):
        done.append(task)
        return whole(task)

    monkeypatch.setattr(CellTask, "compute", count)
    return done


def equal(one, other):
    assert len(one.records()) == len(other.records())
    for a, b in zip(one.records(), other.records(), strict=True):
        for name in set(a._fields) - {"seconds"}:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def test_records_are_what_simulate_gives(folder):
    found = open_results(folder)
    experiment = found.experiment
    assert found.cell_ids.keys() == experiment.combinations().keys()
    for record in found.records():
        world, delay = experiment.worlds[record.world], experiment.delays[record.delay]
        policy = experiment.policies[record.policy].policy(record.delay)
        count = experiment.combinations()[record[:3]]
        alone = sp.simulate(policy, world, delay, replications=count, seed=3, record=record.rounds.tolist())
        kept = record.rounds - 1
        assert record.horizon == alone.regret.shape[-1] == record.rounds[-1]
        assert record.changes == alone.changes
        assert record.label == experiment.policies[record.policy].label
        np.testing.assert_array_equal(record.replications, range(count))
        np.testing.assert_array_equal(record.regret, alone.regret[:, kept])
        np.testing.assert_array_equal(record.payoff, alone.payoff.cumsum(axis=-1)[:, kept])
        np.testing.assert_array_equal(record.optimality_ratio, alone.optimality_ratio)
        np.testing.assert_array_equal(record.graph_error, alone.graph_error)
        blind = alone.blind_regret(6) if record.delay == "5" else np.full(count, np.nan)
        np.testing.assert_array_equal(record.blind_regret, blind)
        n = 10 if record.world == "fresh" else 6
        adjacency = np.full((count, n, n), np.nan) if alone.adjacency is None else alone.adjacency
        np.testing.assert_array_equal(record.adjacency, adjacency)
        assert record.arms == tuple(str(i + 1) for i in range(n))
        assert record.seconds > 0


def test_the_frame_is_simulate_s(folder):
    frame = open_results(folder).to_frame()
    assert list(frame) == [
        "world", "delay", "policy", "label", "replication", "round", "period", "regret", "payoff", "graph_error",
    ]  # fmt: skip
    part = frame[(frame.world == "fresh") & (frame.delay == "5") & (frame.policy == "ndc-sem")]
    experiment = small()
    policy = experiment.policies["ndc-sem"].policy("5")
    alone = sp.simulate(policy, experiment.worlds["fresh"], 5, replications=6, seed=3, record=[40, 80, 120, 150])
    expected = alone.to_frame().assign(payoff=alone.payoff.cumsum(axis=-1).ravel())
    expected = expected[expected["round"].isin([40, 80, 120, 150])].reset_index(drop=True)
    shared = list(expected)
    pd.testing.assert_frame_equal(part[shared].reset_index(drop=True), expected, check_exact=True)
    assert sorted(open_results(folder).to_frame(every=80)["round"].unique()) == [80, 100, 150]
    with pytest.raises(ValueError, match="every = 0"):
        open_results(folder).to_frame(every=0)


def test_the_other_tables(folder):
    found = open_results(folder)
    final = found.final()
    assert len(final) == 6 * 6 + 3
    record = found.record("fresh", "5", "cts")
    rows = final[(final.world == "fresh") & (final.delay == "5") & (final.policy == "cts")]
    np.testing.assert_array_equal(rows.final_regret, record.regret[:, -1])
    np.testing.assert_array_equal(rows.optimality_ratio, record.optimality_ratio.mean(axis=-1))
    graphs = found.graphs()
    one = graphs[(graphs.world == "picture") & (graphs.replication == 2)]
    learned = one.pivot(index="effect", columns="cause", values="weight").to_numpy()
    np.testing.assert_array_equal(learned, found.record("picture", "5", "ndc-sem").adjacency[2])
    assert [r.policy for r in found.records(world="fresh", delay="5")] == ["ndc-sem", "cts", "reference"]
    assert [r.world for r in found] == ["fresh"] * 6 + ["picture"]
    with pytest.raises(KeyError, match="fresh / 6 / cts: must be one of fresh / 5 / ndc-sem"):
        found.record("fresh", "6", "cts")
    assert "7 records" in repr(found)


@pytest.mark.parametrize("table", ["rounds", "final", "graphs"])
def test_exports_come_back_bit_for_bit(folder, tmp_path, table):
    found = open_results(folder)
    frame = {"rounds": found.to_frame, "final": found.final, "graphs": found.graphs}[table]()
    found.export(tmp_path / "t.parquet", table)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), frame, check_exact=True)
    found.export(tmp_path / "t.csv", table)
    again = pd.read_csv(tmp_path / "t.csv", dtype=str)
    for name in frame:
        column = again[name] if frame[name].dtype.kind not in "fi" else [float(v) for v in again[name]]
        np.testing.assert_array_equal(np.asarray(column), frame[name].to_numpy(), err_msg=str(name))
    for path, name in ((tmp_path / "t.xls", table), (tmp_path / "t.csv", "other")):
        with pytest.raises(ValueError, match="must be"):
            found.export(path, name)


def test_only_what_is_missing_runs(tmp_path, counted, folder):
    experiment = small()
    first = run_experiment(experiment, tmp_path)
    cells = experiment.cells()
    assert len(counted) == len(cells) == 6 * 3 + 2
    counted.clear()
    run_experiment(experiment, tmp_path)
    assert counted == []
    for cell in cells[3:5]:
        first.store.path(cell.id).unlink()
    again = run_experiment(experiment, tmp_path)
    assert [(task.first, task.policy) for task in counted] == [(c.first, c.task.policy) for c in cells[3:5]]
    equal(again, open_results(folder))
    counted.clear()
    run_experiment(experiment.changed(replications=8), tmp_path)  # replications 0 to 5 are there
    assert {task.first for task in counted} == {6, 2, 4}  # 2 and 4: the picture had 3 replications
    assert list((tmp_path / "claims").iterdir()) == []


@pytest.mark.parametrize("block", [1, 4, 100])
def test_blocks_do_not_matter(tmp_path, folder, block):
    equal(run_experiment(small().changed(block=block), tmp_path), open_results(folder))


def test_damaged_cells_are_reported_and_computed_anew(tmp_path, counted, folder):
    experiment = small()
    store = run_experiment(experiment, tmp_path).store
    cut, flipped, empty = (store.path(cell.id) for cell in experiment.cells()[:3])
    cut.write_bytes(cut.read_bytes()[:-1])
    content = bytearray(flipped.read_bytes())
    content[500] ^= 1
    flipped.write_bytes(content)
    empty.write_bytes(b"")
    counted.clear()
    with pytest.raises(results.Missing, match="3 of 20 cells are missing or damaged: run the experiment again"):
        open_results(tmp_path)
    assert len(open_results(tmp_path, partial=True).missing()) == 3
    said: list[str] = []
    again = run_experiment(experiment, tmp_path, notify=said.append)
    assert [line.endswith("is computed again") for line in said] == [True] * 3
    assert len(counted) == 3
    equal(again, open_results(folder))


@pytest.mark.skipif(sys.platform == "win32", reason="a locked file cannot be read there")
def test_a_run_that_waits_says_for_whom(tmp_path, monkeypatch, folder):
    """Once, and it goes on as soon as the other process has ended."""
    monkeypatch.setattr(run, "SECONDS_WITHOUT_A_WORD", 0.0)
    experiment, said = small(), list[str]()
    run.open_store(store := CellStore(tmp_path), experiment, experiment.cells())
    code = "import sys; from spillover.experiments.store import CellStore"
    code += "; store = CellStore(sys.argv[1]); print(store.claim(sys.argv[2]))"
    command = [sys.executable, "-u", "-c", f"{code}; sys.stdin.read()", str(tmp_path), experiment.cells()[4].id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"

        def end(message: str) -> None:
            said.append(message)
            other.kill()

        again = run_experiment(experiment, tmp_path, progress=False, notify=end)
    equal(again, open_results(folder))
    (message,) = said
    assert re.fullmatch(
        rf"waiting for 1 cell claimed by process {other.pid} on \S+, since [\d-]{{10}} [\d:]{{8}} UTC; .*", message
    ), message
    assert list(store.claims.iterdir()) == []


def test_partial_results(tmp_path, monkeypatch):
    done: list[object] = []

    def stop(task, whole=CellTask.compute):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(task)
        return whole(task)

    monkeypatch.setattr(CellTask, "compute", stop)
    with pytest.raises(
        KeyboardInterrupt, match=f"4 of 20 cells are kept in {tmp_path}; run the same command again to resume"
    ):
        run_experiment(small(), tmp_path)
    assert list((tmp_path / "claims").iterdir()) == []
    found = open_results(tmp_path, partial=True)
    np.testing.assert_array_equal(found.record("fresh", "5", "ndc-sem").replications, range(6))
    np.testing.assert_array_equal(found.record("fresh", "5", "cts").replications, range(2))
    with pytest.raises(results.Missing, match="no results for fresh / 5 / reference"):
        found.record("fresh", "5", "reference")


def test_entries_with_the_same_parameters_share_cells(tmp_path, counted):
    text = TEXT[: TEXT.index("[[studies]]")] + '[policies.twin]\nkind = "cts"\nlabel = "twin"\n'
    experiment = parse_experiment(text).changed(policies=["cts", "twin"], worlds=["picture"], delays=["5"])
    found = run_experiment(experiment, tmp_path)
    assert len(counted) == 2
    one, other = found.records()
    np.testing.assert_array_equal(one.regret, other.regret)
    assert (one.label, other.label) == ("cts", "twin")


def test_what_the_store_remembers(tmp_path):
    experiment = small().changed(replications=2, policies=["cts"], worlds=["fresh"], seed=11)
    run_experiment(experiment, tmp_path)
    again = open_results(tmp_path).experiment
    assert again == experiment
    assert (tmp_path / "experiment.toml").read_text() == TEXT
    _, about = open_results(tmp_path).store.read(experiment.cells()[0].id)
    assert about["versions"]["numpy"] == np.__version__
    assert about["description"] == json.loads(json.dumps(experiment.cells()[0].description))
    assert about["seconds"] > 0


def test_results_are_readable_after_the_package_changed(tmp_path, monkeypatch):
    experiment = small().changed(replications=1, policies=["cts"])
    run_experiment(experiment, tmp_path)
    monkeypatch.setattr("spillover.experiments.experiment.source_digest", lambda task: "another")
    assert len(open_results(tmp_path).records()) == 2
    assert all(not (tmp_path / "cells" / f"{cell.id}.npz").exists() for cell in experiment.changed().cells())


def test_refusals(tmp_path, folder, monkeypatch):
    other = parse_experiment(TEXT.replace('"small"', '"other"', 1))
    with pytest.raises(ValueError, match="it holds the experiment 'small'"):
        run_experiment(other, folder)
    with pytest.raises(FileNotFoundError, match=r"no store\.json"):
        open_results(tmp_path)
    with pytest.raises(ValueError, match="engine = 'threads': must be one of serial, loky, dask, ray"):
        run_experiment(small(), tmp_path / "a", engine="threads")
    with pytest.raises(ValueError, match="jobs = 0"):
        run_experiment(small(), tmp_path / "a", engine="loky", jobs=0)
    with pytest.raises(ValueError, match="only dask and ray connect to a cluster"):
        run_experiment(small(), tmp_path / "a", engine="loky", address="tcp://host:1")
    with pytest.raises(ValueError, match=r"changed only by changed\(\)"):
        run_experiment(replace(small(), seed=5), tmp_path / "b")


def test_a_policy_that_fails_is_named_and_the_rest_kept(tmp_path, monkeypatch):
    def fail(task, whole=CellTask.compute):
        if isinstance(task.policy, sp.policies.CTS) and task.first == 2:
            raise ZeroDivisionError("oh")
        return whole(task)

    monkeypatch.setattr(CellTask, "compute", fail)
    with pytest.raises(Failed, match="cts in fresh at delay 5, replications 2 to 3: ZeroDivisionError: oh"):
        run_experiment(small(), tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 4
    assert list((tmp_path / "claims").iterdir()) == []


def test_a_full_disk(tmp_path, monkeypatch, folder):
    written: list[object] = []

    def full(path, content):
        if len(written) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        write_atomically(path, content)

    with monkeypatch.context() as patch:
        patch.setattr("spillover.experiments.store.write_atomically", full)
        with pytest.raises(OSError, match=r"No space left on device.*npz"):
            run_experiment(small(), tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 3  # the first two were store.json and experiment.toml
    equal(run_experiment(small(), tmp_path), open_results(folder))


def test_a_worker_with_another_version_is_refused():
    cell = small().cells()[0]
    with pytest.raises(Failed, match="another version of spillover"):
        compute_job(Job(cell.id, str(cell), cell.task, "another source"))


def test_other_versions_in_a_worker_are_a_warning(monkeypatch):
    cell, found = small().cells()[0], iter([{"numpy": "2"}, {"numpy": "1"}])
    monkeypatch.setattr(run, "versions", lambda: next(found))
    monkeypatch.setattr("spillover.experiments.compute.versions", lambda: next(found))
    monkeypatch.setattr(CellTask, "compute", lambda task: None)
    with start_engine("serial") as pool, pytest.warns(UserWarning, match="a worker has numpy 1, while this .* numpy 2"):
        list(run.computed(pool, [Job(cell.id, "", cell.task, cell.source)]))


def test_progress_is_silent_when_piped(tmp_path, capsys):
    run_experiment(small().changed(replications=1), tmp_path)
    assert capsys.readouterr() == ("", "")


@pytest.mark.long
def test_the_shipped_study_is_what_simulate_gives(tmp_path):
    experiment = load_experiment("synthetic").changed(
        worlds=["fresh"], delays=["200"], policies=["ndc-sem"], replications=10, block=4
    )
    record = run_experiment(experiment, tmp_path).record("fresh", "200", "ndc-sem")
    alone = sp.simulate(sp.NDCSEM(exploration=1e-6), sp.SyntheticSEM(), 200, replications=10)
    np.testing.assert_array_equal(record.regret, alone.regret[:, record.rounds - 1])
    np.testing.assert_array_equal(record.graph_error, alone.graph_error)


@pytest.mark.parametrize(
    ("content", "lacking"),
    [
        ({"format": 1}, "no name"),
        ({"format": 1, "name": "small", "text": 1, "changes": {}, "cells": []}, "no text"),
        ({"format": 1, "name": "small", "text": "", "changes": {}, "cells": [{}]}, "no complete list of cells"),
    ],
)
def test_an_incomplete_store_is_refused(content, lacking, tmp_path):
    (tmp_path / "store.json").write_text(json.dumps(content))
    for use in (lambda: open_results(tmp_path), lambda: run_experiment(parse_experiment(TEXT), tmp_path)):
        with pytest.raises(ValueError, match=rf"store\.json: has {lacking}: must be a complete file"):
            use()
