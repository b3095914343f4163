"""What policies share that filter the time of the last change: detected changes, pulls in flight, value of information.

They are functions of one learner, whose state has `rounds`, `last_pull`, `in_flight` and `longest_delay`.
"""

import math
from typing import Any, Final

from spillover.core import inner
from spillover.kernels.elementary import exp_of
from spillover.policies.switching_model import PATIENCE, RECENT, SOON

CERTAIN: Final = 0.99  # a change counts as detected from this probability on
SAME_CHANGE: Final = 20  # hypotheses that differ by at most so many rounds are about the same change
NOTHING_ABOVE: Final = -6.0  # standard deviations: of a mean so far below 0 nothing is expected above it
SMALLEST: Final = 1e-300
CENTRE: Final = 4.0
FARTHEST: Final = 8.0  # standard deviations beyond which the density is negligible


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
def share_left(u: Any) -> Any:
    """1 - t Q(t) / phi(t) for t = CENTRE (1 + u) / (1 - u), up to 1e-13 of it, for t from 0 to FARTHEST.

    Q is the upper tail of a standard normal, phi its density.
    """
    v = u * u
    even = 2.2165927282378797e-07
    even = ((even * v + 1.0850655958164606e-05) * v + -4.5705687535880744e-05) * v + 0.0002920547823691292
    even = ((even * v + -0.0022110414042607845) * v + 0.013811372023377967) * v + 0.15807460038417792
    even = (even * v + 0.2766806779756672) * v + 0.053390468345758585
    odd = 2.887468678712203e-06
    odd = ((odd * v + 6.926967045133596e-06) * v + -4.20912691711898e-05) * v + 0.00012258965372815656
    odd = ((odd * v + 0.002317213561004033) * v + -0.06624565546215601) * v + -0.2514342959401056
    odd = odd * v + -0.18472407624421672
    return even + u * odd


@inner
def expected_excess(gap: Any, deviation: Any) -> Any:
    """E[v+] for a normal v of this mean and deviation, without branches, so that loops compute several at once.

    >>> round(float(expected_excess(0.0, 1.0)), 12), float(expected_excess(2.0, 0.0))
    (0.398942280401, 2.0)
    """
    z = gap / max(deviation, SMALLEST)
    t = min(abs(z), FARTHEST)
    left = share_left((t - CENTRE) / (t + CENTRE))
    density = 0.3989422804014327 * exp_of(-0.5 * z * z)
    return max(gap, 0.0) + (deviation * density * left if z >= NOTHING_ABOVE else 0.0)


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
