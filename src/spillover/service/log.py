"""The contract of a log: entries of many streams, appended one after another, never changed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager

from spillover.service.entry import Draft, Entry, Head

AT_ONCE = 1_000  # entries that are read at a time


class Moved(Exception):
    """Another writer has appended to the stream: read its new entries, and decide again what to append."""


class EventLog(ABC):
    """Streams of entries. Threads may share a log.

    `append` returns when the entries are on disk, all of them, or raises and none is there. Numbers of a stream have no
    gaps. Whoever appends holds the stream's `exclusive` lock while he reads and decides what to append.
    """

    @abstractmethod
    def exclusive(self, stream: str) -> AbstractContextManager[None]:
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

    def check_ready(self) -> None:
        """StorageError if an entry could not be appended now, as far as that can be told without appending one."""
        self.head("")

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""
