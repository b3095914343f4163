"""The contract of a log, the same for SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator

import pytest

from spillover.service.errors import StorageError
from spillover.service.events import START, Draft, Head, OutcomeExpired
from spillover.service.log import EventLog, Moved
from tests.service.logs import KINDS, open_log


@pytest.fixture(params=KINDS)
def log(request, tmp_path) -> Iterator[EventLog]:
    found = open_log(request.param, tmp_path)
    yield found
    found.close()


def draft(key: str, attachment: bytes = b"") -> Draft:
    event = OutcomeExpired(round=key, reason="né\x00 'x'; DROP TABLE entries")
    return Draft(event=event, key=key, request="r", time="t", author="a", attachment=attachment)


def test_what_is_appended_is_read_back_in_order(log) -> None:
    first = log.append(log.head("s"), [draft("a"), draft("b", b"\x00\xff")])
    (last,) = log.append(log.head("s"), [draft("c")])
    assert log.read("s") == [*first, last]
    assert [entry.seq for entry in log.read("s")] == [1, 2, 3]
    assert [entry.content["previous"] for entry in log.read("s")] == [START, first[0].digest, first[1].digest]
    assert log.head("s") == Head(stream="s", seq=3, digest=last.digest)
    assert log.read("s", after=1, limit=1) == [first[1]]
    assert log.read("s", upto=2) == first
    assert log.with_key("s", "b") == first[1]
    assert log.with_key("s", "d") is None
    assert log.with_key("t", "b") is None


def test_streams_are_listed_in_the_order_of_their_characters(log) -> None:
    names = ["b", "ä", "B", "a c", "a"]
    for name in names:
        log.append(log.head(name), [draft("x")])
    assert [head.stream for head in log.streams()] == sorted(names)
    assert [head.stream for head in log.streams(after="a c", limit=2)] == ["b", "ä"]
    assert log.head("none") == Head(stream="none")
    assert log.read("none") == []


def test_only_the_last_head_can_be_appended_to(log) -> None:
    old = log.head("s")
    log.append(old, [draft("a")])
    with pytest.raises(Moved):
        log.append(old, [draft("b")])
    assert len(log.read("s")) == 1


def test_a_key_is_used_once_and_a_failure_leaves_nothing(log) -> None:
    log.append(log.head("s"), [draft("a")])
    before = log.head("s")
    with pytest.raises(StorageError):
        log.append(before, [draft("b"), draft("a")])
    assert log.head("s") == before
    assert [entry.key for entry in log.read("s")] == ["a"]
    log.append(log.head("t"), [draft("a")])  # of another stream
    log.append(before, [draft("b")])


def test_many_threads_number_without_gaps(log) -> None:
    def write(name: str) -> None:
        for turn in range(5):
            stream = f"s{turn % 2}"
            with log.exclusive(stream):
                log.append(log.head(stream), [draft(f"{name}-{turn}")])

    threads = [threading.Thread(target=write, args=(str(k),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream, count in (("s0", 24), ("s1", 16)):
        entries = log.read(stream)
        assert [entry.seq for entry in entries] == list(range(1, count + 1))
        assert len({entry.key for entry in entries}) == count


def test_the_first_answer_to_a_decision_is_kept_beside_its_entry(log) -> None:
    assert log.kept_answer("s", 2) is None
    log.keep_answer("s", 2, b"\x00first")
    log.keep_answer("s", 2, b"second")
    log.keep_answer("t", 2, b"other")
    assert log.kept_answer("s", 2) == b"\x00first"
    assert log.read("s") == []


def test_a_closed_log_says_so(log) -> None:
    log.append(log.head("s"), [draft("a")])
    log.close()
    with pytest.raises(StorageError):
        log.append(Head(stream="s"), [draft("b")])
    with pytest.raises(StorageError):
        log.read("s")
    log.keep_answer("s", 1, b"answer")  # as far as that is possible
