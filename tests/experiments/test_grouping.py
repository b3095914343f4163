"""Small cells travel in groups."""

import pytest

from spillover.experiments import group_work, run, run_experiment
from spillover.experiments.compute import compute
from spillover.experiments.group_work import CellJob, Work, compute_group
from spillover.experiments.grouping import Pace, group_seconds, groups
from spillover.experiments.pools import SerialPool
from spillover.store import CellStore
from tests.experiments.small import small
from tests.experiments.test_run import equal


class Far(SerialPool):
    """A pool whose calls take long to get there."""

    overhead = 0.02
    dispatch = 0.005

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def slots(self) -> int:
        return self.workers


def sizes(cells, pool, pace):
    """How many cells each group has."""
    found: list[int] = []
    for group in groups(cells, pool, pace, lambda: len(cells) - sum(found)):
        found.append(len(group))
    return found


def test_groups_take_long_enough_for_the_way_and_for_the_scheduler():
    assert group_seconds(Far(1)) == 0.02 / 0.05
    assert group_seconds(Far(1000)) == 1000 * 0.005 / 0.05


def test_cells_of_a_kind_that_was_never_seen_go_alone():
    cells, pace = small().changed(replications=100).cells()[:50], Pace()
    assert sizes(cells, Far(1), pace) == [1] * 50
    pace.learn(cells[0], 0.1)
    assert sizes(cells, Far(1), pace)[:3] == [4, 4, 4]  # 0.4 s
    pace.learn(cells[0], 0.3)
    assert pace.seconds(cells[0]) == 0.2


def test_groups_get_smaller_towards_the_end():
    cells, pace = small().changed(replications=100).cells()[:50], Pace()
    pace.learn(cells[0], 1e-6)
    found = sizes(cells, Far(2), pace)
    assert sum(found) == 50
    assert found == sorted(found, reverse=True)
    assert found[0] == 12
    assert found[-1] == 1


def test_cells_are_not_grouped_where_that_saves_nothing():
    cells, pace = small().cells(), Pace()
    pace.learn(cells[0], 1e-6)
    assert set(sizes(cells, SerialPool(), pace)) == {1}


def test_workers_that_do_not_see_the_store_send_their_results(tmp_path, monkeypatch):
    sent: list[bool] = []

    def watched(work: Work):
        outcomes = compute_group(work)
        sent.extend(outcome.computed is not None for outcome in outcomes)
        return outcomes

    monkeypatch.setattr(run, "compute_group", watched)
    expected = run_experiment(small(), tmp_path / "here")
    assert sent == [False] * 20
    monkeypatch.setattr(run, "check_workers", lambda *given: False)
    equal(run_experiment(small(), tmp_path / "there"), expected)
    assert sent == [False] * 20 + [True] * 20
    assert list((tmp_path / "there" / "claims").iterdir()) == []


def test_files_that_appear_late_are_waited_for(tmp_path, monkeypatch):
    store, looks = CellStore(tmp_path), iter([False, False, True])
    monkeypatch.setattr(store, "has", lambda name: next(looks))
    run.wait_for_files(store, ["a"])
    assert list(looks) == []
    monkeypatch.setattr(run, "SECONDS_TO_APPEAR", 0.0)
    monkeypatch.setattr(store, "has", lambda name: False)
    with pytest.raises(FileNotFoundError, match="a worker wrote it, but it is not there"):
        run.wait_for_files(store, ["a"])


def test_a_worker_stops_when_the_run_is_over(tmp_path, monkeypatch):
    """The cell that is being computed is kept, and no other is begun."""
    cells, store = small().cells(), CellStore(tmp_path)
    store.open({}, "")
    with store.session() as session:

        def last(task, whole=compute):
            (store.claims / session).unlink()
            return whole(task)

        monkeypatch.setattr(group_work, "compute", last)
        done = compute_group(Work(tmp_path, session, [CellJob.of(cell) for cell in cells[:3]]))
    assert [(outcome.cell, outcome.stored) for outcome in done] == [(cells[0].id, True)]
    assert store.has(cells[0].id)
    assert list(store.claims.iterdir()) == []


def test_the_first_cell_that_fails_ends_a_group_and_those_before_it_are_kept(tmp_path, monkeypatch):
    cells = small().cells()

    def fail(task, whole=compute):
        if task.first == 2:
            raise ZeroDivisionError("oh")
        return whole(task)

    monkeypatch.setattr(group_work, "compute", fail)
    done = compute_group(Work(tmp_path, None, [CellJob.of(cell) for cell in cells[:3]]))
    assert done[0].computed is not None
    assert "replications 2 to 3: ZeroDivisionError: oh" in str(done[1].error)
    assert len(done) == 2
