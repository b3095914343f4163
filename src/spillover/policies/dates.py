"""Outcomes without a date: a policy may take all of them to be the same number of rounds old.

NDC-SEM and Switching-SEM know the age of an outcome when it arrives. Their `assumed_delay` is for ablations, which
measure what that is worth.
"""

from typing import Final

import numpy as np

from spillover.types import Feedback, IntArray

AS_DATED: Final = -1  # for kernels: no delay is assumed


def for_kernels(assumed_delay: int | None) -> int:
    """An assumed delay, or none, as a whole number."""
    return AS_DATED if assumed_delay is None else assumed_delay


def date_of(played_at: IntArray, assumed_delay: int | None, rounds: IntArray) -> IntArray:
    """The rounds in which outcomes are taken to have been played, after so many rounds: none before the first.

    >>> date_of(np.array([3, 8]), None, np.array(20)), date_of(np.array([3, 8]), 15, np.array(20))
    (array([3, 8]), array(5))
    """
    return played_at if assumed_delay is None else np.asarray(np.maximum(rounds - assumed_delay, 1))


def dated(feedback: Feedback, assumed_delay: int | None, rounds: IntArray) -> Feedback:
    """Feedback of the age that it is taken to have, after so many rounds."""
    if assumed_delay is None:
        return feedback
    return feedback._replace(age=np.minimum(assumed_delay, rounds - 1))
