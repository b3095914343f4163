"""An entry of the log: an event with its place, its key, its time, its author, and the hash of the entry before it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spillover.service.canonical import canonical_json, digest, json_text
from spillover.service.events import KINDS, Event

START = "0" * 64  # stands for the entry before the first


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An event that is to be appended."""

    event: Event
    key: str  # idempotency key, unique in the stream
    request: str  # hash of the request that made it
    time: str
    author: str
    attachment: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Head:
    """The end of a stream: the number and the hash of its last entry."""

    stream: str
    seq: int = 0
    digest: str = START


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An event as it was stored: `text` holds everything, and `digest` is its hash."""

    stream: str
    seq: int
    key: str
    text: str
    digest: str
    attachment: bytes = b""

    @cached_property
    def content(self) -> dict[str, Any]:
        """All fields, as plain values; not to be changed."""
        content: dict[str, Any] = json.loads(self.text)
        return content

    @cached_property
    def event(self) -> Event:
        return KINDS[self.content["kind"]].from_dict(self.content["event"])

    @property
    def request(self) -> str:
        return str(self.content["request"])

    @property
    def time(self) -> str:
        return str(self.content["time"])

    @property
    def author(self) -> str:
        return str(self.content["author"])

    def to_dict(self) -> dict[str, Any]:
        """For an answer: the stored fields and the entry's own hash."""
        return self.content | {"digest": self.digest}

    def to_json(self, extra: Mapping[str, Any]) -> str:
        """`to_dict` with further fields, as JSON: what is stored is JSON already."""
        return f"{self.text[:-1]},{json_text({'digest': self.digest, **extra})[1:]}"


def sealed(head: Head, draft: Draft) -> Entry:
    """The entry that follows the head of a stream."""
    content = {
        "stream": head.stream,
        "seq": head.seq + 1,
        "key": draft.key,
        "request": draft.request,
        "time": draft.time,
        "author": draft.author,
        "previous": head.digest,
        "kind": draft.event.kind,
        "event": draft.event.to_dict(),
        "attachment": digest(draft.attachment) if draft.attachment else "",
    }
    text = canonical_json(content)
    return Entry(
        stream=head.stream,
        seq=head.seq + 1,
        key=draft.key,
        text=text,
        digest=digest(text),
        attachment=draft.attachment,
    )


def head_after(entry: Entry) -> Head:
    return Head(stream=entry.stream, seq=entry.seq, digest=entry.digest)
