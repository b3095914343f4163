"""The service: many streams of decisions on one log. Every call is checked, recorded, and only then answered."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from spillover.recommendation.json_types import to_json_types
from spillover.service.audit import Audit, audited
from spillover.service.canonical import canonical_json, digest_of
from spillover.service.deciding import decided, read_answer, recommend, same_request
from spillover.service.entry import Draft, Entry
from spillover.service.errors import Conflict, Invalid, NotFound, naming, require
from spillover.service.events import (
    DecisionExecuted,
    DecisionIssued,
    Event,
    OutcomeCorrected,
    OutcomeExpired,
    OutcomesReported,
    SettingsChanged,
    StreamCreated,
)
from spillover.service.export import Export, exported
from spillover.service.importing import import_events, read_file, settings_from
from spillover.service.ledger import Ledger, folded
from spillover.service.log import AT_ONCE, EventLog, Moved
from spillover.service.overview import overview_of, state_of
from spillover.service.reporting import (
    Outcome,
    Status,
    check_correction,
    checked_items,
    executed_round,
    take_item,
)
from spillover.service.round_key import require_family, round_key
from spillover.service.settings import Settings, checked, is_name, is_number
from spillover.service.table import Coming

OPEN = 10_000  # streams that are kept in memory
LONGEST_KEY = 200
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """An entry that was recorded, and whether this call recorded it or an earlier one with the same key."""

    entry: Entry
    again: bool

    @property
    def event(self) -> Event:
        return self.entry.event


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision as it was issued."""

    entry: Entry
    again: bool  # whether it had been issued before this call

    @property
    def event(self) -> DecisionIssued:
        event = self.entry.event
        assert isinstance(event, DecisionIssued)
        return event

    @property
    def answer(self) -> dict[str, Any]:
        """What `spillover next --json` prints: the choice with all reasons, as they were then."""
        return read_answer(self.entry.attachment)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of the outcomes of a report; entry: None if there was nothing new to record."""

    entry: Entry | None
    statuses: tuple[Status, ...]
    again: bool


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Service:
    """Streams of decisions. Threads may share it; processes may share its log if that is PostgreSQL.

    key: the idempotency key of a call. The same key with the same request gives the answer of the first call and records
    nothing; with another request it is a Conflict. author: who asks, as it is to be recorded.
    """

    def __init__(self, log: EventLog, *, clock: Callable[[], str] = utc_now, keep: int = OPEN) -> None:
        self.log, self.clock, self.keep = log, clock, keep
        self.ledgers: OrderedDict[str, Ledger] = OrderedDict()
        self.lock = threading.Lock()  # of the dictionary of ledgers

    # --- streams -----------------------------------------------------------------------------------------------------

    def create_stream(
        self, name: str, settings: Settings | Mapping[str, Any], *, key: str | None = None, author: str = ""
    ) -> Receipt:
        """Begin a stream."""
        require(is_name(name) and "/" not in name, "name", name, "1 to 200 printable characters without /")
        with naming():
            found = checked(settings if isinstance(settings, Settings) else Settings.from_dict(dict(settings)))
        event = StreamCreated(settings=found.to_dict())
        with self.writing(name, missing_ok=True) as ledger:
            if ledger.exists:
                first = self.log.read(name, 0, 1)[0]
                if canonical_json(first.content["event"]) == canonical_json(event.to_dict()):
                    return Receipt(entry=first, again=True)
                raise Conflict(
                    f"name = {name!r}: must be a new one: there is a stream of this name, with other settings"
                )
            return self.record(ledger, event, key or "created", event.to_dict(), author)

    def change_settings(
        self, stream: str, changes: Mapping[str, Any], *, key: str | None = None, author: str = ""
    ) -> Receipt:
        """Decide differently from now on. Arms, what is observed, context and minimise cannot change."""
        with self.writing(stream) as ledger:
            request = {"settings": dict(changes)}
            if (before := self.earlier(stream, key, request)) is not None:
                return Receipt(entry=before, again=True)
            with naming():
                found = ledger.settings.changed(dict(changes))
            event = SettingsChanged(settings=found.to_dict())
            return self.record(ledger, event, key or f"settings:{ledger.head.seq + 1}", request, author)

    def streams(self, after: str = "", limit: int = AT_ONCE) -> list[str]:
        """Names of streams, in order; after: the last name of the page before."""
        return [head.stream for head in self.log.streams(after, limit)]

    # --- rounds ------------------------------------------------------------------------------------------------------

    def decide(
        self,
        stream: str,
        round: str | int,
        *,
        unavailable: Sequence[str] = (),
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
        author: str = "",
    ) -> Decision:
        """The decision of a round: made once; whoever asks again gets the same one."""
        label = round_key(round).label
        with self.writing(stream) as ledger:
            coming = coming_round(ledger, label, unavailable, context or {})
            request = {"decide": label, "unavailable": sorted(coming.unavailable), "context": dict(coming.context)}
            self.earlier(stream, key, request)
            if label in ledger.issued:
                if not same_request(ledger.issued[label], coming):
                    raise Conflict(f"round = {label!r}: was decided with other unavailable arms or another context")
                return Decision(entry=self.log.read(stream, ledger.issued_at[label] - 1, 1)[0], again=True)
            require(label not in ledger.executed, "round", round, "one that was not executed without a decision")
            found = decided(ledger, coming)
            receipt = self.record(ledger, found.event, key or f"decide:{label}", request, author, found.attachment)
            return Decision(entry=receipt.entry, again=False)

    def execute(
        self,
        stream: str,
        round: str | int,
        chosen: Sequence[str] | None = None,
        *,
        cancelled: bool = False,
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
        author: str = "",
    ) -> Receipt:
        """Say what was done in a round: the decision as issued (nothing given), other arms (`chosen`), or nothing at
        all because the round did not take place (`cancelled`). A round that was never decided needs `chosen`.
        """
        label = round_key(round).label
        with self.writing(stream) as ledger:
            request = {
                "execute": label,
                "chosen": None if chosen is None else sorted(chosen),
                "cancelled": cancelled,
                "context": None if context is None else dict(context),
            }
            own = key or f"execute:{label}"
            if (before := self.earlier(stream, own, request)) is not None:
                return Receipt(entry=before, again=True)
            event = execution(ledger, label, chosen, cancelled, context)
            return self.record(ledger, event, own, request, author)

    def report(self, stream: str, outcomes: Sequence[Outcome], *, key: str | None = None, author: str = "") -> Report:
        """Report outcomes, 1,000 at most; each gets a status of its own, and one that is refused does not stop others."""
        checked_items(outcomes)
        request = {"report": [asdict(item) for item in outcomes]}
        with self.writing(stream) as ledger:
            if (before := self.earlier(stream, key, request)) is not None:
                return Report(entry=before, statuses=statuses_of(before, len(outcomes)), again=True)
            statuses, recorded, refused = [], [], []
            trial = Trial(ledger)
            for place, item in enumerate(outcomes):
                status, outcome = trial.take(item)
                statuses.append(status)
                if outcome is not None:
                    recorded.append(outcome | {"item": place})
                else:
                    refused.append({"item": place, **status.to_dict()})
            if not recorded:
                return Report(entry=None, statuses=tuple(statuses), again=False)
            event = OutcomesReported(outcomes=tuple(recorded), refused=tuple(refused))
            own = key or f"report:{ledger.head.seq + 1}"
            entry = self.record(ledger, event, own, request, author).entry
            return Report(entry=entry, statuses=tuple(statuses), again=False)

    def correct(
        self,
        stream: str,
        round: str | int,
        arm: str | None,
        values: Mapping[str, float | None],
        *,
        revision: int,
        reason: str = "",
        key: str | None = None,
        author: str = "",
    ) -> Receipt:
        """Correct an outcome: `values` has z, y or both; None withdraws a value. revision: one more than the last."""
        with self.writing(stream) as ledger:
            request = {
                "correct": str(round),
                "arm": arm,
                "revision": revision,
                "values": dict(values),
                "reason": reason,
            }
            if (before := self.earlier(stream, key, request)) is not None:
                return Receipt(entry=before, again=True)
            label = check_correction(ledger, round, arm, revision, values)
            event = OutcomeCorrected(
                round=label,
                arm=arm,
                revision=revision,
                values={name: None if value is None else float(value) for name, value in values.items()},
                learned=not ledger.is_late(label),
                reason=reason,
            )
            return self.record(ledger, event, key or f"correct:{label}:{arm or ''}:{revision}", request, author)

    def expire(
        self, stream: str, round: str | int, *, reason: str = "", key: str | None = None, author: str = ""
    ) -> Receipt:
        """Say that nothing more of a round will arrive. Later outcomes are recorded, but not learned."""
        with self.writing(stream) as ledger:
            label = executed_round(ledger, round)
            own, request = key or f"expire:{label}", {"expire": label, "reason": reason}
            if (before := self.earlier(stream, own, request)) is not None:
                return Receipt(entry=before, again=True)
            return self.record(ledger, OutcomeExpired(round=label, reason=reason), own, request, author)

    # --- reading -----------------------------------------------------------------------------------------------------

    def explain(self, stream: str, round: str | int) -> dict[str, Any]:
        """The answer to a round as it was given, with all reasons: what `spillover next --json` printed then."""
        return self.decision(stream, round).answer

    def events(self, stream: str, after: int = 0, limit: int = AT_ONCE) -> list[Entry]:
        """Entries of a stream in order, those with numbers above `after`."""
        self.require_stream(stream)
        return self.log.read(stream, after, limit)

    def ledger(self, stream: str, at: int | None = None) -> Ledger:
        """What is known of a stream: now (do not change it), or as of an entry."""
        if at is not None:
            self.require_stream(stream)
            return folded(stream, lambda after: self.log.read(stream, after, AT_ONCE, at))
        with self.writing(stream) as ledger:
            return ledger

    def export(
        self,
        stream: str,
        form: str = "csv",
        *,
        at: int | None = None,
        round: str | int | None = None,
    ) -> Export:
        """The rounds of a stream as a file ("csv", "parquet" or "jsonl"), with the options for `spillover next`.

        at: as of an entry. round: a decided round; the export is then what its decision was made from, and `next` with
        the options gives that decision.
        """
        coming = None
        if round is not None:
            event = self.decision(stream, round).event
            coming, at = Coming(event.round, event.context, event.unavailable), event.made_from["seq"]
        return exported(self.ledger(stream, at), form, coming)

    def decision(self, stream: str, round: str | int) -> Decision:
        """The decision of a round as it was issued."""
        label = round_key(round).label
        ledger = self.ledger(stream)
        if label not in ledger.issued:
            raise NotFound(f"round = {label!r}: must be a round of {stream!r} that was decided")
        return Decision(entry=self.log.read(stream, ledger.issued_at[label] - 1, 1)[0], again=True)

    def decisions(self, stream: str, after: int = 0, limit: int = 100) -> list[Decision]:
        """Decisions in the order in which they were issued; after: the number of the last entry of the page before."""
        places = sorted(seq for seq in self.ledger(stream).issued_at.values() if seq > after)[:limit]
        return [Decision(entry=self.log.read(stream, seq - 1, 1)[0], again=True) for seq in places]

    def overview(self, stream: str) -> dict[str, Any]:
        """What a page shows of a stream; see `overview.overview_of`."""
        with self.writing(stream) as ledger:
            return overview_of(ledger)

    def state(self, stream: str, at: int | None = None) -> dict[str, Any]:
        """What is known of a stream's rounds, as of an entry or now, as plain values."""
        return state_of(self.ledger(stream, at))

    def outlook(self, stream: str, at: int | None = None) -> dict[str, Any]:
        """What would be chosen next, with the estimated graph; as `spillover next --json`. Nothing is recorded."""
        return to_json_types(recommend(self.ledger(stream, at), Coming(None, {})).to_dict())

    def audit(self, stream: str, *, decisions: bool = True) -> Audit:
        """Check the log of a stream, and make its decisions again."""
        self.require_stream(stream)
        return audited(self.log, stream, decisions=decisions)

    def import_history(
        self,
        stream: str,
        path: str | Path,
        settings: Mapping[str, Any],
        *,
        source: str = "",
        author: str = "",
        **reading: Any,
    ) -> Receipt:
        """Begin a stream with the rounds of a history file. settings: budget, policy ...; the file says the rest.

        reading: how the file is read, as for `spillover next`: columns, context, minimise, dates, decimal.
        """
        context = tuple(reading.get("context") or ())
        history = read_file(path, **reading)
        found = settings_from(history, context) | dict(settings)
        created = self.create_stream(stream, found, author=author)
        if created.again:
            raise Conflict(f"name = {stream!r}: must be a new one: there is a stream of this name")
        with self.writing(stream) as ledger:
            for event in import_events(history, context, source or Path(path).name):
                request = event.to_dict()
                created = self.record(ledger, event, f"import:{ledger.head.seq + 1}", request, author)
        return created

    def require_stream(self, stream: str) -> None:
        if not self.log.head(stream).seq:
            raise NotFound(f"stream = {stream!r}: must be the name of a stream")

    # --- the log -----------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, stream: str, *, missing_ok: bool = False) -> Iterator[Ledger]:
        """The ledger of a stream as of its last entry, while nobody else can append to it."""
        with self.log.exclusive(stream):
            with self.lock:
                known = self.ledgers.pop(stream, None)
            ledger = folded(stream, lambda after: self.log.read(stream, after), known)
            if not ledger.exists and not missing_ok:
                raise NotFound(f"stream = {stream!r}: must be the name of a stream")
            try:
                yield ledger
            finally:
                if ledger.exists:
                    self.remember(stream, ledger)

    def remember(self, stream: str, ledger: Ledger) -> None:
        with self.lock:
            self.ledgers[stream] = ledger
            while len(self.ledgers) > self.keep:
                self.ledgers.popitem(last=False)

    def earlier(self, stream: str, key: str | None, request: Mapping[str, Any]) -> Entry | None:
        """The entry that an earlier call with this key recorded; a Conflict if that was another request."""
        if key is None:
            return None
        require(is_name(key) and len(key) <= LONGEST_KEY, "key", key, f"1 to {LONGEST_KEY} printable characters")
        found = self.log.with_key(stream, key)
        if found is not None and found.request != digest_of(request):
            raise Conflict(f"key = {key!r}: must be a new one: it was used for another request")
        return found

    def record(
        self, ledger: Ledger, event: Event, key: str, request: Mapping[str, Any], author: str, attachment: bytes = b""
    ) -> Receipt:
        """Append an event, and take it in."""
        draft = Draft(
            event=event,
            key=key,
            request=digest_of(request),
            time=self.clock(),
            author=author,
            attachment=attachment,
        )
        try:
            (entry,) = self.log.append(ledger.head, [draft])
        except Moved:
            raise Conflict(f"stream = {ledger.head.stream!r}: was changed by another server: ask again") from None
        ledger.apply(entry)
        return Receipt(entry=entry, again=False)


