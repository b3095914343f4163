"""Logs: entries of many streams, appended one after another, never changed; and the one in an SQLite file."""

import os
import re
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from shutil import disk_usage
from typing import Any
from zlib import crc32

from filelock import FileLock, Timeout

from spillover.files import PRIVATE
from spillover.registry import needed_for
from spillover.service.errors import StorageError
from spillover.service.events import Draft, Entry, Head, head_after, sealed

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
    """Streams of entries, in tables of a database. Threads may share a log.

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
    def rows(self, statement: str, *values: Any) -> list[Any]:
        """What a statement finds. It has {} before names of tables, and ? for values."""

    @abstractmethod
    def keep_answer(self, stream: str, seq: int, answer: bytes) -> None:
        """Keep the whole answer to the decision of an entry, beside the entries, as far as that is possible."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    def head(self, stream: str) -> Head:
        """The end of a stream; number 0 if there is no such stream."""
        found = self.rows("SELECT seq, digest FROM {}streams WHERE name = ?", stream)
        return Head(stream=stream, seq=found[0][0], digest=found[0][1]) if found else Head(stream=stream)

    def read(self, stream: str, after: int = 0, limit: int = AT_ONCE, upto: int | None = None) -> list[Entry]:
        """Entries of a stream in order: those with numbers above `after`, and up to `upto`; `limit` at most."""
        asked = "SELECT * FROM {}entries WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        return [Entry(*row) for row in self.rows(asked, stream, after, 2**62 if upto is None else upto, limit)]

    def with_key(self, stream: str, key: str) -> Entry | None:
        """The entry with an idempotency key."""
        found = self.rows("SELECT * FROM {}entries WHERE stream = ? AND key = ?", stream, key)
        return Entry(*found[0]) if found else None

    def streams(self, after: str = "", limit: int = AT_ONCE) -> list[Head]:
        """The streams by name, those whose names come after `after`; `limit` at most."""
        found = self.rows("SELECT name, seq, digest FROM {}streams WHERE name > ? ORDER BY name LIMIT ?", after, limit)
        return [Head(stream=name, seq=seq, digest=digest) for name, seq, digest in found]

    def kept_answer(self, stream: str, seq: int) -> bytes | None:
        """The answer that was kept first."""
        found = self.rows("SELECT answer FROM {}answers WHERE stream = ? AND seq = ?", stream, seq)
        return bytes(found[0][0]) if found else None

    def check_ready(self) -> None:
        """StorageError if an entry could not be appended now, as far as that can be told without appending one."""
        self.head("")


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
        from spillover.service.log import SqliteLog

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


VERSION = 1
APPLICATION = 0x5350494C  # marks the file as ours
WAIT = 10.0  # seconds, if another program holds the file
LEAST_SPACE = 1 << 20  # bytes on the disk, for the log to count as ready
MOST_TOGETHER = 256  # calls whose entries are committed together
SCHEMA = f"""
BEGIN IMMEDIATE;
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
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
COMMIT;
"""
ANSWERS = """
CREATE TABLE IF NOT EXISTS answers (
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    answer BLOB NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT;
"""
Job = tuple[Head, Sequence[Draft], "Future[list[Entry]]"]


