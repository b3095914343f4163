"""How the estimates of a stream have moved, round by round, by what is known today."""

from dataclasses import replace
from typing import Any

import numpy as np

from spillover.history import History
from spillover.history.replay import Checkpoints
from spillover.reasons import reasons
from spillover.recommendation.choose import learned
from spillover.recommendation.decide import changes_seen
from spillover.recommendation.question import Question
from spillover.service.one_thread import one_thread

POINTS = 40


def course_of(history: History, question: Question, points: int = POINTS) -> dict[str, Any]:
    """Estimates after some of the rounds, evenly spaced, the last one included.

    rounds: after which; changes: noticed up to then; arms: for each, its total effects and their 95% intervals.
    """
    last = len(history.rounds)
    stops = sorted({int(stop) for stop in np.linspace(1, last, points).round()}) if last else []
    checkpoints = Checkpoints()
    changes: list[int | None] = []
    arms: dict[str, list[dict[str, Any]]] = {arm: [] for arm in history.arms}
    with one_thread():
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


def finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
