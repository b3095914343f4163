"""Switching means: the posterior probability of each hypothesis "the last change was at round r"."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc

# The likelihood ratio of a change is clipped to these bounds, so that products of many do not overflow or underflow;
# beyond them the question is settled anyway.
LEAST_RATIO: Final = 1e-30
MOST_RATIO: Final = 1e30
MOST_PRECISE: Final = 20.0  # a continuous reward is worth at most this many Bernoulli draws
MOST_STRENGTH: Final = 1e9  # a summary is worth at most this many observations; beyond, its variance is rounding
MOST_ALONE: Final = 0.4  # upper bound on the probability that an idle arm changed alone, if there was no shared change
CERTAIN: Final = 0.99  # a change counts as detected from this probability on
SAME_CHANGE: Final = 20  # hypotheses that differ by at most so many rounds are about the same change
LEAST_AVERAGE: Final = 0.01  # the average mean of the arms counts as at least so far inside of the range
ROUNDS_TO_REDRAW: Final = 50.0  # after so many rounds, the average mean of the arms is half trusted
OUTLYING: Final = 4.0  # continuous rewards count as at most so many standard deviations from what was expected


@njit(inline="always")
def changed_probability(prior, ratio):
    """Posterior probability of a change, from its prior probability and its likelihood ratio."""
    if prior == 1.0:  # the only arm that can have changed: rounding would divide by 0 if the ratio is tiny
        return 1.0
    return prior * ratio / (prior * ratio + 1.0 - prior)


@njit(inline="always")
def likelihood(p, reward, precision):
    """p^z (1 - p)^(1 - z) to the power of the precision: Bernoulli at the ends of the range with precision 1."""
    if precision == 1.0:
        if reward == 1.0:
            return p
        if reward == 0.0:
            return 1.0 - p
    return math.exp(precision * (reward * math.log(p) + (1.0 - reward) * math.log(1.0 - p)))


@njit
def precision_of(spread):
    """How many Bernoulli draws a reward is worth: their variance m (1 - m) over the rewards'.

    The variance of the rewards is m (1 - m) - E z (1 - z), so rewards of 0 and 1 are worth exactly 1 draw, even while
    the means are uncertain.
    """
    return min(spread[0] / max(spread[0] - spread[1], spread[0] / MOST_PRECISE), MOST_PRECISE)


@njit
def weakest(mass):
    """The least probable hypothesis."""
    place, least = 0, math.inf
    for k in range(mass.shape[0]):
        total = 0.0
        for g in range(mass.shape[1]):
            total += mass[k, g]
        if total < least:
            place, least = k, total
    return place


@njit
def expected_changes(mass, changes):
    """The expected number of changes together so far: those before each hypothesis, and its own."""
    expected, total = 0.0, 0.0
    for k in range(mass.shape[0]):
        weight = mass[k].sum()
        expected += weight * changes[k]
        for g in range(1, mass.shape[1]):
            expected += mass[k, g]
        total += weight
    return expected / total


@njit
def normalise(mass):
    total = 0.0
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            total += mass[k, g]
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] /= total


@njit(error_model="numpy")
def add_moments(weight, counts_unchanged, counts_since, changed, mean, square):
    """Add one hypothesis's mean and second moment of every arm, times its weight.

    One division for each Beta distribution: divisions dominate the run time.
    """
    for i in range(changed.shape[0]):
        ones_unchanged, ones_since = counts_unchanged[i, 0], counts_since[i, 0]
        n_unchanged, n_since = ones_unchanged + counts_unchanged[i, 1], ones_since + counts_since[i, 1]
        gone = weight * changed[i]
        stay = (weight - gone) / (n_unchanged * (n_unchanged + 1.0))
        gone /= n_since * (n_since + 1.0)
        mean[i] += stay * ones_unchanged * (n_unchanged + 1.0) + gone * ones_since * (n_since + 1.0)
        square[i] += stay * ones_unchanged * (ones_unchanged + 1.0) + gone * ones_since * (ones_since + 1.0)


@njit
def summarise(mass, counts_unchanged, counts_since, changed, summary):
    """(successes, failures) of a Beta distribution for each arm, with the mean and variance of the whole mixture."""
    n = changed.shape[1]
    mean, square = np.zeros(n), np.zeros(n)
    total = 0.0
    for k in range(mass.shape[0]):
        weight = 0.0
        for g in range(mass.shape[1]):
            weight += mass[k, g]
        if weight > 0.0:
            total += weight
            add_moments(weight, counts_unchanged[k], counts_since[k], changed[k], mean, square)
    for i in range(n):
        m = mean[i] / total
        most = m * (1.0 - m)
        # relative to the mean: near 0 and 1 an absolute floor would discard almost all observations
        variance = max(square[i] / total - m * m, most / MOST_STRENGTH)
        strength = max(most / variance - 1.0, 2.0)
        summary[i, 0], summary[i, 1] = m * strength, (1.0 - m) * strength


@njit
def redraw_range(summary, seen, rounds, redrawn):
    """Where means are after a change: anywhere in [0, 1], unless the arms' means are all near one end of it.

    The average mean m of the arms observed, 1/2 before the first round, moves the middle to m (1 + 4 m) if m is below
    1/4; and likewise from above.
    """
    total, arms = 0.0, 0
    for i in range(seen.shape[0]):
        if seen[i] > 0:
            total += summary[i, 0] / (summary[i, 0] + summary[i, 1])
            arms += 1
    if arms > 0:
        average = 0.5 + (total / arms - 0.5) * rounds / (rounds + ROUNDS_TO_REDRAW)
        low, high = max(average, LEAST_AVERAGE), max(1.0 - average, LEAST_AVERAGE)
        redrawn[0] = max(1.0 - 2.0 * high * (1.0 + 4.0 * high), 0.0)
        redrawn[1] = min(2.0 * low * (1.0 + 4.0 * low), 1.0)


@njit
def open_hypothesis(
    change_round,
    mass,
    counts_unchanged,
    counts_since,
    ratio,
    idle_prior,
    changed,
    seen,
    x,
    played_at,
    elapsed,
    hazard,
    idle_hazard,
    prior,
    changes,
    redrawn,
):
    """Add the hypothesis of a change just before `played_at`: of a share of the arms, or (type 0) of one idle arm."""
    slot = weakest(mass)
    n = x.shape[0]
    summary = np.empty((n, 2))
    summarise(mass, counts_unchanged, counts_since, changed, summary)
    redraw_range(summary, seen, played_at - elapsed, redrawn)
    total_idle = 0.0
    for i in range(n):
        gap = played_at - seen[i]
        idle_prior[slot, i] = 1.0 - (1.0 - idle_hazard) ** gap if x[i] and gap > 0 else 0.0
        total_idle += idle_prior[slot, i]
        ratio[slot, i] = 1.0
        for side in range(2):
            counts_unchanged[slot, i, side] = summary[i, side]
        counts_since[slot, i, 0] = redrawn[0] + redrawn[1]  # a Beta distribution worth two observations
        counts_since[slot, i, 1] = 2.0 - counts_since[slot, i, 0]
    for i in range(n):
        idle_prior[slot, i] /= max(total_idle, 1e-300)
    change_round[slot] = played_at
    changes[slot] = expected_changes(mass, changes)
    shared = 1.0 - (1.0 - hazard) ** elapsed
    alone = min(total_idle, MOST_ALONE * (1.0 - shared))
    for g in range(mass.shape[1]):
        mass[slot, g] = 0.0
    normalise(mass)
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] *= 1.0 - shared - alone
    mass[slot, 0] = alone
    for g in range(1, mass.shape[1]):
        mass[slot, g] = shared * prior[g]


@njit
def weigh_reward(
    change_round,
    mass,
    counts_unchanged,
    counts_since,
    ratio,
    idle_prior,
    shares,
    arm,
    reward,
    raw,
    played_at,
    precision,
):
    """Update every hypothesis with one arm's reward: its probability (by the reward as it is cut off) and its counts.

    Under a hypothesis whose change came after the reward was earned (feedback out of order), the reward is one more
    observation from before the change, with the likelihood that the earlier hypotheses give it on average, which is
    returned: 0 if they have underflowed, so that nothing can be said.
    """
    mass_before, mass_after = 0.0, 0.0
    for k in range(change_round.shape[0]):
        before = change_round[k] > played_at
        p_unchanged = counts_unchanged[k, arm, 0] / (counts_unchanged[k, arm, 0] + counts_unchanged[k, arm, 1])
        counts_unchanged[k, arm, 0] += precision * raw
        counts_unchanged[k, arm, 1] += precision * (1.0 - raw)
        if before:
            continue
        p_since = counts_since[k, arm, 0] / (counts_since[k, arm, 0] + counts_since[k, arm, 1])
        counts_since[k, arm, 0] += precision * raw
        counts_since[k, arm, 1] += precision * (1.0 - raw)
        like_unchanged, like_since = likelihood(p_unchanged, reward, precision), likelihood(p_since, reward, precision)
        for g in range(mass.shape[1]):
            if mass[k, g] == 0.0:
                continue
            c = 0.0
            if change_round[k] > 0:
                c = changed_probability(idle_prior[k, arm] if g == 0 else shares[g], ratio[k, arm])
            mass_before += mass[k, g]
            mass[k, g] *= c * like_since + (1.0 - c) * like_unchanged
            mass_after += mass[k, g]
        ratio[k, arm] = min(max(ratio[k, arm] * like_since / like_unchanged, LEAST_RATIO), MOST_RATIO)
    if mass_after > 0.0:  # else the earlier hypotheses have underflowed, and there is no average
        for k in range(change_round.shape[0]):
            if change_round[k] > played_at:
                for g in range(mass.shape[1]):
                    mass[k, g] *= mass_after / mass_before
    normalise(mass)
    return mass_after / mass_before if mass_after > 0.0 else 0.0


@njit
def moments(mass, counts_unchanged, counts_since, changed, arm):
    """Mean and variance of an arm's mean, over the hypotheses."""
    mean, square, total = 0.0, 0.0, 0.0
    for k in range(mass.shape[0]):
        weight = mass[k].sum()
        if weight > 0.0:
            ones_unchanged, ones_since = counts_unchanged[k, arm, 0], counts_since[k, arm, 0]
            n_unchanged, n_since = ones_unchanged + counts_unchanged[k, arm, 1], ones_since + counts_since[k, arm, 1]
            m_unchanged, m_since = ones_unchanged / n_unchanged, ones_since / n_since
            mean += weight * (m_unchanged + changed[k, arm] * (m_since - m_unchanged))
            square_unchanged = m_unchanged * (ones_unchanged + 1.0) / (n_unchanged + 1.0)
            square_since = m_since * (ones_since + 1.0) / (n_since + 1.0)
            square += weight * (square_unchanged + changed[k, arm] * (square_since - square_unchanged))
            total += weight
    mean /= total
    return mean, max(square / total - mean * mean, 0.0)


