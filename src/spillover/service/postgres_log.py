"""A log in PostgreSQL, for several servers: numbers are assigned under a lock of the stream."""

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any

import psycopg
import psycopg.conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from spillover.service.errors import StorageError
from spillover.service.events import START, Draft, Entry, Head, head_after, sealed
from spillover.service.log import EventLog, Moved, StripedLock

VERSION = 1
WAIT = 10.0  # seconds for a connection
SCHEMA_LOCK = 0x5350494C
SCHEMA = """
CREATE TABLE IF NOT EXISTS spillover_schema (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS spillover_streams (
    name TEXT COLLATE "C" PRIMARY KEY,
    seq BIGINT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS spillover_entries (
    stream TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    text TEXT NOT NULL,
    digest TEXT NOT NULL,
    attachment BYTEA NOT NULL,
    PRIMARY KEY (stream, seq),
    UNIQUE (stream, key)
);
CREATE TABLE IF NOT EXISTS spillover_answers (
    stream TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    answer BYTEA NOT NULL,
    PRIMARY KEY (stream, seq)
);
"""
ACCEPTED = "an address such as postgresql://user@host/name (with %40 for @ in a password), or host=... dbname=..."
Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresLog(EventLog):
    """A log in a database; `address` is a connection string such as postgresql://user@host/name."""

    def __init__(self, address: str, *, connections: int = 16) -> None:
        self.locks = StripedLock()
        self.own = threading.local()  # the connection that holds the lock of a stream, in this thread
        # durable even if the database's default is not
        options = {"autocommit": True, "options": "-c synchronous_commit=on"}
        check_address(address)
        with failing():
            self.pool = ConnectionPool(
                address,
                min_size=1,
                max_size=connections,
                timeout=WAIT,
                kwargs=options,
                check=ConnectionPool.check_connection,  # a database that was restarted has forgotten its connections
                open=False,
            )
            try:
                self.pool.open(wait=True, timeout=WAIT)
                self.prepare()
            except BaseException:
                self.pool.close()
                raise

    def prepare(self) -> None:
        """Make the tables if they are not there; refuse those of another version."""
        with self.pool.connection() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
            connection.execute(SCHEMA)
            row = connection.execute("SELECT max(version) FROM spillover_schema").fetchone()
            version = None if row is None else row[0]
            if version is None:
                connection.execute("INSERT INTO spillover_schema VALUES (%s)", (VERSION,))
            elif version != VERSION:
                raise StorageError(f"database: has schema version {version}: must be {VERSION}")

    @contextmanager
    def exclusive(self, stream: str) -> Iterator[None]:
        number = int.from_bytes(blake2b(stream.encode(), digest_size=8).digest(), signed=True)
        with self.locks.held(stream), self.connection() as connection:
            with failing():
                connection.execute("SELECT pg_advisory_lock(%s)", (number,))
            self.own.connection = connection
            try:
                yield
            finally:
                self.own.connection = None
                with suppress(psycopg.Error):  # a lost connection has lost its locks
                    connection.execute("SELECT pg_advisory_unlock(%s)", (number,))

    def append(self, head: Head, drafts: Sequence[Draft]) -> list[Entry]:
        with self.connection() as connection, failing(), connection.transaction():
            # nobody else may move it until the transaction ends
            asked = "SELECT seq, digest FROM spillover_streams WHERE name = %s FOR UPDATE"
            now = connection.execute(asked, (head.stream,)).fetchone() or (0, START)
            if now != (head.seq, head.digest):
                raise Moved(head.stream)
            found: list[Entry] = []
            for draft in drafts:
                found.append(sealed(head, draft))
                head = head_after(found[-1])
            insert = "INSERT INTO spillover_entries VALUES (%s, %s, %s, %s, %s, %s)"
            connection.cursor().executemany(insert, [entry.row for entry in found])
            connection.execute(
                "INSERT INTO spillover_streams VALUES (%s, %s, %s) "
                "ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, digest = excluded.digest",
                (head.stream, head.seq, head.digest),
            )
        return found

    def check_ready(self) -> None:
        with self.connection() as connection, failing():
            row = connection.execute("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')").fetchone()
        if row != (False, "off"):
            raise StorageError("database: must be writable, and not a read-only copy")

    def rows(self, statement: str, *values: Any) -> list[Any]:
        with self.connection() as connection, failing():
            return connection.execute(statement.format("spillover_").replace("?", "%s"), values).fetchall()

    def keep_answer(self, stream: str, seq: int, answer: bytes) -> None:
        asked = "INSERT INTO spillover_answers VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        with suppress(StorageError), self.connection() as connection, failing():
            connection.execute(asked, (stream, seq, answer))

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """The connection that holds the lock of a stream in this thread, or any other."""
        held: Connection | None = vars(self.own).get("connection")
        if held is not None:
            yield held
            return
        with failing():
            found = self.pool.getconn()
        try:
            yield found
        finally:
            self.pool.putconn(found)

    def close(self) -> None:
        self.pool.close()


def check_address(address: str) -> None:
    """Refuse what is no address. The library's message would show a part of it, perhaps the password."""
    try:
        found = psycopg.conninfo.conninfo_to_dict(address)
        # a sign that is not escaped makes a host or a port of a part of the password
        good = "@" not in str(found.get("host", "")) and str(found.get("port", "0")).replace(",", "0").isdecimal()
    except (psycopg.Error, UnicodeError):
        good = False
    if not good:
        raise StorageError(f"database: must be {ACCEPTED}; this one cannot be read")


def without_names(text: str) -> str:
    """What is said of a connection, without what is quoted from its address.

    >>> without_names('could not translate host name "db.example" to address')
    'could not translate host name "..." to address'
    """
    return re.sub(r"""(["']).*?\1""", '"..."', " ".join(text.split()))


def hide_names(record: logging.LogRecord) -> bool:
    """The same for what the pool of connections logs."""
    record.msg, record.args = without_names(record.getMessage()), ()
    return True


logging.getLogger("psycopg.pool").addFilter(hide_names)


@contextmanager
def failing() -> Iterator[None]:
    """Errors of the database as StorageError."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise StorageError(f"database: {without_names(str(error))}") from None
