"""Outcomes as they are reported: each is checked against what is known of its round, and flagged if it is unusual."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spillover.service.errors import Invalid, require
from spillover.service.events import Entry, OutcomeCorrected, OutcomeExpired, OutcomesReported
from spillover.service.ledger import Ledger, round_key
from spillover.service.rounds import Said
from spillover.service.settings import is_number, is_whole

MOST_ITEMS = 1_000
RECORDED, DUPLICATE, LATE, REFUSED = "recorded", "duplicate", "late", "refused"
ENOUGH = 20  # values to compare with
LOOKED_AT = 500  # rounds, the latest
FAR = 8.0  # robust standard deviations
ROBUST = 1.4826  # standard deviations in a median absolute deviation, under a normal distribution


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """An outcome, or a part of one. arm: None where the stream has one outcome for all arms.

    >>> Outcome(round="2026-10-12", arm="video", y=0.6).arm
    'video'
    """

    round: str | int
    arm: str | None = None
    z: float | None = None
    y: float | None = None


@dataclass(frozen=True, kw_only=True)
class Status:
    """What became of an outcome: recorded; duplicate (known already, with the same values); late (recorded, but not
    learned, as it came too late); or refused, with the reason and the field that it is about.

    >>> Status(status="duplicate").status
    'duplicate'
    """

    status: str
    reason: str = ""
    field: str | None = None
    flag: str = ""  # of a recorded outcome that is far from what is usual

    def to_dict(self) -> dict[str, Any]:
        return {"status": self.status, "reason": self.reason, "field": self.field, "flag": self.flag}


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of the outcomes of a report; entry: None if there was nothing new to record.

    >>> import tempfile
    >>> from spillover.service import Service, SqliteLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(SqliteLog(f"{folder}/decisions.db"))
    ...     created = service.create_stream("shop", {"arms": ["radio", "video"], "budget": 2, "observes": "overall"})
    ...     decision = service.decide("shop", "2026-10-12")
    ...     done = service.execute("shop", "2026-10-12", chosen=["radio"])
    ...     report = service.report("shop", [Outcome(round="2026-10-12", arm="radio", y=0.6)])
    ...     print([status.status for status in report.statuses])
    ...     service.close()
    ['recorded']
    """

    entry: Entry | None
    statuses: tuple[Status, ...]
    again: bool  # whether an earlier call with the same key recorded it


def checked_items(items: Sequence[Outcome]) -> None:
    require(0 < len(items) <= MOST_ITEMS, "outcomes", f"{len(items)} items", f"1 to {MOST_ITEMS:,} outcomes")


def check_item(ledger: Ledger, item: Outcome) -> tuple[str, str | None]:
    """The round and arm of an outcome, if it can be recorded."""
    label = executed_round(ledger, item.round)
    check_arm(ledger, item.arm)
    require(item.z is not None or item.y is not None, "y", item.y, "given, or z")
    check_values(ledger, label, item.arm, {"z": item.z, "y": item.y})
    return label, item.arm


def executed_round(ledger: Ledger, given: str | int) -> str:
    """The label of a round that took place."""
    label = round_key(given).label
    require(label in ledger.rows, "round", given, "a round that was decided or executed")
    require(label in ledger.executed, "round", given, "executed first: say what was done in this round")
    require(ledger.took_place(label), "round", given, "one that took place; this one was cancelled")
    return label


def check_arm(ledger: Ledger, arm: str | None) -> None:
    if ledger.settings.observes == "payoff":
        require(arm is None, "arm", arm, "left out: the stream has one outcome for all arms")
    else:
        require(arm in ledger.columns, "arm", arm, "one of the arms of the stream")


def check_values(ledger: Ledger, label: str, arm: str | None, values: Mapping[str, Any]) -> None:
    """z only of arms that were executed, and numbers in their ranges."""
    settings = ledger.settings
    for name, bounds in settings.bounds.items():
        value = values.get(name)
        if value is None:
            continue
        if bounds is None:
            raise Invalid(
                f"{name} = {value!r}: must be left out, as the stream observes {settings.observes!r}", name, value
            )
        low, high = bounds
        require(is_number(value) and low <= value <= high, name, value, f"a number from {low:g} to {high:g}")
    if values.get("z") is not None:
        played = ledger.x[ledger.rows[label], ledger.column(arm)]
        require(bool(played), "z", values["z"], f"left out, as {arm!r} was not executed in round {label}")


def take_items(ledger: Ledger, items: Sequence[Outcome]) -> tuple[tuple[Status, ...], OutcomesReported | None]:
    """The status of each outcome of a report, and the event if there is anything to record."""
    statuses, recorded, refused = [], [], []
    seen: dict[tuple[str, str | None, str], float] = {}
    for place, item in enumerate(items):
        status, outcome = take_item(ledger, item, seen)
        if outcome is None:
            refused.append({"item": place, "status": status.status, "reason": status.reason, "field": status.field})
        else:
            recorded.append(outcome | {"item": place})
        statuses.append(status)
    for outcome, flag in zip(recorded, flags_of(ledger, recorded), strict=True):
        if flag:
            outcome["flag"] = flag
            statuses[outcome["item"]] = replace(statuses[outcome["item"]], flag=flag)
    event = OutcomesReported(outcomes=tuple(recorded), refused=tuple(refused)) if recorded else None
    return tuple(statuses), event


