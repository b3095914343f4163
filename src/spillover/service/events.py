"""The log's vocabulary: events of a stream, and the entries that hold them, each with the hash of the one before."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

PLAIN: dict[str, Any] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False, "check_circular": False}
CANONICAL, IN_ORDER = json.JSONEncoder(sort_keys=True, **PLAIN), json.JSONEncoder(**PLAIN)
START = "0" * 64  # stands for the entry before the first


# --- events ----------------------------------------------------------------------------------------------------------


KINDS: dict[str, type["Event"]] = {}


@dataclass(frozen=True, kw_only=True)
class Event:
    """What all events have: a kind, and plain values to store."""

    kind: ClassVar[str]
    changes_decisions: ClassVar[bool] = True  # whether the next decision may depend on it
    added: ClassVar[tuple[str, ...]] = ()  # fields since the first version: not stored where they are empty

    def __init_subclass__(cls) -> None:
        KINDS[cls.kind] = cls

    def to_dict(self) -> dict[str, Any]:
        """What is stored, as JSON has it (tuples as lists); not to be changed."""
        found = {part.name: vars(self)[part.name] for part in fields(self)}
        return {name: value for name, value in found.items() if name not in self.added or value}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Event":
        """The event that was stored."""
        return cls(**{name: as_tuple(value) for name, value in content.items()})


@dataclass(frozen=True, kw_only=True)
class StreamCreated(Event):
    """The stream begins, with its settings."""

    kind: ClassVar[str] = "stream-created"
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SettingsChanged(Event):
    """From here on decisions are made with these settings (all of them, not only those that changed)."""

    kind: ClassVar[str] = "settings-changed"
    settings: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class DecisionIssued(Event):
    """What was recommended for a round, what it was made from, and why in short."""

    kind: ClassVar[str] = "decision-issued"
    changes_decisions: ClassVar[bool] = False
    round: str
    chosen: tuple[str, ...]  # the best first
    unavailable: tuple[str, ...] = ()
    context: dict[str, Any]
    made_from: dict[str, Any]  # seq, rounds, outcomes, seed, settings (their hash), version
    policy: str
    scores: dict[str, Any]  # of each arm: direct, spilled_over, exploration, score, total
    gap: float | None  # from the worst chosen arm to the best other one, by score
    predicted: float | None  # expected sum of all outcomes if these arms are executed
    changes: int | None  # changes of the world noticed so far; None: the policy does not look for any
    graph: str  # hash of the estimated graph


@dataclass(frozen=True, kw_only=True)
class ReasonsKept(Event):
    """The whole answer to a round, with all reasons, is attached to this entry, compressed.

    Logs of earlier versions have such entries; now answers are kept beside the log (`EventLog.keep_answer`).
    """

    kind: ClassVar[str] = "reasons-kept"
    added: ClassVar[tuple[str, ...]] = ("intervals",)
    changes_decisions: ClassVar[bool] = False
    round: str
    version: str  # of the package that computed it
    intervals: dict[str, Any] = field(default_factory=dict)  # of every arm's total effect, 95%


@dataclass(frozen=True, kw_only=True)
class DecisionExecuted(Event):
    """What was done in a round: as it was issued, something else, or nothing at all."""

    kind: ClassVar[str] = "decision-executed"
    added: ClassVar[tuple[str, ...]] = ("amounts",)
    round: str
    how: str  # "as-issued", "overridden" or "cancelled"
    chosen: tuple[str, ...]
    context: dict[str, Any]
    amounts: dict[str, float] = field(default_factory=dict)  # of the chosen arms, where a stream has amounts


@dataclass(frozen=True, kw_only=True)
class ExecutionCorrected(DecisionExecuted):
    """What was done in a round was recorded wrongly: this is what was done. Revision 1 is the first record."""

    kind: ClassVar[str] = "execution-corrected"
    revision: int
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class OutcomesReported(Event):
    """Outcomes that arrived together; each is {round, arm, z, y, learned}. arm: None if there is one outcome for all.

    learned: False if it came too late. refused: items of the same request that were not accepted, with the reason.
    """

    kind: ClassVar[str] = "outcomes-reported"
    outcomes: tuple[dict[str, Any], ...]
    refused: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class OutcomeCorrected(Event):
    """An outcome was wrong: `values` has z or y, or both; None withdraws a value. Revision 1 is the first report."""

    kind: ClassVar[str] = "outcome-corrected"
    round: str
    arm: str | None
    revision: int
    values: dict[str, Any]
    learned: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class OutcomeExpired(Event):
    """Nothing more is expected of a round."""

    kind: ClassVar[str] = "outcome-expired"
    round: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class RoundsImported(Event):
    """Rounds from a file: each is {round, chosen, context, z, y}; z and y have a value for each arm, in order, or None.

    Where there is one outcome for all arms, y has one value. Where a stream has amounts, each also has {amounts}.
    """

    kind: ClassVar[str] = "rounds-imported"
    source: str
    rounds: tuple[dict[str, Any], ...]


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# --- entries ---------------------------------------------------------------------------------------------------------


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


@dataclass(frozen=True)
class Entry:
    """An event as it was stored: `text` holds everything, and `digest` is its hash. The columns of a log."""

    stream: str
    seq: int
    key: str
    text: str
    digest: str
    attachment: bytes = b""

    @property
    def row(self) -> tuple[Any, ...]:
        return (self.stream, self.seq, self.key, self.text, self.digest, self.attachment)

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
    entry = Entry(
        stream=head.stream,
        seq=head.seq + 1,
        key=draft.key,
        text=text,
        digest=digest(text),
        attachment=draft.attachment,
    )
    vars(entry)["event"] = draft.event  # it need not be parsed
    return entry


def head_after(entry: Entry) -> Head:
    return Head(stream=entry.stream, seq=entry.seq, digest=entry.digest)


# --- the one way in which values are written -------------------------------------------------------------------------


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, without spaces, NaN or infinities.

    >>> canonical_json({"b": 1.5, "a": [None, "é"]})
    '{"a":[null,"é"],"b":1.5}'
    """
    return CANONICAL.encode(value)


def json_text(value: Any) -> str:
    """The same with keys in the order in which they are given.

    >>> json_text({"b": 1.5, "a": [None, "é"]})
    '{"b":1.5,"a":[null,"é"]}'
    """
    return IN_ORDER.encode(value)


def digest(content: str | bytes) -> str:
    """The SHA-256 hash of a text, in hexadecimal digits."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def digest_of(value: Any) -> str:
    """The hash of a value."""
    return digest(canonical_json(value))
