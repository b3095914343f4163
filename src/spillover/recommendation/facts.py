"""The outcomes of a history in the sign of the table, with their assessment."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spillover.assessment import Assessment, assess
from spillover.history import History
from spillover.recommendation.estimates import effect_findings, history_effects
from spillover.regression import Effects
from spillover.types import Array

MOST_ROUNDS = 200_000  # the latest ones, in averages: of more rounds, older ones would cost memory and say little


class Facts(NamedTuple):
    """The outcomes in the sign of the table, and the assessment of them.

    >>> from spillover.history import read_history
    >>> table = {"week": range(4), "tv": [1, 0, 1, 0], "radio": [0, 1, 1, 0], "revenue": [9, 5, 10, 4]}
    >>> facts_of(read_history(table)).per_arm  # one outcome for all arms
    False
    """

    y: Array  # (rounds, outcomes); NaN where not known; one column where there is one outcome for all arms
    per_arm: bool  # whether outcome j is that of arm j
    sees_rewards: bool  # whether the table has each arm's own reward z
    sign: float  # -1 where outcomes are minimised: the policy maximises their negatives
    assessment: Assessment
    effects: Effects | None  # by a regression of the table; None: it has own rewards, or is too small


def facts_of(history: History) -> Facts:
    """Assess a history.

    >>> from spillover.history import read_history
    >>> table = {"week": range(4), "promo_a": [1, 0, 1, 0], "promo_b": [0, 1, 1, 0]}
    >>> table |= {"sales_a": [9, 5, 9, 5], "sales_b": [3, 4, 4, 3]}
    >>> facts_of(read_history(table)).per_arm
    True
    """
    per_arm = history.observes != "payoff"
    sign = -1.0 if history.minimise else 1.0
    latest = slice(max(len(history.x) - MOST_ROUNDS, 0), None)
    outcomes = history.y[latest, : None if per_arm else 1]
    y = np.where(history.arrived[latest, None], sign * outcomes + 0.0, np.nan)
    found = assess(
        history.x[latest],
        y,
        dose=None if history.dose is None else history.dose[latest],
        context=None if history.context is None else history.context[latest],
        arms=history.arms,
        outcomes=None if per_arm else ("the outcome",),
        context_names=history.context_names,
        rounds=history.rounds[latest],
    )
    times = history.x.sum(axis=0).tolist()
    averages = tuple(arm._replace(times=count) for arm, count in zip(found.averages, times, strict=True))
    effects = history_effects(history)
    assessment = replace(
        found,
        averages=averages,
        rounds=len(history.x),
        known=int(history.arrived.sum()),
        findings=(*found.findings, *effect_findings(history, effects)),
    )
    return Facts(
        y=y,
        per_arm=per_arm,
        sees_rewards=history.observes == "both",
        sign=sign,
        assessment=assessment,
        effects=effects,
    )
