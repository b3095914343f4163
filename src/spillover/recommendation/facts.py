"""What an assessment and an answer need of a history."""

from typing import NamedTuple

import numpy as np

from spillover.assessment import Assessment, assess
from spillover.history import History
from spillover.types import Array


class Facts(NamedTuple):
    """The outcomes as the table has them (negated where they are minimised), and the assessment of them."""

    y: Array  # (rounds, outcomes); NaN where not known; one column where there is one outcome for all arms
    per_arm: bool  # whether outcome j is that of arm j
    sees_rewards: bool  # whether the table has each arm's own reward z
    sign: float  # -1 where outcomes are minimised
    assessment: Assessment


def facts_of(history: History) -> Facts:
    """Assess a history."""
    y = np.where(history.arrived[:, None], history.y, np.nan)
    assessment = assess(history.x, y, arms=history.arms, rounds=history.rounds)
    return Facts(y=y, per_arm=True, sees_rewards=True, sign=1.0, assessment=assessment)
