"""What policies share that filter the time of the last change: detected changes, pulls in flight, value of information.

They are functions of one learner, whose state has `rounds`, `last_pull`, `in_flight` and `longest_delay`.
"""

import math
from typing import Any, Final

from spillover.core import inner
from spillover.policies.switching_model import PATIENCE, RECENT, SOON

CERTAIN: Final = 0.99  # a change counts as detected from this probability on
SAME_CHANGE: Final = 20  # hypotheses that differ by at most so many rounds are about the same change
FURTHEST: Final = -6.0  # standard deviations below a level from which nothing is expected above it


@inner
def note_change(change_round: Any, mass: Any, detected: Any) -> None:
    """Count a change once it is nearly certain, summing over hypotheses of neighbouring rounds; update its round."""
    date, most, near = 0, 0.0, 0.0
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and mass[k] > most:
            date, most = change_round[k], mass[k]
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and abs(change_round[k] - date) <= SAME_CHANGE:
            near += mass[k]
    if near > CERTAIN:
        if detected[0] == 0 or date > detected[1] + SAME_CHANGE:
            detected[0] += 1
            detected[1] = date
        elif date >= detected[1] - SAME_CHANGE:
            detected[1] = date


@inner
def fading(longest_delay: Any, any_arrived: Any) -> Any:
    """The share of a pull in flight that remains after a round: late pulls fade, faster if delays have been short."""
    return 1.0 - 1.0 / (PATIENCE * (max(longest_delay, SOON) + 1.0)) if any_arrived else 1.0


@inner
def start_pulls(s: Any, x: Any, any_arrived: Any) -> None:
    """Round s.rounds was played."""
    fade = fading(s.longest_delay, any_arrived)
    for i in range(x.shape[0]):
        s.in_flight[i] *= fade
        if x[i]:
            s.last_pull[i] = s.rounds
            s.in_flight[i] += 1.0


@inner
def end_pull(s: Any, arm: Any, remains: Any) -> None:
    """The outcome of a pull has arrived; remains: what was left of it, `fading` to the power of its age."""
    s.in_flight[arm] = max(s.in_flight[arm] - remains, 0.0)


@inner
def note_delay(s: Any, age: Any) -> None:
    """An outcome arrived so late; old extremes decay."""
    s.longest_delay = max(RECENT * s.longest_delay, age)


@inner
def expected_excess(mean: Any, deviation: Any, level: Any) -> Any:
    """E[(v - level)+] for a normal v."""
    if deviation <= 0.0:
        return max(mean - level, 0.0)
    z = (mean - level) / deviation
    if z < FURTHEST:
        return 0.0
    return deviation * (math.exp(-0.5 * z * z) * 0.3989422804014327 + 0.5 * z * math.erfc(-z * 0.7071067811865476))


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
