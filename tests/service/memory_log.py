"""A log in memory, for tests that do not ask what a disk does."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from spillover.service.events import Draft, Entry, Head, head_after, sealed
from spillover.service.log import AT_ONCE, EventLog, Moved, StripedLock


class MemoryLog(EventLog):
    """Keeps the contract of `EventLog`, but for a power cut."""

    def __init__(self) -> None:
        self.entries: dict[str, list[Entry]] = {}
        self.answers: dict[tuple[str, int], bytes] = {}
        self.locks = StripedLock()

    def exclusive(self, stream: str) -> AbstractContextManager[object]:
        return self.locks.held(stream)

    def append(self, head: Head, drafts: Sequence[Draft]) -> list[Entry]:
        if self.head(head.stream) != head:
            raise Moved(head.stream)
        found: list[Entry] = []
        for draft in drafts:
            assert self.with_key(head.stream, draft.key) is None
            found.append(sealed(head, draft))
            head = head_after(found[-1])
        self.entries.setdefault(head.stream, []).extend(found)
        return found

    def rows(self, statement: str, *values: object) -> list[object]:
        raise NotImplementedError("no statement is needed: everything is read from lists")

    def head(self, stream: str) -> Head:
        entries = self.entries.get(stream)
        return head_after(entries[-1]) if entries else Head(stream=stream)

    def read(self, stream: str, after: int = 0, limit: int = AT_ONCE, upto: int | None = None) -> list[Entry]:
        found = self.entries.get(stream, [])
        return found[after : upto if upto is not None else len(found)][:limit]

    def with_key(self, stream: str, key: str) -> Entry | None:
        return next((entry for entry in self.entries.get(stream, []) if entry.key == key), None)

    def streams(self, after: str = "", limit: int = AT_ONCE) -> list[Head]:
        return [self.head(name) for name in sorted(self.entries) if name > after][:limit]

    def keep_answer(self, stream: str, seq: int, answer: bytes) -> None:
        self.answers.setdefault((stream, seq), answer)

    def kept_answer(self, stream: str, seq: int) -> bytes | None:
        return self.answers.get((stream, seq))

    def close(self) -> None:
        self.entries.clear()
