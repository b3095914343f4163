"""An audit finds every flipped bit of the log, and every decision that does not follow from what was known."""

import sqlite3

import numpy as np
import pytest

from spillover.service import Conflict, NotFound, Outcome, Service, SqliteLog, StorageError
from spillover.service.decisions import packed
from spillover.service.events import Draft, Entry, Event, ReasonsKept, canonical_json, digest
from tests.service.memory_log import MemoryLog
from tests.service.stories import Story

SHOP = {"arms": ["a", "b", "c"], "budget": 2}
COLUMNS = [("entries", column) for column in ("stream", "seq", "key", "text", "digest", "attachment")]
COLUMNS += [("streams", column) for column in ("name", "seq", "digest")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A file with a stream that has entries of most kinds."""
    path = tmp_path_factory.mktemp("audit") / "log.db"
    service = Service(SqliteLog(path))
    service.create_stream("shop", SHOP)
    for label in range(1, 4):
        service.decide("shop", label)
        service.execute("shop", label)
        service.report("shop", [Outcome(round=label, arm=arm, y=0.5) for arm in "abc"], author="né")
    service.correct("shop", 1, "a", {"y": 0.7}, revision=2)
    service.expire("shop", 3)
    event = ReasonsKept(round="1", version="0.0")  # as earlier versions of the package recorded them
    draft = Draft(event=event, key="reasons:1", request="", time="", author="service", attachment=b"all reasons")
    service.log.append(service.log.head("shop"), [draft])
    assert service.audit("shop").passed
    service.close()
    return path.read_bytes()


def found(path) -> bool:
    """Whether a damage is noticed."""
    try:
        log = SqliteLog(path)
    except StorageError:
        return True
    service = Service(log)
    try:
        return not service.audit("shop", decisions=False).passed
    except (NotFound, StorageError):
        return True
    finally:
        service.close()


def flip(connection, rng, table: str, column: str) -> None:
    """Flip a bit of one value."""
    rows = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE length({column}) > 0").fetchall()
    row, value = rows[rng.integers(len(rows))]
    if isinstance(value, int):
        changed: object = value ^ (1 << int(rng.integers(8)))
    else:
        content = bytearray(value.encode() if isinstance(value, str) else value)
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        changed = bytes(content)
    cast = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
    connection.execute(f"UPDATE {table} SET {column} = {cast} WHERE rowid = ?", (changed, row))


def flipped_bits_are_found(recorded, folder, seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        path = folder / f"{seed}.db"
        path.write_bytes(recorded)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            flip(connection, rng, *COLUMNS[seed % len(COLUMNS)])
        except sqlite3.IntegrityError:
            continue  # two rows of the same number
        finally:
            connection.close()
        assert found(path), (seed, COLUMNS[seed % len(COLUMNS)])


def test_flipped_bits_are_found(recorded, tmp_path) -> None:
    whole = tmp_path / "whole.db"
    whole.write_bytes(recorded)
    assert not found(whole)
    flipped_bits_are_found(recorded, tmp_path, range(45))


@pytest.mark.long
def test_three_thousand_flipped_bits_are_found(recorded, tmp_path) -> None:
    flipped_bits_are_found(recorded, tmp_path, range(1_000, 4_000))


def test_entries_that_were_removed_are_missed(recorded, tmp_path) -> None:
    for seq in (1, 5, "(SELECT max(seq) FROM entries)"):
        path = tmp_path / f"{digest(str(seq))}.db"
        path.write_bytes(recorded)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(f"DELETE FROM entries WHERE seq = {seq}")
        connection.close()
        assert found(path)


def test_a_decision_that_does_not_follow_is_found_though_all_hashes_are_right() -> None:
    """As if somebody had rewritten the log from there on."""
    honest = Service(MemoryLog())
    honest.create_stream("shop", SHOP)
    honest.decide("shop", 1)
    forged = MemoryLog()
    for entry in honest.events("shop"):
        event = entry.event
        if entry.seq == 2:
            event = type(event).from_dict(event.to_dict() | {"chosen": ["a"]})
        draft = Draft(event=event, key=entry.key, request=entry.request, time=entry.time, author="")
        forged.append(forged.head("shop"), [draft])
    audit = Service(forged).audit("shop")
    assert audit.problems == ("entry 2: decision of 1: another one follows from what was known",)
    assert Service(forged).audit("shop", decisions=False).passed


def scores_changed(entry: Entry, change) -> Event:
    """The event of an entry, with other scores if it is a decision."""
    content = entry.event.to_dict()
    if "scores" in content:
        content = content | {"scores": {arm: change(parts) for arm, parts in content["scores"].items()}}
    return type(entry.event).from_dict(content)


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        (
            lambda parts: parts | {"interval": [0.0, 1.0]},
            ("entry 2: decision of 1: another one follows from what was known",),
        ),
        (lambda parts: {name: value for name, value in parts.items() if name != "interval"}, ()),  # an earlier version
    ],
)
def test_intervals_that_do_not_follow_are_found_and_those_of_earlier_versions_are_not_missed(change, problems) -> None:
    honest, log = Service(MemoryLog()), MemoryLog()
    honest.create_stream("shop", SHOP)
    honest.decide("shop", 1)
    for entry in honest.events("shop"):
        event = scores_changed(entry, change)
        draft = Draft(event=event, key=entry.key, request=entry.request, time=entry.time, author="")
        log.append(log.head("shop"), [draft])
    assert Service(log).audit("shop").problems == problems


def test_kept_reasons_that_do_not_follow_are_found() -> None:
    log = MemoryLog()
    service = Service(log)
    service.create_stream("shop", SHOP)
    service.decide("shop", 1)
    answer = service.explain("shop", 1)
    assert service.audit("shop").passed
    whole = log.answers["shop", 2]
    for damaged in (packed(answer | {"choose": ["b"]}), whole[:-1], whole[:40] + b"x" + whole[41:]):
        log.answers["shop", 2] = damaged
        assert service.audit("shop").problems == ("entry 2: reasons of 1: others follow from what was known",)
    assert service.explain("shop", 1) == answer  # computed again, as what was kept cannot be read


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_audits_of_random_streams_pass(seed) -> None:
    service = Service(MemoryLog())
    story = Story(service, "shop", seed)
    story.live(8)
    audit = service.audit("shop")
    assert audit.problems == ()
    assert audit.decisions == len(story.decided)
    assert audit.entries == service.log.head("shop").seq


def test_a_log_that_another_server_moved_is_read_again() -> None:
    """Two services share a log without a lock between them: the second is told to ask again, and nothing is lost."""
    log = MemoryLog()
    first, second = Service(log), Service(log)
    first.create_stream("shop", SHOP)
    with first.open_streams.writing("shop") as ledger:
        log.locks = type(log.locks)()
        second.execute("shop", 1, ["a"])
        with pytest.raises(Conflict, match="was changed by another server: ask again"):
            first.open_streams.record(ledger, [ledger_event()], "k", {}, "")
    assert first.execute("shop", 2, ["a"]).entry.seq == 3
    assert canonical_json(first.state("shop")) == canonical_json(second.state("shop"))


def ledger_event():
    from spillover.service.events import OutcomeExpired

    return OutcomeExpired(round="1")
