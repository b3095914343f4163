"""Streams that are open, in memory: who writes to one holds its lock, and sees it as of its last entry."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any

from spillover.service.decisions import Learning
from spillover.service.errors import Conflict, NotFound, require
from spillover.service.events import Draft, Entry, Event, digest_of
from spillover.service.ledger import Ledger, folded
from spillover.service.log import AT_ONCE, EventLog, Moved
from spillover.service.settings import is_name

OPEN = 10_000  # streams that are kept in memory
LEARNED_BYTES = 1 << 30  # of what they have learned
LONGEST_KEY = 200
GIVEN = "given:"  # before the keys of callers


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """An entry that was recorded, and whether this call recorded it or an earlier one with the same key.

    >>> import tempfile
    >>> from spillover.service import Service, SqliteLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(SqliteLog(f"{folder}/decisions.db"))
    ...     created = service.create_stream("shop", {"arms": ["radio", "video"], "budget": 1})
    ...     decision = service.decide("shop", "2026-10-12")
    ...     print(service.execute("shop", "2026-10-12").again)
    ...     service.close()
    False
    """

    entry: Entry
    again: bool

    @property
    def event(self) -> Event:
        return self.entry.event


@dataclass
class OpenStream:
    """A stream in memory: what its entries say, and what was learned from it."""

    ledger: Ledger
    learning: Learning = field(default_factory=Learning)


class Watcher:
    """Does nothing; override what you need to hear of. It must be quick."""

    def recorded(self, entry: Entry) -> None:
        """An entry is on disk."""

    def folded(self, entries: int, seconds: float) -> None:
        """New entries were taken into memory."""


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def given_key(key: str | None) -> str | None:
    """The key of a caller as it is stored: never one that entries get without a caller's."""
    if key is None:
        return None
    require(is_name(key) and len(key) <= LONGEST_KEY, "key", key, f"1 to {LONGEST_KEY} printable characters")
    return f"{GIVEN}{key}"


class OpenStreams:
    """The streams that are open, the ones used last at the end. What is not in memory is folded from the log again."""

    def __init__(self, log: EventLog, clock: Callable[[], str] = utc_now, keep: int = OPEN) -> None:
        self.log, self.clock, self.keep = log, clock, keep
        self.watcher = Watcher()
        self.streams: OrderedDict[str, OpenStream] = OrderedDict()
        self.learned: OrderedDict[str, int] = OrderedDict()  # bytes that each stream has learned, the latest last
        self.learned_bytes = 0  # in all
        self.recorded = 0  # entries
        self.lock = threading.Lock()

    def opened(self, stream: str) -> OpenStream:
        """The stream as it is in memory, which may be older than its log."""
        with self.lock:
            found = self.streams.get(stream)
            if found is None:
                found = self.streams[stream] = OpenStream(Ledger(stream))
                while len(self.streams) > self.keep:
                    self.let_go(self.streams.popitem(last=False)[0])
            self.streams.move_to_end(stream)
            return found

    @contextmanager
    def holding(self, stream: str, *, missing_ok: bool = False) -> Iterator[OpenStream]:
        """A stream as of its last entry, while nobody else can append to it or learn from it."""
        with self.log.exclusive(stream):
            found = self.opened(stream)
            try:
                self.catch_up(found.ledger)
                if not found.ledger.exists and not missing_ok:
                    raise NotFound(f"stream = {stream!r}: must be the name of a stream")
            except BaseException:  # what is half taken in is of no use
                self.forget(stream)
                raise
            try:
                yield found
            finally:
                if not found.ledger.exists:
                    self.forget(stream)

    @contextmanager
    def writing(self, stream: str, *, missing_ok: bool = False) -> Iterator[Ledger]:
        """The same for who needs its ledger alone."""
        with self.holding(stream, missing_ok=missing_ok) as found:
            yield found.ledger

    def catch_up(self, ledger: Ledger) -> None:
        """Take in what is new; where only this object has written to the log, it knows all."""
        if ledger.exists and self.log.written == self.recorded:
            return
        before, start = ledger.head.seq, perf_counter()
        stream = ledger.head.stream
        folded(stream, lambda after: self.log.read(stream, after), ledger)
        if ledger.head.seq > before:
            self.watcher.folded(ledger.head.seq - before, perf_counter() - start)

    def note_learned(self, stream: str, learning: Learning) -> None:
        """A stream has learned; if all have learned too much, those that learned longest ago let go of it."""
        with self.lock:
            self.let_go(stream)
            self.learned[stream] = learning.bytes
            self.learned_bytes += self.learned[stream]
            while self.learned_bytes > LEARNED_BYTES and len(self.learned) > 1:
                oldest = next(iter(self.learned))
                self.let_go(oldest)
                if oldest in self.streams:
                    self.streams[oldest].learning = Learning()

    def let_go(self, stream: str) -> None:
        """What a stream has learned is no longer counted."""
        self.learned_bytes -= self.learned.pop(stream, 0)

    def forget(self, stream: str | None = None) -> None:
        """Let go of a stream, or of all of them."""
        with self.lock:
            if stream is None:
                self.streams.clear()
                self.learned.clear()
                self.learned_bytes = 0
            else:
                self.streams.pop(stream, None)
                self.let_go(stream)

    def ledger_at(self, stream: str, at: int | None) -> Ledger:
        """A ledger of its own, as of an entry (by default the last one): a copy of the one in memory if it is the last.

        Only for an earlier one the entries are folded again.
        """
        with self.writing(stream) as ledger:
            if at is None or at >= ledger.head.seq:
                return ledger.copy()
        return folded(stream, lambda after: self.log.read(stream, after, AT_ONCE, at))

    def earlier(self, stream: str, key: str | None, request: Mapping[str, Any]) -> Receipt | None:
        """The receipt of what an earlier call with this key recorded; a Conflict if that was another request."""
        found = None if key is None else self.log.with_key(stream, key)
        if found is not None and found.request != digest_of(request):
            raise Conflict(
                f"key = {str(key).removeprefix(GIVEN)!r}: must be a new one: it was used for another request"
            )
        return None if found is None else Receipt(entry=found, again=True)

    def record(
        self, ledger: Ledger, events: Sequence[Event], key: str, request: Mapping[str, Any], author: str
    ) -> Receipt:
        """Append events, all or none, and take them in; the last one has the key and the receipt."""
        good = author == "" or is_name(author)
        require(good, "author", author, f"at most {LONGEST_KEY} printable characters")
        keys = [f"{key}:part {place}" for place in range(1, len(events))] + [key]
        draft = partial(Draft, request=digest_of(request), time=self.clock(), author=author)
        try:
            entries = self.log.append(ledger.head, [draft(event=e, key=k) for e, k in zip(events, keys, strict=True)])
            ledger.apply_all(entries)
            with self.lock:
                self.recorded += len(entries)
        except BaseException as error:  # what was recorded, if anything, is read again
            self.forget(ledger.head.stream)
            if isinstance(error, Moved):
                raise Conflict(f"stream = {ledger.head.stream!r}: was changed by another server: ask again") from None
            raise
        for entry in entries:
            self.watcher.recorded(entry)
        return Receipt(entry=entries[-1], again=False)
