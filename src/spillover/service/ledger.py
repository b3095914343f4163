"""Fold the entries of a stream, in order, into what is known of its rounds; no clock is read."""

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from spillover.history.rounds import DATE, AskOrder, parse_rounds, round_labels
from spillover.service.errors import Invalid, require
from spillover.service.events import (
    DecisionExecuted,
    DecisionIssued,
    Entry,
    Event,
    ExecutionCorrected,
    Head,
    OutcomeCorrected,
    OutcomeExpired,
    OutcomesReported,
    ReasonsKept,
    RoundsImported,
    SettingsChanged,
    StreamCreated,
    head_after,
)
from spillover.service.settings import Settings

FIRST_ROWS = 8
ACCEPTED = (
    "a whole number, a date (2026-03-31), a time (2026-03-31 10:00:00), a month (2026-03), a quarter (2026Q1) "
    "or a week (2026-W05)"
)
LONGEST = 40


class RoundKey(NamedTuple):
    """A round as it is written (`label`), and as it is sorted."""

    label: str
    kind: str
    value: Any

    @property
    def family(self) -> tuple[str, bool]:
        """Rounds of one family can be compared with each other."""
        return self.kind, isinstance(self.value, datetime) and self.value.tzinfo is not None


def round_key(given: object) -> RoundKey:
    """The key of a round.

    >>> round_key(7).label, round_key("2026-10-12").label, round_key("2026-10-12T09:30").label
    ('7', '2026-10-12', '2026-10-12 09:30:00')
    """
    whole = isinstance(given, int) and not isinstance(given, bool)
    require(whole or (isinstance(given, str) and 0 < len(given) <= LONGEST), "round", given, ACCEPTED)
    found = read_key(str(given).strip())
    if found is None:
        raise Invalid(f"round = {given!r}: must be {ACCEPTED}", "round")
    return found


@lru_cache(maxsize=100_000)
def read_key(text: str) -> RoundKey | None:
    """The key that a text stands for; None if it stands for none, or for two."""
    try:
        kind, (value,) = parse_rounds([text])
        return None if value is None else RoundKey(round_labels([value], kind)[0], kind, value)
    except (AskOrder, OverflowError):
        return None


def require_family(key: RoundKey, other: RoundKey) -> None:
    """Refuse a key that cannot be compared with the others of its stream."""
    written = "times with a zone" if other.family == (DATE, True) else f"{other.kind}s like the others"
    require(key.family == other.family, "round", key.label, f"written as {other.label} is ({written})")


class Issued(NamedTuple):
    """What is kept in memory of a decision; `seq` is the number of the entry that has all of it."""

    seq: int
    chosen: tuple[str, ...]
    unavailable: tuple[str, ...]
    context: dict[str, Any]
    predicted: float | None
    changes: int | None


