"""The contract of a log: entries of many streams, appended one after another, never changed. `open_log` opens one."""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from zlib import crc32

from spillover.registry import needed_for
from spillover.service.events import Draft, Entry, Head

AT_ONCE = 1_000  # entries that are read at a time
STRIPES = 1_024
# also what was meant to be one: an address may hold a password, and must never be taken for a file and shown
ADDRESS = re.compile(r"[\s'\"]*(\w+\s*=|postgres(ql)?:)|.*(://|password\s*=)", re.IGNORECASE | re.DOTALL)


class Moved(Exception):
    """Another writer has appended to the stream: read its new entries, and decide again what to append."""


class StripedLock:
    """A lock for every name, of which a few share one.

    Anybody may ask for any name: a lock for each of 100,000 takes 19 MB, this 0.1 MB.
    """

    def __init__(self) -> None:
        self.locks = [threading.Lock() for _ in range(STRIPES)]

    def held(self, name: str) -> threading.Lock:
        return self.locks[crc32(name.encode()) % STRIPES]


class EventLog(ABC):
    """Streams of entries. Threads may share a log.

    `append` returns when the entries are on disk, all of them, or raises and none is there. Numbers of a stream have no
    gaps. Whoever appends holds the stream's `exclusive` lock while he reads and decides what to append.
    """

    written: int | None = None  # how many entries were appended by this object; None: others may append, too

    @abstractmethod
    def exclusive(self, stream: str) -> AbstractContextManager[object]:
        """The lock of a stream, among all threads and all processes that use the log."""

    @abstractmethod
    def append(self, head: Head, drafts: Sequence[Draft]) -> list[Entry]:
        """Append after `head`; Moved if the stream has another one, StorageError if it could not be stored."""

    @abstractmethod
    def head(self, stream: str) -> Head:
        """The end of a stream; number 0 if there is no such stream."""

    @abstractmethod
    def read(self, stream: str, after: int = 0, limit: int = AT_ONCE, upto: int | None = None) -> list[Entry]:
        """Entries of a stream in order: those with numbers above `after`, and up to `upto`; `limit` at most."""

    @abstractmethod
    def with_key(self, stream: str, key: str) -> Entry | None:
        """The entry with an idempotency key."""

    @abstractmethod
    def streams(self, after: str = "", limit: int = AT_ONCE) -> list[Head]:
        """The streams by name, those whose names come after `after`; `limit` at most."""

    @abstractmethod
    def keep_answer(self, stream: str, seq: int, answer: bytes) -> None:
        """Keep the whole answer to the decision of an entry, beside the entries, as far as that is possible."""

    @abstractmethod
    def kept_answer(self, stream: str, seq: int) -> bytes | None:
        """The answer that was kept first."""

    def check_ready(self) -> None:
        """StorageError if an entry could not be appended now, as far as that can be told without appending one."""
        self.head("")

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""


class SqlLog(EventLog):
    """A log in tables of a database: what both kinds read in the same way."""

    @abstractmethod
    def rows(self, statement: str, *values: Any) -> list[Any]:
        """What a statement finds. It has {} before names of tables, and ? for values."""

    def head(self, stream: str) -> Head:
        found = self.rows("SELECT seq, digest FROM {}streams WHERE name = ?", stream)
        return Head(stream=stream, seq=found[0][0], digest=found[0][1]) if found else Head(stream=stream)

    def read(self, stream: str, after: int = 0, limit: int = AT_ONCE, upto: int | None = None) -> list[Entry]:
        asked = "SELECT * FROM {}entries WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        return [Entry(*row) for row in self.rows(asked, stream, after, 2**62 if upto is None else upto, limit)]

    def with_key(self, stream: str, key: str) -> Entry | None:
        found = self.rows("SELECT * FROM {}entries WHERE stream = ? AND key = ?", stream, key)
        return Entry(*found[0]) if found else None

    def streams(self, after: str = "", limit: int = AT_ONCE) -> list[Head]:
        found = self.rows("SELECT name, seq, digest FROM {}streams WHERE name > ? ORDER BY name LIMIT ?", after, limit)
        return [Head(stream=name, seq=seq, digest=digest) for name, seq, digest in found]

    def kept_answer(self, stream: str, seq: int) -> bytes | None:
        found = self.rows("SELECT answer FROM {}answers WHERE stream = ? AND seq = ?", stream, seq)
        return bytes(found[0][0]) if found else None


def is_address(database: str) -> bool:
    """Whether a database is an address (postgresql://..., host=... dbname=...), and not the path of a file.

    >>> is_address("postgresql://ann@db/shop"), is_address("host=db user=ann"), is_address("shop.db")
    (True, True, False)
    """
    return ADDRESS.match(database) is not None


def open_log(database: str, *, readonly: bool = False) -> EventLog:
    """The log of a database: the path of a file, or the address of a PostgreSQL.

    readonly: for reading beside a running server; a file has one writer.
    """
    if not is_address(database):
        from spillover.service.sqlite_log import SqliteLog

        return SqliteLog(database, readonly=readonly)
    with needed_for("PostgreSQL", "postgres"):
        from spillover.service.postgres_log import PostgresLog
    return PostgresLog(database)


def shown(database: str) -> str:
    """A database as it may be shown: nothing of an address, as any part of it may turn out to be the password.

    >>> shown("postgresql://ann:secret@db.example/shop"), shown("shop.db")
    ('PostgreSQL', 'shop.db')
    """
    return "PostgreSQL" if is_address(database) else database
