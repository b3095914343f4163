"""Work ahead begins in a pause between requests, and does not wait for one for ever."""

import threading

import pytest

from spillover.service import Service, SqliteLog, background
from spillover.service.background import LONGEST, MOST, MOST_BYTES, PAUSE, REST, Background
from tests.service.memory_log import MemoryLog
from tests.waiting import HANG


def fail() -> None:
    raise ValueError("it cannot be done")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """A clock that stands, so that nothing begins by itself."""
    found = Clock()
    monkeypatch.setattr(background, "monotonic", found)
    return found


def test_work_waits_for_a_pause_between_requests_but_not_for_ever(clock) -> None:
    ahead = Background()
    ahead.add("learn", lambda: None)
    assert ahead.pause() == pytest.approx(PAUSE)
    clock.now += PAUSE / 2
    ahead.step_aside()  # a decision is asked for
    assert ahead.pause() == pytest.approx(PAUSE)
    clock.now = 100.0 + LONGEST - PAUSE / 4
    ahead.add("learn", lambda: None)  # again: it has waited since it was first asked for
    assert ahead.pause() == pytest.approx(PAUSE / 4)
    ahead.rested = clock.now + PAUSE / 2  # after work that took long, requests come first for a while
    assert ahead.pause() == pytest.approx(PAUSE / 2)
    ahead.close()


def test_it_rests_after_work_that_took_long(clock) -> None:
    def work() -> None:
        clock.now += 2.0

    ahead = Background()
    ahead.add("reasons", work)
    assert ahead.idle(HANG)
    assert ahead.rested == clock.now + 2.0 * REST
    ahead.close()


def test_whoever_waits_for_the_end_does_not_wait_for_a_pause(clock) -> None:
    ahead, done = Background(), []
    ahead.add("reasons", lambda: done.append("reasons"))
    ahead.add("learn", lambda: done.append("learn too early"))
    ahead.add("learn", lambda: done.append("learn"), first=True)
    assert ahead.idle(HANG)
    assert done == ["learn", "reasons"]
    assert ahead.hurried == 0
    ahead.close()


def test_work_that_fails_is_no_end_and_too_much_work_is_dropped(clock, caplog) -> None:
    ahead, done = Background(), []
    ahead.add("broken", fail)
    for k in range(MOST):
        ahead.add(f"work {k}", lambda k=k: done.append(k))  # type: ignore[misc]
    assert len(ahead.waiting) == MOST
    assert "broken" not in ahead.waiting
    ahead.add("broken", fail, first=True)
    assert ahead.idle(HANG)
    assert done == list(range(1, MOST))
    assert [record.getMessage() for record in caplog.records] == ["work ahead failed: ValueError in fail"]
    ahead.close()


def test_it_stops_while_work_waits(clock) -> None:
    ahead = Background()
    ahead.add("never", fail)
    ahead.close()
    assert list(ahead.waiting) == ["never"]


def test_who_asks_for_what_a_piece_of_work_brings_does_it_at_once(clock) -> None:
    ahead, done = Background(), list[str]()
    ahead.add("learn", lambda: done.append("learn"))
    ahead.add("reasons", lambda: done.append("reasons"))
    ahead.hurry("reasons")
    ahead.hurry("reasons")
    assert (done, list(ahead.waiting)) == (["reasons"], ["learn"])
    ahead.add("broken", fail)
    ahead.hurry("broken")
    ahead.hurry("learn")
    assert ahead.idle(HANG)  # nothing is left
    ahead.add("more", lambda: done.append("more"))
    assert ahead.idle(HANG)  # and the thread goes on
    assert done == ["reasons", "learn", "more"]
    ahead.close()


def test_reasons_that_are_asked_for_are_kept_then(clock) -> None:
    service = Service(MemoryLog())
    service.create_stream("shop", {"arms": ["a", "b"], "budget": 1})
    service.decide("shop", 1)
    assert [entry.event.kind for entry in service.events("shop")] == ["stream-created", "decision-issued"]
    answer = service.explain("shop", 1)
    assert [entry.event.kind for entry in service.events("shop")][2:] == ["reasons-kept"]
    assert service.explain("shop", 1) == answer
    service.close()


def test_of_too_much_work_the_oldest_is_dropped(clock) -> None:
    ahead = Background()
    for k in range(MOST):
        ahead.add(f"reasons {k}", lambda: None)
    ahead.add("learn", lambda: None, first=True)
    assert list(ahead.waiting) == ["learn", *(f"reasons {k}" for k in range(1, MOST))]
    ahead.close()


def test_work_that_holds_much_memory_does_not_pile_up(clock) -> None:
    ahead = Background()
    for k in range(4):
        ahead.add(f"reasons {k}", lambda: None, size=MOST_BYTES // 3)
    assert list(ahead.waiting) == ["reasons 1", "reasons 2", "reasons 3"]
    ahead.add("reasons of much", lambda: None, size=2 * MOST_BYTES)
    assert list(ahead.waiting) == ["reasons of much"]
    ahead.close()


def test_what_is_dropped_is_the_oldest_that_holds_memory(clock) -> None:
    ahead = Background()
    for k in range(3):
        ahead.add(f"reasons {k}", lambda: None, size=MOST_BYTES // 3)
    for k in range(5):
        ahead.add(f"learn {k}", lambda: None, first=True)
    ahead.add("reasons 3", lambda: None, size=MOST_BYTES // 3)
    assert set(ahead.waiting) == {*(f"learn {k}" for k in range(5)), "reasons 1", "reasons 2", "reasons 3"}
    ahead.close()


def test_reasons_that_were_not_kept_are_kept_when_they_are_asked_for(tmp_path, clock) -> None:
    service = Service(SqliteLog(tmp_path / "decisions.db"))
    service.create_stream("shop", {"arms": ["radio", "video"], "budget": 1})
    service.decide("shop", 1)
    service.close()  # before the reasons are kept
    service = Service(SqliteLog(tmp_path / "decisions.db"))
    assert service.overview("shop")["bands"]["radio"][0]["interval"] is None
    asked = service.explain("shop", 1)
    assert service.ahead.idle(HANG)
    assert service.overview("shop")["bands"]["radio"][0]["interval"] is not None
    assert service.explain("shop", 1) == asked
    service.close()


def test_work_that_is_hurried_counts_as_busy(clock) -> None:
    ahead, begun, goes_on = Background(), threading.Event(), threading.Event()

    def keep() -> None:
        begun.set()
        goes_on.wait(HANG)

    ahead.add("reasons", keep)
    asking = threading.Thread(target=ahead.hurry, args=("reasons",))
    asking.start()
    assert begun.wait(HANG)
    assert not ahead.idle(0.0)
    goes_on.set()
    assert ahead.idle(HANG)
    asking.join()
    ahead.close()
