"""Rounds as they are asked for and executed, checked against what is known of the stream."""

from collections.abc import Mapping, Sequence
from typing import Any

from spillover.kernels import LARGEST_OUTCOME
from spillover.service.errors import require
from spillover.service.events import DecisionExecuted
from spillover.service.ledger import Ledger
from spillover.service.round_key import require_family, round_key
from spillover.service.settings import is_name, is_number, is_whole
from spillover.service.table import Coming


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
) -> DecisionExecuted:
    """What was done in a round. Where something is recorded of it already, this is another version of that."""
    if ledger.keys:
        require_family(round_key(label), ledger.keys[0])
    issued = ledger.issued.get(label)
    check_amounts(ledger, amounts, given=chosen is not None, cancelled=cancelled)
    chosen = chosen if amounts is None else list(amounts)
    require(not (cancelled and chosen is not None), "cancelled", cancelled, "false where arms are given")
    before = ledger.context.get(label, {} if issued is None else issued.context)
    known = dict(before if context is None else context)
    if cancelled:
        there = issued is not None or label in ledger.executed
        require(there, "round", label, "decided before it is cancelled")
        return DecisionExecuted(round=label, how="cancelled", chosen=(), context=known)
    require(issued is not None or chosen is not None, "round", label, "decided first, or given with the chosen arms")
    check_arms(ledger, "chosen", chosen or ())
    check_context(ledger, known)
    proposed = None if issued is None else set(issued.chosen)
    played = proposed if chosen is None else set(chosen)
    return DecisionExecuted(
        round=label,
        how="as-issued" if played == proposed else "overridden",
        chosen=tuple(arm for arm in ledger.settings.arms if arm in (played or ())),
        context=known,
        amounts={arm: float(amount) for arm, amount in (amounts or {}).items()},
    )


def check_revision(ledger: Ledger, label: str, revision: int, reason: str) -> None:
    """The first record of what was done is revision 1; a correction has the next number, and may have a reason."""
    last = len(ledger.executions.get(label, ()))
    accepted = (
        f"1 to {last + 1}, where {last + 1} corrects the last" if last else "1: nothing is recorded of this round"
    )
    require(is_whole(revision, 1, last + 1), "revision", revision, accepted)
    check_reason(reason)
    require(revision > 1 or not reason, "reason", reason, "left out: it is for corrections")


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
