"""What an assessment and an answer need of a history."""

from typing import NamedTuple

import numpy as np

from spillover.assessment import Assessment, assess
from spillover.history import History
from spillover.types import Array


class Facts(NamedTuple):
    """The outcomes in the sign of the table, and the assessment of them."""

    y: Array  # (rounds, outcomes); NaN where not known; one column where there is one outcome for all arms
    per_arm: bool  # whether outcome j is that of arm j
    sees_rewards: bool  # whether the table has each arm's own reward z
    sign: float  # -1 where outcomes are minimised: the policy maximises their negatives
    assessment: Assessment


def facts_of(history: History) -> Facts:
    """Assess a history."""
    per_arm = history.observes != "payoff"
    sign = -1.0 if history.minimise else 1.0
    y = sign * np.where(history.arrived[:, None], history.y, np.nan)[:, : None if per_arm else 1] + 0.0
    assessment = assess(
        history.x,
        y,
        dose=history.dose,
        context=history.context,
        arms=history.arms,
        outcomes=None if per_arm else ("the outcome",),
        context_names=history.context_names,
        rounds=history.rounds,
    )
    return Facts(
        y=y,
        per_arm=per_arm,
        sees_rewards=history.observes == "both",
        sign=sign,
        assessment=assessment,
    )