def take_item(
    ledger: Ledger, item: Outcome, seen: dict[tuple[str, str | None, str], float]
) -> tuple[Status, dict[str, Any] | None]:
    """The status of an outcome, and what is to be recorded of it. seen: by the items before it in the same report."""
    try:
        label, arm = check_item(ledger, item)
    except Invalid as error:
        return Status(status=REFUSED, reason=str(error), field=error.field), None
    row, column, fresh = ledger.rows[label], ledger.column(arm), {}
    late = ledger.is_late(label)
    for name, value, table in (("z", item.z, ledger.z), ("y", item.y, ledger.y)):
        if value is None:
            continue
        known = seen.get((label, arm, name), table[row, column])
        if late and known != known:
            known = ledger.late.get((row, column, name), known)
        if known != known:
            fresh[name] = float(value)
        elif known != value:
            again = f"which was reported before; correct it with revision {ledger.revision[row, column] + 1}"
            reason = f"{name} = {value!r}: must be {known!r}, {again}"
            return Status(status=REFUSED, reason=reason, field=name), None
    if not fresh:
        return Status(status=DUPLICATE), None
    seen.update({(label, arm, name): value for name, value in fresh.items()})
    recorded = {"round": label, "arm": arm, "z": fresh.get("z"), "y": fresh.get("y"), "learned": not late}
    return Status(status=LATE if late else RECORDED), recorded


def statuses_of(entry: Entry, count: int) -> tuple[Status, ...]:
    """The statuses of a report that was recorded before."""
    event = entry.event
    assert isinstance(event, OutcomesReported)
    found: dict[int, Status] = {}
    for outcome in event.outcomes:
        status = RECORDED if outcome["learned"] else LATE
        found[outcome["item"]] = Status(status=status, flag=outcome.get("flag", ""))
    for item in event.refused:
        found[item["item"]] = Status(status=item["status"], reason=item["reason"], field=item["field"])
    return tuple(found[place] for place in range(count))


def as_request(items: Sequence[Outcome]) -> dict[str, Any]:
    """The request in plain values, for its hash; refuses what is no number."""
    for item in items:
        for name, value in (("z", item.z), ("y", item.y)):
            require(value is None or is_number(value), name, value, "a number")
    return {"report": [[item.round, item.arm, item.z, item.y] for item in items]}


def correction(
    ledger: Ledger, round: str | int, arm: str | None, values: Mapping[str, Any], revision: int, reason: str
) -> Said:
    """An outcome that was reported, with other values."""
    label = executed_round(ledger, round)
    done, given = ledger.corrections.get((label, arm, revision)), dict(values)
    if done is None:
        check_arm(ledger, arm)
        last = int(ledger.revision[ledger.rows[label], ledger.column(arm)])
        require(last > 0, "revision", revision, "of an outcome that was reported; this one was not: report it")
        good = is_whole(revision, 1, 2**31 - 1) and revision == last + 1
        require(good, "revision", revision, f"{last + 1}, one more than the last")
        require(bool(values) and set(values) <= {"z", "y"}, "values", given, "z or y, or both")
        check_values(ledger, label, arm, values)
        given = {name: None if value is None else float(value) for name, value in values.items()}
    event = OutcomeCorrected(
        round=label, arm=arm, revision=revision, values=given, learned=not ledger.is_late(label), reason=reason
    )
    key, hint = f"correct:{label}:{arm or ''}:{revision}", "read the value again, and correct that"
    return Said(event, key, done, f"revision = {revision}", hint)


def expiration(ledger: Ledger, label: str, reason: str) -> Said:
    """Nothing more of a round will arrive."""
    executed_round(ledger, label)
    event, hint = OutcomeExpired(round=label, reason=reason), "nothing more is expected of it already"
    return Said(event, f"expire:{label}", ledger.expired.get(label), f"round = {label!r}", hint)


def flags_of(ledger: Ledger, outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is unusual about the values of each of some outcomes; "" if nothing is."""
    found: list[list[str]] = [[] for _ in outcomes]
    for name in ("z", "y"):
        places = [place for place, outcome in enumerate(outcomes) if outcome[name] is not None]
        if not places:
            continue
        columns = [ledger.column(outcomes[place]["arm"]) for place in places]
        played = ledger.x[[ledger.rows[outcomes[place]["round"]] for place in places], columns].tolist()
        kinds = {kind: k for k, kind in enumerate(dict.fromkeys(zip(columns, played, strict=True)))}
        usual = usual_values(ledger, name, list(kinds))
        for place, *kind in zip(places, columns, played, strict=True):
            middle, most = usual[kinds[kind[0], kind[1]]]
            if abs((value := outcomes[place][name]) - middle) > most > 0.0:
                found[place].append(f"{name} = {value:g} is far from the usual {middle:.4g}")
    return ["; ".join(texts) for texts in found]


def usual_values(ledger: Ledger, name: str, kinds: Sequence[tuple[int, bool]]) -> list[list[float]]:
    """For each kind of value (its column, and whether the arm was executed): its median, and how far from it is usual.

    Both are NaN where there is too little to compare with.
    """
    latest = slice(max(len(ledger.keys) - LOOKED_AT, 0), len(ledger.keys))
    columns, played = map(list, zip(*kinds, strict=True))
    table: Any = ledger.z if name == "z" else ledger.y
    known = table[latest, columns].T
    counts = np.isfinite(known)
    if ledger.settings.observes != "payoff":
        counts &= np.array(played)[:, None] == ledger.x[latest, columns].T
    known, count = np.where(counts, known, np.nan), counts.sum(axis=1)
    middle = medians(known, count)
    most = FAR * ROBUST * medians(np.abs(known - middle[:, None]), count)
    both: list[list[float]] = np.where(count >= ENOUGH, (middle, most), np.nan).T.tolist()
    return both


def medians(values: Any, count: Any) -> Any:
    """The median of the numbers in each row, `count` of them; the rest is NaN."""
    ordered, row = np.sort(values, axis=1), np.arange(len(values))
    return 0.5 * (ordered[row, (count - 1) // 2] + ordered[row, count // 2])