@njit
def within_reach(reward, mean, variance, precision):
    """A continuous reward, cut off at some deviations from what was expected: so no outlier looks like a change.

    Means are averages of what is not cut off. Where all rewards are 0 or 1 (precision 1), none is cut off.
    """
    if precision == 1.0:
        return reward
    most = OUTLYING * math.sqrt(mean * (1.0 - mean) / precision + variance)
    return min(max(reward, mean - most), mean + most)


@njit
def update_changed(change_round, mass, ratio, idle_prior, shares, changed):
    """The probability, under each hypothesis, that an arm took part in the change."""
    for k in range(change_round.shape[0]):
        total = 0.0
        for g in range(mass.shape[1]):
            total += mass[k, g]
        for i in range(changed.shape[1]):
            changed[k, i] = 0.0
        if total == 0.0 or change_round[k] == 0:
            continue
        for g in range(mass.shape[1]):
            share = mass[k, g] / total
            if share == 0.0:
                continue
            if g == 0:
                for i in range(changed.shape[1]):
                    changed[k, i] += share * changed_probability(idle_prior[k, i], ratio[k, i])
            else:
                for i in range(changed.shape[1]):
                    changed[k, i] += share * changed_probability(shares[g], ratio[k, i])


@njit
def note_change(change_round, mass, detected):
    """Count a change once it is nearly certain, summing over hypotheses of neighbouring rounds; update its round."""
    date, most = 0, 0.0
    for k in range(change_round.shape[0]):
        total = mass[k].sum()
        if change_round[k] > 0 and total > most:
            date, most = change_round[k], total
    near = 0.0
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and abs(change_round[k] - date) <= SAME_CHANGE:
            near += mass[k].sum()
    if near > CERTAIN:
        if detected[0] == 0 or date > detected[1] + SAME_CHANGE:
            detected[0] += 1
            detected[1] = date
        elif date >= detected[1] - SAME_CHANGE:
            detected[1] = date