class SqliteLog(EventLog):
    """A log in a file. readonly: to look at a file, also while a server uses it.

    synchronous: "FULL" loses nothing in a power cut. "NORMAL" would; it is here for the test that shows it.

    >>> import tempfile
    >>> from spillover.service import Service
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(SqliteLog(f"{folder}/decisions.db"))
    ...     created = service.create_stream("shop", {"arms": ["radio", "video"], "budget": 1})
    ...     service.close()
    ...     again = SqliteLog(f"{folder}/decisions.db", readonly=True)
    ...     again.close()
    """

    def __init__(self, path: str | Path, *, readonly: bool = False, synchronous: str = "FULL") -> None:
        self.path, self.readonly = Path(path), readonly
        self.locks = StripedLock()
        self.readers: LifoQueue[sqlite3.Connection] = LifoQueue()
        self.file_lock = FileLock(f"{self.path}.lock", mode=PRIVATE)
        self.waiting: deque[Job] = deque()
        self.writing = threading.Lock()
        self.written = None if readonly else 0
        self.closed, self.keeps_answers = False, True
        if readonly:
            self.check_readable()
            return
        self.take_file()
        try:
            with failing(self.path):
                make_private(self.path)
                self.writer = prepared(self.path, self.connect(self.path), synchronous)
        except BaseException:
            self.file_lock.release()
            raise

    def check_readable(self) -> None:
        """Refuse a file that is not there, or is not ours."""
        if not self.path.exists():
            raise StorageError(f"{self.path}: must be the file of a service; there is none")
        with self.reading() as reader:
            check_version(self.path, reader)
            asked = "SELECT 1 FROM sqlite_master WHERE name = 'answers'"  # not in a file of an earlier version
            self.keeps_answers = reader.execute(asked).fetchone() is not None

    def take_file(self) -> None:
        """The file is ours alone."""
        try:
            self.file_lock.acquire(timeout=0)
        except Timeout:
            used = "is in use by another server: stop that one, or give this one another file"
            raise StorageError(f"{self.path}: {used} (several servers need --database postgresql://...)") from None
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror or error}") from error

    def exclusive(self, stream: str) -> AbstractContextManager[object]:
        return self.locks.held(stream)

    def append(self, head: Head, drafts: Sequence[Draft]) -> list[Entry]:
        """Whoever comes while another one writes waits, and one of those who wait writes for all of them.

        With eight callers 1.1 to 1.9 times as many entries are written as if each waited for a sync of its own.
        """
        future: Future[list[Entry]] = Future()
        self.waiting.append((head, drafts, future))
        while not future.done():
            with self.writing:
                if not future.done():
                    self.write_waiting()
        return future.result()

    def write_waiting(self) -> None:
        group = [self.waiting.popleft() for _ in range(min(len(self.waiting), MOST_TOGETHER))]
        try:
            self.check_writable()
            results = self.commit_together(group)
        except BaseException as error:
            results = [error for _ in group]
        for (_, _, future), result in zip(group, results, strict=True):
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

    def check_writable(self) -> None:
        if self.readonly or self.closed:
            state = "is closed" if self.closed else "was opened for reading only"
            raise StorageError(f"{self.path}: {state}: nothing can be recorded")

    def commit_together(self, jobs: Sequence[Job]) -> Sequence[list[Entry] | BaseException]:
        """Append for several callers in one transaction; an error that concerns one of them does not concern others."""
        with failing(self.path):
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                found = [self.write_or_refuse(head, drafts) for head, drafts, _ in jobs]
                self.writer.execute("COMMIT")
                self.written = (self.written or 0) + sum(len(each) for each in found if isinstance(each, list))
            except BaseException:
                with suppress(sqlite3.Error):
                    self.writer.execute("ROLLBACK")
                raise
            return found

    def write_or_refuse(self, head: Head, drafts: Sequence[Draft]) -> list[Entry] | Exception:
        """Append for one caller, or take back what was written for him and say why."""
        entries, end = [], head
        for draft in drafts:
            entries.append(sealed(end, draft))
            end = head_after(entries[-1])
        if head.seq:
            moved = "UPDATE streams SET seq = ?, digest = ? WHERE name = ? AND seq = ? AND digest = ? RETURNING seq"
            given: tuple[Any, ...] = (end.seq, end.digest, head.stream, head.seq, head.digest)
        else:
            moved = "INSERT OR IGNORE INTO streams (seq, digest, name) VALUES (?, ?, ?) RETURNING seq"
            given = (end.seq, end.digest, head.stream)
        found: list[Entry] | Exception = entries
        self.writer.execute("SAVEPOINT job")
        try:
            if self.writer.execute(moved, given).fetchall():
                for entry in entries:
                    self.writer.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", entry.row)
            else:
                found = Moved(head.stream)
        except sqlite3.IntegrityError as error:
            self.writer.execute("ROLLBACK TO job")
            found = StorageError(f"{self.path}: {error}")
        self.writer.execute("RELEASE job")
        return found

    def check_ready(self) -> None:
        super().check_ready()
        if not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            raise StorageError(f"{self.path}: must be writable")
        if disk_usage(self.path.parent).free < LEAST_SPACE:
            raise StorageError(f"{self.path}: must be on a disk that is not full")

    def rows(self, statement: str, *values: Any) -> list[Any]:
        with self.reading() as reader:
            return reader.execute(statement.format(""), values).fetchall()

    def keep_answer(self, stream: str, seq: int, answer: bytes) -> None:
        with suppress(StorageError), failing(self.path), self.writing:
            self.check_writable()
            self.writer.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (stream, seq, answer))

    def kept_answer(self, stream: str, seq: int) -> bytes | None:
        return super().kept_answer(stream, seq) if self.keeps_answers else None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that can only read; it never waits for the writer."""
        if self.closed:
            raise StorageError(f"{self.path}: is closed")
        with failing(self.path):
            try:
                reader = self.readers.get_nowait()
            except Empty:
                reader = self.reader()
            try:
                yield reader
            finally:
                self.readers.put(reader)

    def connect(self, path: Path, *, readonly: bool = False) -> sqlite3.Connection:
        address = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}"
        return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None, timeout=WAIT)

    def reader(self) -> sqlite3.Connection:
        return self.connect(self.path, readonly=True)

    def close(self) -> None:
        if self.closed:
            return
        with self.writing:
            while self.waiting and not self.readonly:
                self.write_waiting()
            self.closed = True
        while not self.readers.empty():
            self.readers.get_nowait().close()
        if not self.readonly:
            self.writer.close()
            self.file_lock.release()


def make_private(path: Path) -> None:
    """Create the file, if there is none, so that only its owner can read it; SQLite's files beside it are alike."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, PRIVATE))


def prepared(path: Path, connection: sqlite3.Connection, synchronous: str) -> sqlite3.Connection:
    """The connection that writes; a new file gets its tables, a file of something else is refused."""
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables:
            check_version(path, connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        if not tables:
            connection.executescript(SCHEMA)
        connection.executescript(ANSWERS)
    except BaseException:
        connection.close()
        raise
    return connection


def check_version(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that is not ours, or of a version that we do not know."""
    with failing(path):
        application, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
    if application != APPLICATION:
        raise StorageError(f"{path}: must be the file of a service, or a new one; it is another database")
    if version != VERSION:
        newer = "a newer version of spillover wrote it" if version > VERSION else "it is damaged"
        raise StorageError(f"{path}: has schema version {version}: must be {VERSION}; {newer}")


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """Errors of the database as StorageError."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {error}") from error
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