class Ledger:
    """What is known of the rounds of a stream after its entries up to `head`.

    Rounds have rows in the order in which they were first heard of; arms have columns in natural order. With one
    outcome for all arms, y is in the first column.
    """

    def __init__(self, stream: str) -> None:
        self.head = Head(stream=stream)
        self.settings: Settings
        self.settings_at = 0  # the number of the entry that says them
        self.columns: dict[str, int] = {}
        self.rows: dict[str, int] = {}  # by the label of the round
        self.keys: list[RoundKey] = []
        self.issued: dict[str, Issued] = {}
        self.reasons_at: dict[str, int] = {}  # the number of the entry that keeps the whole answer
        self.executed: dict[str, str] = {}  # how: as-issued, overridden, cancelled or imported
        self.executions: dict[str, tuple[int, ...]] = {}  # numbers of the entries that say it: the first, corrections
        self.context: dict[str, dict[str, Any]] = {}
        self.expired: dict[str, int] = {}  # with the number of the entry that says it
        self.corrections: dict[tuple[str, str | None, int], int] = {}  # of outcomes, by revision; likewise
        self.late: dict[tuple[int, int, str], float] = {}  # values that came too late, by row, column and name
        self.aside: dict[tuple[int, int], float] = {}  # z of arms that were not executed after all
        self.delays: dict[str, int] = {}  # rounds that took place between a round and its last outcome
        self.values: list[Any] = []  # of the rounds that took place, sorted
        self.order: list[str] = []  # their labels
        self.x = np.zeros((0, 0), np.bool_)
        self.z = self.y = np.zeros((0, 0))  # NaN: not known
        self.dose = np.zeros((0, 0))  # amounts, where a stream has them
        self.revision = np.zeros((0, 0), np.int32)  # 0: not reported
        self.version = 0  # the number of the last entry that can change a decision
        self.changed: Any = None  # the earliest round that has changed since `take_changed`, as it is sorted

    def copy(self) -> "Ledger":
        """The same as of now: it stays as it is when this one goes on, so that it can be read without a lock."""
        found = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set | np.ndarray):
                setattr(found, name, value.copy())
        return found

    @property
    def exists(self) -> bool:
        return self.head.seq > 0

    @property
    def played(self) -> list[str]:
        """The rounds that took place, in order."""
        return list(self.order)

    def took_place(self, label: str) -> bool:
        return self.executed.get(label, "cancelled") != "cancelled"

    def age(self, label: str) -> int:
        """How many rounds took place after a round."""
        return len(self.values) - bisect_right(self.values, self.keys[self.rows[label]].value)

    def is_late(self, label: str) -> bool:
        """Whether outcomes of a round are no longer learned."""
        most = self.settings.max_age_rounds
        return label in self.expired or (most is not None and self.age(label) > most)

    def apply_all(self, entries: Iterable[Entry]) -> "Ledger":
        for entry in entries:
            self.apply(entry)
        return self

    def apply(self, entry: Entry) -> None:
        """Take in the next entry."""
        if entry.seq != self.head.seq + 1:
            raise ValueError(f"entry {entry.seq} of {entry.stream!r}: must be {self.head.seq + 1}, the next one")
        event = entry.event
        self.take(event, entry.seq)
        self.head = head_after(entry)
        if event.changes_decisions:
            self.version = entry.seq

    def touch(self, row: int) -> None:
        """A round has changed."""
        value = self.keys[row].value
        self.changed = value if self.changed is None else min(self.changed, value)

    def take_changed(self) -> Any:
        """The earliest round that has changed since the last call; None if none has."""
        changed, self.changed = self.changed, None
        return changed

    def take(self, event: Event, seq: int) -> None:
        """Take in an event, by the method with the name of its kind."""
        getattr(self, f"take_{event.kind.replace('-', '_')}")(event, seq)

    def take_stream_created(self, event: StreamCreated, seq: int) -> None:
        self.settings, self.settings_at = Settings.stored(event.settings), seq
        self.columns = {arm: k for k, arm in enumerate(self.settings.arms)}
        self.resize(FIRST_ROWS)

    def take_settings_changed(self, event: SettingsChanged, seq: int) -> None:
        self.settings, self.settings_at = Settings.stored(event.settings), seq

    def take_decision_issued(self, event: DecisionIssued, seq: int) -> None:
        self.row(event.round)
        what = Issued(seq, event.chosen, event.unavailable, event.context, event.predicted, event.changes)
        self.issued[event.round] = what

    def take_reasons_kept(self, event: ReasonsKept, seq: int) -> None:
        self.reasons_at[event.round] = seq

    def take_decision_executed(self, event: DecisionExecuted, seq: int) -> None:
        self.play(event.round, event.how, event.chosen, event.context, event.amounts, seq)

    def take_execution_corrected(self, event: ExecutionCorrected, seq: int) -> None:
        self.take_back(event.round)
        self.play(event.round, event.how, event.chosen, event.context, event.amounts, seq)
        if not self.took_place(event.round) or self.missing(event.round):
            self.delays.pop(event.round, None)
        self.note_delays([event.round])

    def take_rounds_imported(self, event: RoundsImported, seq: int) -> None:
        for known in event.rounds:
            self.play(known["round"], "imported", known["chosen"], known["context"], known.get("amounts", {}), seq)
            row = self.rows[known["round"]]
            for values, table in ((known["z"], self.z), (known["y"], self.y)):
                if values is not None:
                    given = np.array(values, float)  # None as NaN
                    table[row, : len(given)] = given
                    self.revision[row, : len(given)] = np.maximum(self.revision[row, : len(given)], np.isfinite(given))

    def take_outcomes_reported(self, event: OutcomesReported, seq: int) -> None:
        for outcome in event.outcomes:
            self.learn(outcome["round"], outcome["arm"], 1, outcome, learned=outcome["learned"])
        self.note_delays({outcome["round"]: None for outcome in event.outcomes})

    def take_outcome_corrected(self, event: OutcomeCorrected, seq: int) -> None:
        self.learn(event.round, event.arm, event.revision, event.values, learned=event.learned, withdraw=True)
        self.note_delays([event.round])
        self.corrections[event.round, event.arm, event.revision] = seq

    def take_outcome_expired(self, event: OutcomeExpired, seq: int) -> None:
        self.expired[event.round] = seq
        self.touch(self.rows[event.round])

    def play(
        self, label: str, how: str, chosen: Iterable[str], context: dict[str, Any], amounts: dict[str, float], seq: int
    ) -> None:
        """A round took place, or was cancelled."""
        row = self.row(label)
        self.executed[label], self.context[label] = how, context
        self.executions[label] = (*self.executions.get(label, ()), seq)
        if how != "cancelled":
            columns = [self.columns[arm] for arm in chosen]
            self.x[row, columns] = True
            for column in columns if self.aside else ():
                self.z[row, column] = self.aside.pop((row, column), np.nan)
            for arm, amount in amounts.items():
                self.dose[row, self.columns[arm]] = amount
            place = bisect_right(self.values, self.keys[row].value)
            self.values.insert(place, self.keys[row].value)
            self.order.insert(place, label)
            self.touch(row)

    def take_back(self, label: str) -> None:
        """Undo `play`. z is only known of arms that were executed; it counts again if they turn out to have been."""
        if not self.took_place(label):
            return
        row = self.rows[label]
        known = np.flatnonzero(np.isfinite(self.z[row])).tolist()
        self.aside.update({(row, column): float(self.z[row, column]) for column in known})
        self.x[row], self.z[row] = False, np.nan
        self.dose[row : row + 1] = 0.0
        place = bisect_left(self.values, self.keys[row].value)
        del self.values[place], self.order[place]
        self.touch(row)

    def learn(
        self,
        label: str,
        arm: str | None,
        revision: int,
        values: dict[str, Any],
        *,
        learned: bool,
        withdraw: bool = False,
    ) -> None:
        """Values of an outcome; those that came too late only count as a revision."""
        row, column = self.rows[label], self.column(arm)
        self.revision[row, column] = max(revision, self.revision[row, column])
        for name, table in (("z", self.z), ("y", self.y)):
            if name not in values or (values[name] is None and not withdraw):
                continue
            value = np.nan if values[name] is None else values[name]
            if learned:
                table[row, column] = value
                self.touch(row)
            else:
                self.late[row, column, name] = value
            if name == "z":
                self.aside.pop((row, column), None)

    def note_delays(self, labels: Iterable[str]) -> None:
        """Rounds of which something arrived: those that are complete now took so long."""
        for label in labels:
            if label not in self.delays and self.took_place(label) and self.missing(label) == 0:
                self.delays[label] = self.age(label)

    def missing(self, label: str) -> int:
        """How many values of a round are still to come."""
        return int(self.missing_in([self.rows[label]])[0])

    def missing_in(self, rows: Sequence[int]) -> Any:
        """How many values of each of some rounds are still to come."""
        if self.settings.observes == "payoff":
            return np.isnan(self.y[rows, 0]).astype(int)
        found = np.zeros(len(rows), int)
        if self.settings.sees_own:
            found += (np.isnan(self.z[rows]) & self.x[rows]).sum(axis=1)
        if self.settings.sees_overall:
            found += np.isnan(self.y[rows]).sum(axis=1)
        return found

    def column(self, arm: str | None) -> int:
        return 0 if arm is None else self.columns[arm]

    def row(self, label: str) -> int:
        """The row of a round, a new one if it was never heard of."""
        if label not in self.rows:
            self.rows[label] = len(self.keys)
            self.keys.append(round_key(label))
            if len(self.keys) > len(self.x):
                self.resize(2 * len(self.x))
        return self.rows[label]

    def resize(self, rows: int) -> None:
        """Room for more rounds."""
        n = len(self.settings.arms)
        before = len(self.x)

        def longer(values: Any, fill: Any) -> Any:
            made = np.full((rows, n), fill, values.dtype)
            made[:before] = values[:before] if before else fill
            return made

        self.x, self.revision = longer(self.x, False), longer(self.revision, 0)
        self.z, self.y = longer(self.z, np.nan), longer(self.y, np.nan)
        self.dose = longer(self.dose, 0.0) if self.settings.doses else self.dose


def folded(stream: str, read: Callable[[int], list[Entry]], into: Ledger | None = None) -> Ledger:
    """The ledger of a stream, from entries that are read in portions: read(after) returns those after a number."""
    ledger = Ledger(stream) if into is None else into
    while entries := read(ledger.head.seq):
        ledger.apply_all(entries)
    return ledger
