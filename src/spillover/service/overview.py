"""A stream as a person wants to see it, as plain values: its rounds now, and how its estimates have moved."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spillover.history import History
from spillover.history.replay import Checkpoints
from spillover.reasons import reasons
from spillover.recommendation.decide import Question, changes_seen, learned
from spillover.service.decisions import finite
from spillover.service.events import DecisionIssued
from spillover.service.ledger import Ledger

POINTS = 40
LATEST = 500  # rounds
BANDS = 100  # decisions


def overview_of(ledger: Ledger) -> dict[str, Any]:
    """The state of a stream in a few tables:

    counts: rounds, executed, pending, cancelled, expired; late: rounds that wait longer than 9 of 10 did.
    delays: how many rounds passed until a round was complete: known, median, most (of 9 in 10), longest.
    pending: rounds with outcomes to come: round, age, missing, late.
    rounds: the latest 500 in order: round, status, how, chosen, proposed, payoff (None: not complete),
        predicted, changes (noticed so far), seq (of the decision); amounts, where a stream has them.
    bands: for each arm, the estimated total effect and its 95% interval at each of the last 100 decisions.
    """
    delays = delays_of(ledger)
    pending = pending_rounds(ledger, delays["most"])
    rounds = [round_line(ledger, label) for label in known_rounds(ledger)[-LATEST:]]
    return {
        "stream": ledger.head.stream,
        "seq": ledger.head.seq,
        "settings": ledger.settings.to_dict(),
        "counts": {
            "rounds": len(ledger.rows),
            "executed": len(ledger.values),
            "pending": len(pending),
            "late": sum(line["late"] for line in pending),
            "cancelled": sum(how == "cancelled" for how in ledger.executed.values()),
            "expired": sum(map(ledger.took_place, ledger.expired)),
        },
        "delays": delays,
        "pending": pending,
        "rounds": rounds,
    }


def bands_of(events: Sequence[DecisionIssued], intervals: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """For each arm, the estimated total effect and its 95% interval at each decision, as it was then.

    intervals: by round and arm, of decisions that do not have them, as earlier versions of the package recorded them.
    """
    arms = list(events[-1].scores) if events else []
    return {
        arm: [
            {
                "round": event.round,
                "total": event.scores[arm]["total"],
                "interval": event.scores[arm].get("interval", intervals.get(event.round, {}).get(arm)),
                "chosen": arm in event.chosen,
            }
            for event in events
        ]
        for arm in arms
    }


def known_rounds(ledger: Ledger) -> list[str]:
    """All rounds in order."""
    return [key.label for key in sorted(ledger.keys, key=lambda key: key.value)]


def status_of(ledger: Ledger, label: str) -> str:
    """issued, cancelled, pending, expired or complete."""
    if label not in ledger.executed:
        return "issued"
    if not ledger.took_place(label):
        return "cancelled"
    if ledger.missing(label) == 0:
        return "complete"
    return "expired" if label in ledger.expired else "pending"


def delays_of(ledger: Ledger) -> dict[str, Any]:
    """How long outcomes took, in rounds."""
    known = np.array(list(ledger.delays.values()))
    if not len(known):
        return {"known": 0, "median": None, "most": None, "longest": None}
    median, most = (float(np.quantile(known, share)) for share in (0.5, 0.9))
    return {"known": len(known), "median": median, "most": most, "longest": int(known.max())}


def pending_rounds(ledger: Ledger, usual: float | None) -> list[dict[str, Any]]:
    """The rounds with outcomes to come. usual: the age that 9 of 10 did not exceed."""
    missing = ledger.missing_in([ledger.rows[label] for label in ledger.order])
    found = []
    for place in np.flatnonzero(missing).tolist():
        label, age = ledger.order[place], len(ledger.order) - 1 - place
        if label not in ledger.expired:
            late = usual is not None and age > usual
            found.append({"round": label, "age": age, "missing": int(missing[place]), "late": late})
    return found


def round_line(ledger: Ledger, label: str) -> dict[str, Any]:
    row, issued = ledger.rows[label], ledger.issued.get(label)
    chosen = [arm for arm, played in zip(ledger.settings.arms, ledger.x[row], strict=True) if played]
    return {
        "round": label,
        "status": status_of(ledger, label),
        "how": ledger.executed.get(label),
        "revision": len(ledger.executions.get(label, ())),
        "chosen": chosen,
        "proposed": None if issued is None else list(issued.chosen),
        "payoff": payoff_of(ledger, label),
        "predicted": None if issued is None else issued.predicted,
        "changes": None if issued is None else issued.changes,
        "seq": None if issued is None else issued.seq,
    } | ({"amounts": amounts_of(ledger, row)} if ledger.settings.doses else {})


def amounts_of(ledger: Ledger, row: int) -> dict[str, float]:
    """How much of each arm was executed, in a stream of amounts."""
    return {arm: float(ledger.dose[row, k]) for arm, k in ledger.columns.items() if ledger.x[row, k]}


def payoff_of(ledger: Ledger, label: str) -> float | None:
    """The sum of all outcomes of a round; None while some are missing, and if it did not take place."""
    if not ledger.took_place(label):
        return None
    row = ledger.rows[label]
    values = ledger.z[row][ledger.x[row]] if ledger.settings.observes == "own" else ledger.y[row]
    if ledger.settings.observes == "payoff":
        values = values[:1]
    return float(values.sum()) if len(values) and np.isfinite(values).all() else None


def state_of(ledger: Ledger, labels: list[str] | None = None) -> dict[str, Any]:
    """All rounds (or some) with what is known of them; z and y by arm, with the number of the last revision."""
    arms = ledger.settings.arms
    found = []
    for label in known_rounds(ledger) if labels is None else labels:
        row = ledger.rows[label]
        outcomes = {
            arm: {
                "z": number(ledger.z[row, k]),
                "y": number(ledger.y[row, k]),
                "revision": int(ledger.revision[row, k]),
            }
            for k, arm in enumerate(arms[:1] if ledger.settings.observes == "payoff" else arms)
            if ledger.revision[row, k]
        }
        if ledger.settings.observes == "payoff":
            outcomes = dict.fromkeys([""], *outcomes.values()) if outcomes else {}
        found.append(round_line(ledger, label) | {"context": ledger.context.get(label, {}), "outcomes": outcomes})
    return {
        "stream": ledger.head.stream,
        "seq": ledger.head.seq,
        "digest": ledger.head.digest,
        "settings": ledger.settings.to_dict(),
        "rounds": found,
    }


def number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def course_of(history: History, question: Question, points: int = POINTS) -> dict[str, Any]:
    """Estimates after some of the rounds, evenly spaced, the last one included.

    rounds: after which; changes: noticed up to then; arms: for each, its total effects and their 95% intervals.
    """
    last = len(history.rounds)
    stops = sorted({int(stop) for stop in np.linspace(1, last, points).round()}) if last else []
    checkpoints = Checkpoints()
    changes: list[int | None] = []
    arms: dict[str, list[dict[str, Any]]] = {arm: [] for arm in history.arms}
    for stop in stops:
        found = learned(first_rounds(history, stop), question, checkpoints=checkpoints)
        changes.append(changes_seen(found.learner))
        parts = reasons(found.learner.explain(), arms=history.arms, budget=found.budget, paths=0, swaps=0)
        for arm in parts.arms:
            ends = None if arm.total_interval is None else [finite(end) for end in arm.total_interval]
            arms[arm.arm].append({"total": finite(arm.total), "interval": ends, "known": arm.known})
    return {"rounds": [history.rounds[stop - 1] for stop in stops], "changes": changes, "arms": arms}


def first_rounds(history: History, stop: int) -> History:
    """The first rounds of a history."""

    def cut(values: Any) -> Any:
        return None if values is None else values[:stop]

    context = history.context
    return replace(
        history,
        rounds=history.rounds[:stop],
        x=cut(history.x),
        z=cut(history.z),
        y=cut(history.y),
        arrived=cut(history.arrived),
        context=cut(context),
        next_context=context[stop] if context is not None and stop < len(context) else history.next_context,
    )
