"""A log in one SQLite file: one server, one writer, any number of readers."""

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from spillover.service.entry import Draft, Entry, Head, head_after, sealed
from spillover.service.errors import StorageError
from spillover.service.log import AT_ONCE, EventLog, Moved

VERSION = 1
SCHEMA = """
CREATE TABLE streams (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE TABLE entries (
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    key TEXT NOT NULL,
    text TEXT NOT NULL,
    digest TEXT NOT NULL,
    attachment BLOB NOT NULL,
    PRIMARY KEY (stream, seq),
    UNIQUE (stream, key)
) STRICT;
"""


class SqliteLog(EventLog):
    """A log in a file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.writing = threading.Lock()
        self.locks: dict[str, threading.RLock] = defaultdict(threading.RLock)
        with failing(self.path):
            self.connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("PRAGMA synchronous=FULL")
            self.prepare()

    def prepare(self) -> None:
        """Make the tables of a new file; refuse a file of another version."""
        version = self.connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self.connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version != VERSION:
            raise StorageError(f"{self.path}: has schema version {version}: must be {VERSION}")

    def exclusive(self, stream: str) -> AbstractContextManager[None]:
        return held(self.locks[stream])

    def append(self, head: Head, drafts: Sequence[Draft]) -> list[Entry]:
        with self.writing, failing(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                found = self.write(head, drafts)
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
        return found

    def write(self, head: Head, drafts: Sequence[Draft]) -> list[Entry]:
        if self.find_head(head.stream) != head:
            raise Moved(head.stream)
        found = []
        for draft in drafts:
            entry = sealed(head, draft)
            row = (entry.stream, entry.seq, entry.key, entry.text, entry.digest, entry.attachment)
            self.connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
            head = head_after(entry)
            found.append(entry)
        self.connection.execute("INSERT OR REPLACE INTO streams VALUES (?, ?, ?)", (head.stream, head.seq, head.digest))
        return found

    def find_head(self, stream: str) -> Head:
        row = self.connection.execute("SELECT seq, digest FROM streams WHERE name = ?", (stream,)).fetchone()
        return Head(stream=stream) if row is None else Head(stream=stream, seq=row[0], digest=row[1])

    def head(self, stream: str) -> Head:
        with self.writing, failing(self.path):
            return self.find_head(stream)

    def read(self, stream: str, after: int = 0, limit: int = AT_ONCE, upto: int | None = None) -> list[Entry]:
        asked = "SELECT * FROM entries WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        last = 2**62 if upto is None else upto
        with self.writing, failing(self.path):
            return [entry_of(row) for row in self.connection.execute(asked, (stream, after, last, limit))]

    def with_key(self, stream: str, key: str) -> Entry | None:
        with self.writing, failing(self.path):
            row = self.connection.execute(
                "SELECT * FROM entries WHERE stream = ? AND key = ?", (stream, key)
            ).fetchone()
        return None if row is None else entry_of(row)

    def streams(self, after: str = "", limit: int = AT_ONCE) -> list[Head]:
        asked = "SELECT name, seq, digest FROM streams WHERE name > ? ORDER BY name LIMIT ?"
        with self.writing, failing(self.path):
            rows = self.connection.execute(asked, (after, limit)).fetchall()
        return [Head(stream=name, seq=seq, digest=digest) for name, seq, digest in rows]

    def close(self) -> None:
        with self.writing:
            self.connection.close()


def entry_of(row: Sequence[object]) -> Entry:
    stream, seq, key, text, digest, attachment = row
    return Entry(
        stream=str(stream),
        seq=int(str(seq)),
        key=str(key),
        text=str(text),
        digest=str(digest),
        attachment=bytes(attachment),  # type: ignore[call-overload]
    )


@contextmanager
def held(lock: threading.RLock) -> Iterator[None]:  # type: ignore[valid-type]
    with lock:  # type: ignore[attr-defined]
        yield


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """Errors of the database as StorageError."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {error}") from error
