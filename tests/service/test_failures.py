"""Storage that fails: nothing is acknowledged that is not recorded, and afterwards it goes on."""

import sqlite3
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pytest

from spillover.service import Outcome, Service, SqliteLog, StorageError
from tests.service.logs import new_database, postgres_server
from tests.service.memory_log import MemoryLog

apsw = pytest.importorskip("apsw", reason="apsw is not installed: the test extra has it")
from tests.service.cut_log import CutLog  # noqa: E402
from tests.service.power import Disk  # noqa: E402

SHOP = {"arms": ["a", "b"], "budget": 1}


@pytest.mark.parametrize("error", [apsw.FullError, apsw.ReadOnlyError, apsw.IOError])
def test_a_disk_that_refuses_to_write(error, tmp_path) -> None:
    """Full, read-only or broken: each call is refused while it lasts."""
    disk = Disk(np.random.default_rng(0), 10**9)
    service = Service(CutLog(tmp_path / "log.db", disk))
    service.create_stream("shop", SHOP)
    service.execute("shop", 1, ["a"])
    before = service.state("shop")
    disk.refusal = error
    for _ in range(2):
        with pytest.raises(StorageError):
            service.report("shop", [Outcome(round=1, arm="a", z=0.5, y=0.5)])
        with pytest.raises(StorageError):
            service.decide("shop", 2)
    assert service.state("shop") == before
    disk.refusal = None
    assert service.report("shop", [Outcome(round=1, arm="a", z=0.5, y=0.5)]).statuses[0].status == "recorded"
    assert service.decide("shop", 2).entry.seq == 4
    assert service.audit("shop").passed
    service.close()


def test_a_file_that_has_no_more_room(tmp_path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    service = Service(log)
    service.create_stream("shop", SHOP)
    writer = log.writer
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StorageError, match="full"):
        execute_many(service, 1_000)
    recorded = len(service.events("shop")) - 1
    assert 0 < recorded < 1_000
    writer.execute("PRAGMA max_page_count = 1000000")
    assert service.execute("shop", recorded + 1, ["a"]).entry.seq == recorded + 2
    assert service.audit("shop").passed
    service.close()


def execute_many(service: Service, count: int) -> None:
    for label in range(1, count + 1):
        service.execute("shop", label, ["a"])


def test_a_clock_that_is_set_back_changes_nothing_but_times() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    heads = []
    for direction in (1, -1):
        times = iter((now + direction * timedelta(hours=k)).isoformat() for k in range(100))
        service = Service(MemoryLog(), clock=partial(next, times))
        service.create_stream("shop", SHOP)
        for label in range(1, 5):
            service.execute("shop", label, ["a"])
            service.report(
                "shop", [Outcome(round=label, arm=arm, z=0.5 if arm == "a" else None, y=0.5) for arm in "ab"]
            )
        decision = service.decide("shop", 5)
        assert service.audit("shop").passed
        heads.append((decision.event, [entry.content["event"] for entry in service.events("shop")]))
    assert heads[0] == heads[1]


def test_a_file_of_something_else_is_refused(tmp_path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StorageError, match=r"other\.db: must be the file of a service, or a new one"):
        SqliteLog(other)
    text = tmp_path / "text.db"
    text.write_text("this is no database" * 100)
    with pytest.raises(StorageError, match="not a database"):
        SqliteLog(text)
    with pytest.raises(StorageError, match="there is none"):
        SqliteLog(tmp_path / "none.db", readonly=True)
    newer = tmp_path / "newer.db"
    SqliteLog(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(StorageError, match=r"has schema version 7: must be 1; a newer version of spillover wrote it"):
        SqliteLog(newer)


def test_a_log_that_is_read_only_records_nothing(tmp_path) -> None:
    Service(SqliteLog(tmp_path / "log.db")).close()
    service = Service(SqliteLog(tmp_path / "log.db", readonly=True))
    with pytest.raises(StorageError, match="was opened for reading only"):
        service.create_stream("shop", SHOP)
    service.close()


def test_a_database_that_drops_its_connections() -> None:
    """As when it is restarted: a call in progress is refused, the next ones go on."""
    import psycopg

    address = new_database()
    from spillover.service.postgres_log import PostgresLog

    service = Service(PostgresLog(address))
    service.create_stream("shop", SHOP)
    clock = service.open_streams.clock

    def drop_connections() -> str:
        drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"{drop} AND datname = current_database()")
        return clock()

    service.open_streams.clock = drop_connections  # which is read just before an entry is appended
    with pytest.raises(StorageError):
        service.execute("shop", 1, ["a"])
    service.open_streams.clock = clock
    assert service.execute("shop", 1, ["a"]).entry.seq == 2
    assert service.audit("shop").passed
    service.close()


@pytest.mark.long
def test_a_database_that_is_restarted() -> None:
    address = new_database()
    from spillover.service.postgres_log import PostgresLog

    service = Service(PostgresLog(address))
    service.create_stream("shop", SHOP)
    server = postgres_server()
    server.stop()
    with pytest.raises(StorageError):
        service.execute("shop", 1, ["a"])
    server.start()
    assert service.execute("shop", 1, ["a"]).entry.seq == 2
    assert service.audit("shop").passed
    service.close()
