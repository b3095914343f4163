"""The service: many streams of decisions on one log. Every call is checked, recorded, and only then answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillover.service.audit import Audit, audited
from spillover.service.decisions import (
    ONE_THREAD,
    can_prepare,
    issued,
    made,
    packed,
    same_request,
    unpacked,
    whole_answer,
)
from spillover.service.errors import Conflict, NotFound, naming, require
from spillover.service.events import (
    DecisionIssued,
    Entry,
    SettingsChanged,
    StreamCreated,
    digest_of,
)
from spillover.service.import_export import Export, exported, import_events, read_file, settings_from
from spillover.service.ledger import Issued, Ledger, round_key
from spillover.service.log import AT_ONCE, EventLog
from spillover.service.open_streams import OPEN, OpenStreams, Receipt, given_key, utc_now
from spillover.service.outcomes import (
    Outcome,
    Report,
    as_request,
    checked_items,
    correction,
    expiration,
    statuses_of,
    take_items,
)
from spillover.service.overview import BANDS, POINTS, bands_of, course_of, overview_of, state_of
from spillover.service.rounds import (
    Said,
    check_reason,
    check_settings_read,
    coming_round,
    execution,
    other_settings,
    said_again,
)
from spillover.service.settings import Settings, checked, is_name, is_whole
from spillover.service.tables import Coming, history_of


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision as it was issued.

    >>> import tempfile
    >>> from spillover.service import SqliteLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(SqliteLog(f"{folder}/decisions.db"))
    ...     created = service.create_stream("shop", {"arms": ["radio", "video"], "budget": 1})
    ...     print(service.decide("shop", "2026-10-12").again)
    ...     service.close()
    False
    """

    entry: Entry
    again: bool  # whether it had been issued before this call
    explain: Callable[[], dict[str, Any]]

    @property
    def event(self) -> DecisionIssued:
        event = self.entry.event
        assert isinstance(event, DecisionIssued)
        return event

    @property
    def answer(self) -> dict[str, Any]:
        """What `spillover next --json` prints: the choice with all reasons, as they were then."""
        return self.explain()


