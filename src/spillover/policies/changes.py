"""Parts of policies that filter the time of the last change: pulls in flight, and the rivals of an arm.

They are functions of one learner, whose state has `rounds`, `last_pull`, `in_flight` and `longest_delay`.
"""

import math
from typing import Any

from spillover.core import inner
from spillover.kernels.averages import fading, start_pulls
from spillover.policies.switching_model import PATIENCE, RECENT, SOON


@inner
def fade_of(s: Any, any_arrived: Any) -> Any:
    """The share of a pull in flight that remains after a round."""
    return fading(s.longest_delay, any_arrived, SOON, PATIENCE)


@inner
def note_pulls(s: Any, x: Any, any_arrived: Any) -> None:
    """Round s.rounds was played."""
    start_pulls(s.last_pull, s.in_flight, x, s.rounds, fade_of(s, any_arrived))


@inner
def end_pull(s: Any, arm: Any, remains: Any) -> None:
    """The outcome of a pull has arrived; remains: what was left of it, `fade_of` to the power of its age."""
    s.in_flight[arm] = max(s.in_flight[arm] - remains, 0.0)


@inner
def note_delay(s: Any, age: Any) -> None:
    """An outcome arrived so late; old extremes decay."""
    s.longest_delay = max(RECENT * s.longest_delay, age)


@inner
def rivals(effects: Any, budget: Any, ordered: Any) -> Any:
    """The effect of the s-th best arm and of the next one, or 0 if that is more; ordered: room for s + 1 numbers."""
    wanted = min(budget + 1, effects.shape[0])
    for k in range(wanted):
        ordered[k] = -math.inf
    for i in range(effects.shape[0]):
        value, k = effects[i], wanted - 1
        if value > ordered[k]:
            while k > 0 and ordered[k - 1] < value:
                ordered[k] = ordered[k - 1]
                k -= 1
            ordered[k] = value
    return max(ordered[budget - 1], 0.0), (max(ordered[budget], 0.0) if budget < effects.shape[0] else 0.0)
