"""Rounds as they are asked for and executed, checked against what is known; and what two people say of the same."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spillover.kernels import LARGEST_OUTCOME
from spillover.service.errors import Conflict, require
from spillover.service.events import (
    DecisionExecuted,
    Entry,
    Event,
    ExecutionCorrected,
    RoundsImported,
    canonical_json,
    digest_of,
)
from spillover.service.ledger import Ledger, require_family, round_key
from spillover.service.open_streams import Receipt
from spillover.service.settings import FIXED, Settings, is_name, is_number, is_whole
from spillover.service.tables import Coming

DERIVED = ("how", "learned")  # they follow from the rest and from when it was recorded


class Said(NamedTuple):
    """What somebody says of a stream."""

    event: Event
    key: str  # of its entry, where the caller gives none
    before: int | None  # the number of the entry that is about the same
    what: str  # the part of the request that both are about
    hint: str  # what else may be done


def coming_round(ledger: Ledger, label: str, unavailable: Sequence[str], context: Mapping[str, Any]) -> Coming:
    """What is known of a round to decide."""
    if ledger.keys:
        require_family(round_key(label), ledger.keys[0])
    check_arms(ledger, "unavailable", unavailable)
    check_context(ledger, context)
    return Coming(label, dict(context), tuple(sorted(set(unavailable), key=ledger.columns.__getitem__)))


def check_reason(reason: object) -> None:
    require(reason == "" or is_name(reason), "reason", reason, "at most 200 printable characters on one line")


def check_arms(ledger: Ledger, field: str, arms: Sequence[str]) -> None:
    for arm in arms:
        require(arm in ledger.columns, field, arm, "one of the arms of the stream")


def check_context(ledger: Ledger, context: Mapping[str, Any]) -> None:
    """Every value that is to be given, and no other."""
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
    amounts: Mapping[str, Any] | None,
    cancelled: bool,
    context: Mapping[str, Any] | None,
    revision: int,
    reason: str,
) -> Said:
    """What was done in a round; the first record is revision 1, and a correction has the next number."""
    done = ledger.executions.get(label, ())
    last = len(done)
    accepted = (
        f"1 to {last + 1}, where {last + 1} corrects the last" if last else "1: nothing is recorded of this round"
    )
    require(is_whole(revision, 1, last + 1), "revision", revision, accepted)
    check_reason(reason)
    require(revision > 1 or not reason, "reason", reason, "left out: it is for corrections")
    if ledger.keys:
        require_family(round_key(label), ledger.keys[0])
    issued = ledger.issued.get(label)
    check_amounts(ledger, amounts, given=chosen is not None, cancelled=cancelled)
    chosen = chosen if amounts is None else list(amounts)
    require(not (cancelled and chosen is not None), "cancelled", cancelled, "false where arms are given")
    known = dict(ledger.context.get(label, {} if issued is None else issued.context) if context is None else context)
    proposed = None if issued is None else set(issued.chosen)
    if cancelled:
        there = issued is not None or label in ledger.executed
        require(there, "round", label, "decided before it is cancelled")
        how, played = "cancelled", set[str]()
    else:
        there = issued is not None or chosen is not None
        require(there, "round", label, "decided first, or given with the chosen arms")
        check_arms(ledger, "chosen", chosen or ())
        check_context(ledger, known)
        played = (proposed or set()) if chosen is None else set(chosen)
        how = "as-issued" if played == proposed else "overridden"
    event = DecisionExecuted(
        round=label,
        how=how,
        chosen=tuple(arm for arm in ledger.settings.arms if arm in played),
        context=known,
        amounts={arm: float(amount) for arm, amount in (amounts or {}).items()},
    )
    if revision > 1:
        event = ExecutionCorrected(**vars(event), revision=revision, reason=reason)
    return Said(
        event,
        key=f"execute:{label}" if revision == 1 else f"execution {revision}:{label}",
        before=done[revision - 1] if revision <= last else None,
        what=f"round = {label!r}",
        hint=f"correct it with revision {last + 1}",
    )


def check_amounts(ledger: Ledger, amounts: Mapping[str, Any] | None, *, given: bool, cancelled: bool) -> None:
    """Amounts are given where the stream has them, instead of the chosen arms."""
    if not ledger.settings.doses:
        require(amounts is None, "amounts", amounts, "left out: what is executed in this stream is yes or no")
        return
    require(not given, "chosen", None, "left out: give the amounts of the arms that were executed")
    require(amounts is not None or cancelled, "amounts", None, "given for the arms that were executed")
    for arm, amount in (amounts or {}).items():
        require(arm in ledger.columns, "amounts", arm, "those of arms of the stream")
        good = is_number(amount) and 0 < amount <= LARGEST_OUTCOME
        require(good, f"amounts.{arm}", amount, "a number above 0; leave out arms that were not executed")


# --- said alike it is recorded once, said otherwise both are shown ---------------------------------------------------


def said_again(entry: Entry, said: Said, request: Mapping[str, Any]) -> Receipt:
    """The receipt of an entry that says the same, whatever their keys; a Conflict if it says otherwise."""
    recorded, given = said_of_round(entry, said.event), said.event.to_dict()
    if entry.request == digest_of(request) or canonical_json(content(recorded)) == canonical_json(content(given)):
        return Receipt(entry=entry, again=True)
    raise Conflict(
        f"{said.what}: must be as in entry {entry.seq}{by(entry)}; {said.hint}",
        recorded=place(entry) | {"event": recorded},
        given={"event": given},
    )


def check_settings_read(entry: Entry, settings: Settings, changes: Mapping[str, Any], read_at: int) -> None:
    """A Conflict if settings were changed after the entry at which they were read. entry: the one that says them."""
    if read_at < entry.seq:
        known = {name: value for name, value in settings.to_dict().items() if name not in FIXED}
        raise Conflict(
            f"read_at = {read_at}: must be at least {entry.seq}, the entry in which settings were changed{by(entry)}",
            recorded=place(entry) | {"settings": known},
            given={"settings": dict(changes)},
        )


def other_settings(name: str, recorded: Mapping[str, Any], given: Mapping[str, Any]) -> Conflict:
    """The Conflict of a stream that is there with other settings; it shows those that differ."""
    differ = [key for key in {**recorded, **given} if recorded.get(key) != given.get(key)]
    return Conflict(
        f"name = {name!r}: must be a new one: there is a stream of this name, with other settings",
        recorded={"settings": {key: recorded.get(key) for key in differ}},
        given={"settings": {key: given.get(key) for key in differ}},
    )


def said_of_round(entry: Entry, event: Event) -> dict[str, Any]:
    """What an entry says, as plain values; of an import, what it says was done in the round of an event."""
    found: dict[str, Any] = entry.content["event"]
    if entry.content["kind"] != RoundsImported.kind:
        return found
    line = next(line for line in found["rounds"] if line["round"] == vars(event)["round"])
    return {"how": "imported"} | {name: value for name, value in line.items() if name not in ("z", "y")}


def content(event: Mapping[str, Any]) -> dict[str, Any]:
    """What counts for two events to say the same."""
    return {name: value for name, value in event.items() if name not in DERIVED and value != {}} | {
        "cancelled": event.get("how") == "cancelled"
    }


def place(entry: Entry) -> dict[str, Any]:
    return {"seq": entry.seq, "time": entry.time, "author": entry.author}


def by(entry: Entry) -> str:
    return f" by {entry.author!r}" if entry.author else ""