class Service:
    """Streams of decisions. Threads may share it; processes may share its log if that is PostgreSQL.

    key: the idempotency key of a call. The same key with the same request gives the answer of the first call and
    records nothing; with another request it is a Conflict. author: who asks, as it is to be recorded.
    keep: how many streams are kept in memory. As long as a service is open, linear algebra uses one thread.

    >>> import tempfile
    >>> from spillover.service import SqliteLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(SqliteLog(f"{folder}/decisions.db"))
    ...     created = service.create_stream("shop", {"arms": ["radio", "video"], "budget": 1})
    ...     decision = service.decide("shop", "2026-10-12")
    ...     print(len(decision.event.chosen), service.decide("shop", "2026-10-12").again)
    ...     service.close()
    1 True
    """

    def __init__(self, log: EventLog, *, clock: Callable[[], str] = utc_now, keep: int = OPEN) -> None:
        self.log = log
        self.open_streams = OpenStreams(log, clock, keep)
        ONE_THREAD.enter()
        self.closed = False

    def close(self) -> None:
        """Close the log."""
        if not self.closed:
            self.closed = True
            ONE_THREAD.leave()
        self.log.close()

    # --- streams -----------------------------------------------------------------------------------------------------

    def create_stream(
        self, name: str, settings: Settings | Mapping[str, Any], *, key: str | None = None, author: str = ""
    ) -> Receipt:
        """Begin a stream."""
        key = given_key(key)
        check_name(name)
        with naming():
            found = checked(settings if isinstance(settings, Settings) else Settings.read(settings))
        event = StreamCreated(settings=found.to_dict())
        with self.open_streams.writing(name, missing_ok=True) as ledger:
            if ledger.exists:
                first = self.log.read(name, 0, 1)[0]
                if Settings.stored(first.content["event"]["settings"]).digest == found.digest:
                    return Receipt(entry=first, again=True)
                raise other_settings(name, first.content["event"]["settings"], event.settings)
            return self.open_streams.record(ledger, [event], key or "created", event.to_dict(), author)

    def change_settings(
        self,
        stream: str,
        changes: Mapping[str, Any],
        *,
        read_at: int | None = None,
        key: str | None = None,
        author: str = "",
    ) -> Receipt:
        """Decide differently from now on. Arms, what is observed, context, minimise and doses cannot change.

        read_at: the number of the entry as of which the settings were read that these changes are based on. If somebody
        has changed them since, that is a Conflict; None: change them whatever they are now.
        """
        key = given_key(key)
        with self.open_streams.writing(stream) as ledger:
            request = {"settings": dict(changes)} | ({} if read_at is None else {"read_at": read_at})
            if (before := self.open_streams.earlier(stream, key, request)) is not None:
                return before
            last = ledger.head.seq
            good = read_at is None or is_whole(read_at, 1, last)
            require(good, "read_at", read_at, f"the number of an entry, 1 to {last}")
            with naming():
                found = ledger.settings.changed(dict(changes))
            entry = self.entry_at(stream, ledger.settings_at)
            if found.digest == ledger.settings.digest:
                return Receipt(entry=entry, again=True)
            if read_at is not None:
                check_settings_read(entry, ledger.settings, changes, read_at)
            event = SettingsChanged(settings=found.to_dict())
            return self.open_streams.record(ledger, [event], key or f"settings:{ledger.head.seq + 1}", request, author)

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
        key = given_key(key)
        label = round_key(round).label
        with self.open_streams.holding(stream) as opened:
            ledger = opened.ledger
            coming = coming_round(ledger, label, unavailable, context or {})
            request = {"decide": label} | asked(coming)
            self.open_streams.earlier(stream, key, request)
            if label in ledger.issued:
                before = ledger.issued[label]
                if not same_request(before, coming):
                    raise Conflict(
                        f"round = {label!r}: was decided with other unavailable arms or another context",
                        recorded=asked(before) | {"seq": before.seq},
                        given=asked(coming),
                    )
                return self.decision_at(stream, before.seq)
            require(label not in ledger.executed, "round", round, "one that was not executed without a decision")
            found = made(ledger, coming, opened.learning)
            self.open_streams.note_learned(stream, opened.learning)
            event = issued(ledger, coming, found)
            entry = self.open_streams.record(ledger, [event], key or f"decide:{label}", request, author).entry
        return Decision(entry=entry, again=False, explain=lambda: self.explain(stream, label))

    def execute(
        self,
        stream: str,
        round: str | int,
        chosen: Sequence[str] | None = None,
        *,
        amounts: Mapping[str, float] | None = None,
        cancelled: bool = False,
        context: Mapping[str, Any] | None = None,
        revision: int = 1,
        reason: str = "",
        key: str | None = None,
        author: str = "",
    ) -> Receipt:
        """Say what was done in a round: the decision as issued (nothing given), other arms (`chosen`), or nothing at
        all because the round did not take place (`cancelled`). A round that was never decided needs `chosen`.

        amounts: by arm, instead of `chosen`, in a stream that has amounts (`doses`). revision: one more than the last
        corrects what was recorded (the first record is 1); reason: why. Context that is not given stays as it was.
        """
        label = round_key(round).label
        request: dict[str, Any] = {
            "execute": label,
            "chosen": None if chosen is None else sorted(chosen),
            "cancelled": cancelled,
            "context": None if context is None else dict(context),
        } | ({} if amounts is None else {"amounts": dict(amounts)})
        request |= {} if revision == 1 else {"revision": revision, "reason": reason}
        given = (chosen, amounts, cancelled, context, revision, reason)
        return self.say(stream, lambda ledger: execution(ledger, label, *given), request, key, author)

    def report(self, stream: str, outcomes: Sequence[Outcome], *, key: str | None = None, author: str = "") -> Report:
        """Report outcomes, 1,000 at most; each gets a status, and one that is refused does not stop others."""
        key = given_key(key)
        checked_items(outcomes)
        request = as_request(outcomes)
        with self.open_streams.writing(stream) as ledger:
            if (before := self.open_streams.earlier(stream, key, request)) is not None:
                return Report(entry=before.entry, statuses=statuses_of(before.entry, len(outcomes)), again=True)
            statuses, event = take_items(ledger, outcomes)
            if event is None:
                return Report(entry=None, statuses=statuses, again=False)
            own = key or f"report:{ledger.head.seq + 1}"
            entry = self.open_streams.record(ledger, [event], own, request, author).entry
        return Report(entry=entry, statuses=statuses, again=False)

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
        check_reason(reason)
        request = {"correct": str(round), "arm": arm, "revision": revision, "values": dict(values), "reason": reason}
        given = (round, arm, values, revision, reason)
        return self.say(stream, lambda ledger: correction(ledger, *given), request, key, author)

    def expire(
        self, stream: str, round: str | int, *, reason: str = "", key: str | None = None, author: str = ""
    ) -> Receipt:
        """Say that nothing more of a round will arrive. Later outcomes are recorded, but not learned."""
        check_reason(reason)
        label = round_key(round).label
        request = {"expire": label, "reason": reason}
        return self.say(stream, lambda ledger: expiration(ledger, label, reason), request, key, author)

    def say(
        self, stream: str, what: Callable[[Ledger], Said], request: Mapping[str, Any], key: str | None, author: str
    ) -> Receipt:
        """Record what somebody says. Said alike before it is not recorded again, said otherwise both are shown."""
        key = given_key(key)
        with self.open_streams.writing(stream) as ledger:
            if (before := self.open_streams.earlier(stream, key, request)) is not None:
                return before
            said = what(ledger)
            if said.before is not None:
                return said_again(self.entry_at(stream, said.before), said, request)
            return self.open_streams.record(ledger, [said.event], key or said.key, request, author)

    def entry_at(self, stream: str, seq: int) -> Entry:
        return self.log.read(stream, seq - 1, 1)[0]

    # --- reading -----------------------------------------------------------------------------------------------------

    def decision(self, stream: str, round: str | int) -> Decision:
        """The decision of a round as it was issued."""
        label = round_key(round).label
        with self.open_streams.writing(stream) as ledger:
            if label not in ledger.issued:
                raise NotFound(f"round = {label!r}: must be a round of {stream!r} that was decided")
            seq = ledger.issued[label].seq
        return self.decision_at(stream, seq)

    def decision_at(self, stream: str, seq: int) -> Decision:
        entry = self.entry_at(stream, seq)
        return Decision(entry=entry, again=True, explain=lambda: self.explain(stream, entry.content["event"]["round"]))

    def decisions(self, stream: str, after: int = 0, limit: int = 100) -> list[Decision]:
        """Decisions in the order in which they were issued; after: the number of the last entry of the page before."""
        with self.open_streams.writing(stream) as ledger:
            places = sorted(known.seq for known in ledger.issued.values() if known.seq > after)[:limit]
        return [self.decision_at(stream, seq) for seq in places]

    def explain(self, stream: str, round: str | int) -> dict[str, Any]:
        """The answer to a round with all reasons: what `spillover next --json` printed then.

        They are computed when they are first asked for, from what was known before the decision, and kept.
        """
        decision = self.decision(stream, round)
        event, seq = decision.event, decision.entry.seq
        kept = self.log.kept_answer(stream, seq)
        with self.open_streams.writing(stream) as ledger:
            before = ledger.reasons_at.get(event.round)
        if kept is None and before is not None:  # an entry of an earlier version of the package
            kept = self.entry_at(stream, before).attachment
        if kept is not None and (known := unpacked(kept)) is not None:
            return known
        whole = self.answer_to(stream, Coming(event.round, event.context, event.unavailable), event.made_from["seq"])
        self.log.keep_answer(stream, seq, packed(whole))
        return whole

    def answer_to(self, stream: str, coming: Coming, at: int | None) -> dict[str, Any]:
        """The whole answer to a round, as of an entry or now: from what was learned last, if nothing changed since."""
        with self.open_streams.holding(stream) as opened:
            current = can_prepare(opened.ledger) and (at is None or opened.ledger.version <= at)
            found = made(opened.ledger, coming, opened.learning) if current else None
            opened.learning.checkpoints.work = None  # its arrays are now those of the answer, which nobody waits for
            self.open_streams.note_learned(stream, opened.learning)
        return whole_answer(self.open_streams.ledger_at(stream, at), coming) if found is None else found.answer()

    def events(self, stream: str, after: int = 0, limit: int = AT_ONCE) -> list[Entry]:
        """Entries of a stream in order, those with numbers above `after`."""
        self.require_stream(stream)
        return self.log.read(stream, after, limit)

    def overview(self, stream: str) -> dict[str, Any]:
        """What a page shows of a stream; see `overview.overview_of`."""
        ledger = self.open_streams.ledger_at(stream, None)
        latest = sorted(known.seq for known in ledger.issued.values())[-BANDS:]
        events = [self.decision_at(stream, seq).event for seq in latest]
        apart = {event.round: ledger.reasons_at[event.round] for event in events if event.round in ledger.reasons_at}
        intervals = {label: self.entry_at(stream, seq).content["event"]["intervals"] for label, seq in apart.items()}
        return overview_of(ledger) | {"bands": bands_of(events, intervals)}

    def state(self, stream: str, at: int | None = None, round: str | int | None = None) -> dict[str, Any]:
        """What is known of a stream's rounds (or of one), as of an entry or now, as plain values."""
        label = None if round is None else round_key(round).label
        ledger = self.open_streams.ledger_at(stream, at)
        if label is not None and label not in ledger.rows:
            raise NotFound(f"round = {label!r}: must be a round of {stream!r}")
        return state_of(ledger, None if label is None else [label])

    def course(self, stream: str, points: int = POINTS) -> dict[str, Any]:
        """How the estimates have moved, by what is known today; see `overview.course_of`."""
        ledger = self.open_streams.ledger_at(stream, None)
        with naming():
            return course_of(history_of(ledger), ledger.settings.question, points)

    def outlook(self, stream: str, at: int | None = None) -> dict[str, Any]:
        """What would be chosen next, with the estimated graph; as `spillover next --json`. Nothing is recorded."""
        return self.answer_to(stream, Coming(None, {}), at)

    def export(
        self, stream: str, form: str = "csv", *, at: int | None = None, round: str | int | None = None
    ) -> Export:
        """The rounds of a stream as a file ("csv", "parquet" or "jsonl"), with the options for `spillover next`.

        at: as of an entry. round: a decided round; the export is then what its decision was made from, and `next` with
        the options gives that decision.
        """
        coming = None
        if round is not None:
            event = self.decision(stream, round).event
            coming, at = Coming(event.round, event.context, event.unavailable), event.made_from["seq"]
        return exported(self.open_streams.ledger_at(stream, at), form, coming)

    def audit(self, stream: str, *, decisions: bool = True) -> Audit:
        """Check the log of a stream, and make its decisions again."""
        return audited(self.log, stream, decisions=decisions)

    def import_history(
        self,
        stream: str,
        path: str | Path,
        settings: Mapping[str, Any],
        *,
        source: str = "",
        key: str | None = None,
        author: str = "",
        **reading: Any,
    ) -> Receipt:
        """Begin a stream with the rounds of a history file, all of them or none; the receipt is that of the beginning.

        settings: budget, policy ...; the file says the rest. source: the name of the file, as it is to be recorded.

        reading: how the file is read, as for `spillover next`: columns, context, minimise, dates, decimal.
        """
        key = given_key(key)
        check_name(stream)
        context = tuple(reading.get("context") or ())
        ranges = {name: settings.get(name) for name in ("reward_range", "overall_range")}
        history = read_file(path, **ranges, **reading)
        with naming():
            found = checked(Settings.read(settings_from(history, context) | dict(settings)))
        events = [StreamCreated(settings=found.to_dict()), *import_events(history, context, source or Path(path).name)]
        request = {"import": [event.to_dict() for event in events]}
        with self.open_streams.writing(stream, missing_ok=True) as ledger:
            if (before := self.open_streams.earlier(stream, key, request)) is not None:
                return before
            if ledger.exists and self.entry_at(stream, 1).request == digest_of(request):
                return Receipt(entry=self.entry_at(stream, len(events)), again=True)
            if ledger.exists:
                raise Conflict(f"name = {stream!r}: must be a new one: there is a stream of this name")
            return self.open_streams.record(ledger, events, key or "import", request, author)

    def require_stream(self, stream: str) -> None:
        if not self.log.head(stream).seq:
            raise NotFound(f"stream = {stream!r}: must be the name of a stream")


def asked(round: Issued | Coming) -> dict[str, Any]:
    """What a decision was asked with."""
    return {"unavailable": list(round.unavailable), "context": dict(round.context)}


def check_name(name: str) -> None:
    """Refuse what cannot be part of an address."""
    good = is_name(name) and "/" not in name and name not in (".", "..")
    require(good, "name", name, "1 to 200 printable characters without /, and not . or ..")
