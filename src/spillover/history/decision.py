"""The next decision of a learner that has learned a history, under constraints, with its reasons."""

from collections.abc import Sequence
from typing import Any

from spillover.constraints import Constraint
from spillover.history.record import History
from spillover.live import Learner
from spillover.reasons import Reasons
from spillover.reasons.health import Pending
from spillover.set_search import EFFORT


def next_reasons(
    learner: Learner,
    history: History,
    constraints: Sequence[Constraint] = (),
    effort: int = EFFORT,
    **options: Any,
) -> Reasons:
    """What the learner chooses next and why; the constraints apply to this decision only.

    effort: steps after which the search for the best set under constraints stops with the best one found so far.
    options: further ones of `spillover.reasons.reasons`.
    """
    waiting = {played: choice.x for played, choice in learner.waiting.items()}
    # a file does not say when outcomes arrived
    pending = Pending(learner.rounds, waiting, timed=False, observed=history.observed, labels=history.rounds)
    bound = learner.under(constraints, arms=history.arms, effort=effort) if constraints else learner
    given = {"pending": pending, "signals": known_signals(learner, history)}
    return bound.reasons(history.arms, **given | options)


def known_signals(learner: Learner, history: History) -> dict[str, Any]:
    """The policy's signals; none about what identifies the graph where that is not a sum of y y'.

    That is so if the table has no y (z stood in for it) or a baseline, and if no arm was observed.
    """
    signals = learner.policy.signals(learner.state)
    if history.has_overall and not history.has_baseline and not history.nothing_chosen:
        return signals
    return {name: value for name, value in signals.items() if name != "gram"}