class Trial:
    """The items of one report: a later one may repeat an earlier one."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.seen: dict[tuple[str, str | None, str], float] = {}

    def take(self, item: Outcome) -> tuple[Status, dict[str, Any] | None]:
        status, outcome = take_item(self.ledger, item)
        if outcome is None:
            return status, None
        for name in ("z", "y"):
            place = (outcome["round"], outcome["arm"], name)
            if outcome[name] is None:
                continue
            if place in self.seen:
                if self.seen[place] != outcome[name]:
                    reason = f"{name} = {outcome[name]!r}: must be {self.seen[place]:g}, as in the same report"
                    return Status(status="refused", reason=reason, field=name), None
                outcome[name] = None
        if outcome["z"] is None and outcome["y"] is None:
            return Status(status="duplicate"), None
        for name in ("z", "y"):
            if outcome[name] is not None:
                self.seen[outcome["round"], outcome["arm"], name] = outcome[name]
        return status, outcome


def statuses_of(entry: Entry, count: int) -> tuple[Status, ...]:
    """The statuses of a report that was recorded before."""
    event = entry.event
    assert isinstance(event, OutcomesReported)
    found: dict[int, Status] = {}
    for outcome in event.outcomes:
        found[outcome["item"]] = Status(status="recorded" if outcome["learned"] else "late")
    for item in event.refused:
        found[item["item"]] = Status(status=item["status"], reason=item["reason"], field=item["field"])
    return tuple(found[place] for place in range(count))


def coming_round(ledger: Ledger, label: str, unavailable: Sequence[str], context: Mapping[str, Any]) -> Coming:
    """What is known of a round to decide, checked."""
    if ledger.keys:
        require_family(round_key(label), ledger.keys[0])
    for arm in unavailable:
        require(arm in ledger.columns, "unavailable", arm, "one of the arms of the stream")
    check_context(ledger, context)
    return Coming(label, dict(context), tuple(sorted(set(unavailable), key=ledger.columns.__getitem__)))


def check_context(ledger: Ledger, context: Mapping[str, Any]) -> None:
    wanted = ledger.settings.given_context
    for name in context:
        require(name in wanted, "context", name, f"one of {', '.join(wanted)}" if wanted else "left out")
    for name in wanted:
        require(name in context, f"context.{name}", None, "given for every round")
        value = context[name]
        require(is_number(value) or is_name(value), f"context.{name}", value, "a number or a text")


def execution(
    ledger: Ledger,
    label: str,
    chosen: Sequence[str] | None,
    cancelled: bool,
    context: Mapping[str, Any] | None,
) -> DecisionExecuted:
    """What was done in a round, checked."""
    if ledger.keys:
        require_family(round_key(label), ledger.keys[0])
    if label in ledger.executed:
        raise Conflict(
            f"round = {label!r}: must be one that was not executed yet; it is recorded as {ledger.executed[label]}"
        )
    issued = ledger.issued.get(label)
    require(not (cancelled and chosen is not None), "cancelled", cancelled, "false where arms are given")
    require(issued is not None or chosen is not None, "round", label, "decided first, or given with the chosen arms")
    for arm in chosen or ():
        require(arm in ledger.columns, "chosen", arm, "one of the arms of the stream")
    if context is not None:
        check_context(ledger, context)
    known = dict(context) if context is not None else dict(issued.context) if issued is not None else {}
    if not cancelled:
        check_context(ledger, known)
    if cancelled:
        if issued is None:
            raise Invalid(f"round = {label!r}: must be decided to be cancelled", "round")
        return DecisionExecuted(round=label, how="cancelled", chosen=(), context=known)
    proposed = set(issued.chosen) if issued is not None else None
    played = proposed if chosen is None else set(chosen)
    assert played is not None
    how = "as-issued" if played == proposed else "overridden"
    return DecisionExecuted(
        round=label, how=how, chosen=tuple(arm for arm in ledger.settings.arms if arm in played), context=known
    )
