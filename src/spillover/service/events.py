"""The events of a stream: what was asked, decided, done and heard of. Nothing is ever changed or deleted."""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from spillover.service.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Event:
    """What all events have: a kind, and plain values to store."""

    kind: ClassVar[str]
    changes_decisions: ClassVar[bool] = True  # whether the next decision may depend on it
    added: ClassVar[tuple[str, ...]] = ()  # fields since the first version: not stored where they are empty

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as they are stored."""
        found = {part.name: plain(vars(self)[part.name]) for part in fields(self)}
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

    @property
    def as_settings(self) -> Settings:
        return Settings.from_dict(self.settings)


@dataclass(frozen=True, kw_only=True)
class SettingsChanged(Event):
    """From here on decisions are made with these settings (all of them, not only those that changed)."""

    kind: ClassVar[str] = "settings-changed"
    settings: dict[str, Any]

    @property
    def as_settings(self) -> Settings:
        return Settings.from_dict(self.settings)


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
    """The whole answer to a round, with all reasons, is attached to this entry, compressed."""

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


KINDS: dict[str, type[Event]] = {
    event.kind: event
    for event in (
        StreamCreated,
        SettingsChanged,
        DecisionIssued,
        ReasonsKept,
        DecisionExecuted,
        ExecutionCorrected,
        OutcomesReported,
        OutcomeCorrected,
        OutcomeExpired,
        RoundsImported,
    )
}


def plain(value: Any) -> Any:
    """A copy with tuples as lists, as JSON has them."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