@gufunc(
    (
        int64[::1],
        float64[:, ::1],
        float64[:, :, ::1],
        float64[:, :, ::1],
        float64[:, ::1],
        float64[:, ::1],
        float64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
        float64[::1],
        float64[::1],
        float64[::1],
        boolean[:],
        float64[:],
        float64,
        int64,
        float64[:],
        float64[:],
        float64[:],
        float64,
        boolean,
        float64[:],
        float64[:],
        float64[:],
        float64[:],
    ),
    "(k),(k,g),(k,n,t),(k,n,t),(k,n),(k,n),(k,n),(n),(o),(t),(t),(k),(t),(n),(n),(),(),(g),(g),(t),(),()->(n),(n),(n),()",
    writes=(
        "change_round",
        "mass",
        "counts_unchanged",
        "counts_since",
        "ratio",
        "idle_prior",
        "changed",
        "seen",
        "latest",
        "detected",
        "spread",
        "changes",
        "redrawn",
    ),
)
def switching_arrival(
    change_round,
    mass,
    counts_unchanged,
    counts_since,
    ratio,
    idle_prior,
    changed,
    seen,
    latest,
    detected,
    spread,
    changes,
    redrawn,
    x,
    reward,
    weight,
    played_at,
    shares,
    prior,
    hazards,
    idle_hazard,
    arrived,
    expected,
    counted,
    likely,
    precision,
):
    """Update all hypotheses with the rewards of a round, however late it arrives.

    weight: of the rewards, as evidence; 1 if they were observed. hazards: changes and rounds that the probability of a
    change per round is worth before anything is observed; those that are observed are added.

    Returns what they expected of the chosen arms before they learned from it, the rewards as they are cut off, and
    their likelihood (0 if nothing can be said), each 0 for the other arms; and how many draws a reward was worth.
    """
    for i in range(x.shape[0]):
        expected[i] = counted[i] = likely[i] = 0.0
    precision[0] = precision_of(spread)
    if not arrived:
        return
    for i in range(x.shape[0]):
        if x[i]:
            mean, variance = moments(mass, counts_unchanged, counts_since, changed, i)
            expected[i], counted[i] = mean, within_reach(reward[i], mean, variance, precision[0])
            spread[0] += weight * mean * (1.0 - mean)
            spread[1] += weight * reward[i] * (1.0 - reward[i])
    if played_at > latest[0]:
        if latest[0] > 0:
            hazard = (hazards[0] + expected_changes(mass, changes)) / (hazards[1] + latest[0])
            open_hypothesis(
                change_round,
                mass,
                counts_unchanged,
                counts_since,
                ratio,
                idle_prior,
                changed,
                seen,
                x,
                played_at,
                played_at - latest[0],
                hazard,
                idle_hazard,
                prior,
                changes,
                redrawn,
            )
        latest[0] = played_at
    for i in range(x.shape[0]):
        if x[i]:
            likely[i] = weigh_reward(
                change_round,
                mass,
                counts_unchanged,
                counts_since,
                ratio,
                idle_prior,
                shares,
                i,
                counted[i],
                reward[i],
                played_at,
                weight * precision[0],
            )
            seen[i] = max(seen[i], played_at)
    update_changed(change_round, mass, ratio, idle_prior, shares, changed)
    note_change(change_round, mass, detected)
