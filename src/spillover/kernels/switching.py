"""Switching means: how probable the rewards make each hypothesis "the last change was at round r"."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc

# An arm's evidence for a change against none is kept within these bounds, so that no product of many over- or
# underflows; beyond them nothing is left to learn.
LEAST_RATIO: Final = 1e-30
MOST_RATIO: Final = 1e30
MOST_PRECISE: Final = 20.0  # Bernoulli draws that a continuous reward is worth at most
MOST_STRENGTH: Final = 1e9  # observations that a summary is worth at most; beyond, its variance is rounding
MOST_ALONE: Final = 0.4  # probability, at most, that an idle arm changed alone, given that nothing else did
CERTAIN: Final = 0.99  # probability from which a change counts as noticed
SAME_CHANGE: Final = 20  # rounds by which two hypotheses of the same change may differ


@njit(inline="always")
def changed_probability(prior, ratio):
    """Posterior probability of a change with this prior and this evidence for it."""
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

    That is m (1 - m) - E z (1 - z), so rewards of 0 and 1 are worth 1, exactly, whatever is known of the means.
    """
    return min(spread[0] / max(spread[0] - spread[1], spread[0] / MOST_PRECISE), MOST_PRECISE)


@njit
def weakest(mass):
    """The hypothesis with the least probability."""
    place, least = 0, math.inf
    for k in range(mass.shape[0]):
        total = 0.0
        for g in range(mass.shape[1]):
            total += mass[k, g]
        if total < least:
            place, least = k, total
    return place


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
def add_moments(weight, kept, fresh, changed, mean, square):
    """Add what one hypothesis says of every arm, times its weight; one division a Beta law, as they take the time."""
    for i in range(changed.shape[0]):
        ones_kept, ones_fresh = kept[i, 0], fresh[i, 0]
        n_kept, n_fresh = ones_kept + kept[i, 1], ones_fresh + fresh[i, 1]
        gone = weight * changed[i]
        stay = (weight - gone) / (n_kept * (n_kept + 1.0))
        gone /= n_fresh * (n_fresh + 1.0)
        mean[i] += stay * ones_kept * (n_kept + 1.0) + gone * ones_fresh * (n_fresh + 1.0)
        square[i] += stay * ones_kept * (ones_kept + 1.0) + gone * ones_fresh * (ones_fresh + 1.0)


@njit
def summarise(mass, kept, fresh, changed, summary):
    """(successes, failures) of Beta laws with the mean and variance of what all hypotheses together say of an arm."""
    n = changed.shape[1]
    mean, square = np.zeros(n), np.zeros(n)
    total = 0.0
    for k in range(mass.shape[0]):
        weight = 0.0
        for g in range(mass.shape[1]):
            weight += mass[k, g]
        if weight > 0.0:
            total += weight
            add_moments(weight, kept[k], fresh[k], changed[k], mean, square)
    for i in range(n):
        m = mean[i] / total
        most = m * (1.0 - m)
        # relative to the mean: near 0 and 1 an absolute floor would take almost all observations away
        variance = max(square[i] / total - m * m, most / MOST_STRENGTH)
        strength = max(most / variance - 1.0, 2.0)
        summary[i, 0], summary[i, 1] = m * strength, (1.0 - m) * strength


@njit
def open_hypothesis(
    born, mass, kept, fresh, ratio, silent, changed, seen, x, played_at, elapsed, hazard, idle_hazard, prior
):
    """A change just before `played_at`: of a share of all arms, or (type 0) of an arm that was idle until now."""
    slot = weakest(mass)
    n = x.shape[0]
    summary = np.empty((n, 2))
    summarise(mass, kept, fresh, changed, summary)
    total_silent = 0.0
    for i in range(n):
        gap = played_at - seen[i]
        silent[slot, i] = 1.0 - (1.0 - idle_hazard) ** gap if x[i] and gap > 0 else 0.0
        total_silent += silent[slot, i]
        ratio[slot, i] = 1.0
        for side in range(2):
            kept[slot, i, side] = summary[i, side]
            fresh[slot, i, side] = 1.0
    for i in range(n):
        silent[slot, i] /= max(total_silent, 1e-300)
    born[slot] = played_at
    shared = 1.0 - (1.0 - hazard) ** elapsed
    alone = min(total_silent, MOST_ALONE * (1.0 - shared))
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
def weigh_reward(born, mass, kept, fresh, ratio, silent, shares, arm, reward, played_at, precision):
    """One arm's reward: what every hypothesis predicted, and its counts.

    For a hypothesis that changed later than the reward was earned (feedback out of order) it is one more observation
    of the time before, and as probable as the hypotheses that were there find it.
    """
    mass_before, mass_after = 0.0, 0.0
    for k in range(born.shape[0]):
        before = born[k] > played_at
        p_kept = kept[k, arm, 0] / (kept[k, arm, 0] + kept[k, arm, 1])
        kept[k, arm, 0] += precision * reward
        kept[k, arm, 1] += precision * (1.0 - reward)
        if before:
            continue
        p_fresh = fresh[k, arm, 0] / (fresh[k, arm, 0] + fresh[k, arm, 1])
        fresh[k, arm, 0] += precision * reward
        fresh[k, arm, 1] += precision * (1.0 - reward)
        like_kept, like_fresh = likelihood(p_kept, reward, precision), likelihood(p_fresh, reward, precision)
        for g in range(mass.shape[1]):
            if mass[k, g] == 0.0:
                continue
            c = 0.0
            if born[k] > 0:
                c = changed_probability(silent[k, arm] if g == 0 else shares[g], ratio[k, arm])
            mass_before += mass[k, g]
            mass[k, g] *= c * like_fresh + (1.0 - c) * like_kept
            mass_after += mass[k, g]
        ratio[k, arm] = min(max(ratio[k, arm] * like_fresh / like_kept, LEAST_RATIO), MOST_RATIO)
    if mass_after > 0.0:  # else they have all but vanished, and say nothing of the others
        for k in range(born.shape[0]):
            if born[k] > played_at:
                for g in range(mass.shape[1]):
                    mass[k, g] *= mass_after / mass_before
    normalise(mass)


@njit
def note_spread(mass, kept, fresh, changed, arm, reward, spread):
    """What the variance of rewards is measured by; means as they stood before the round."""
    mean, total = 0.0, 0.0
    for k in range(mass.shape[0]):
        weight = mass[k].sum()
        if weight > 0.0:
            m_kept = kept[k, arm, 0] / (kept[k, arm, 0] + kept[k, arm, 1])
            m_fresh = fresh[k, arm, 0] / (fresh[k, arm, 0] + fresh[k, arm, 1])
            mean += weight * (m_kept + changed[k, arm] * (m_fresh - m_kept))
            total += weight
    mean /= total
    spread[0] += mean * (1.0 - mean)
    spread[1] += reward * (1.0 - reward)


@njit
def update_changed(born, mass, ratio, silent, shares, changed):
    """How probable each hypothesis finds it that its change was one of each arm."""
    for k in range(born.shape[0]):
        total = 0.0
        for g in range(mass.shape[1]):
            total += mass[k, g]
        for i in range(changed.shape[1]):
            changed[k, i] = 0.0
        if total == 0.0 or born[k] == 0:
            continue
        for g in range(mass.shape[1]):
            share = mass[k, g] / total
            if share == 0.0:
                continue
            if g == 0:
                for i in range(changed.shape[1]):
                    changed[k, i] += share * changed_probability(silent[k, i], ratio[k, i])
            else:
                for i in range(changed.shape[1]):
                    changed[k, i] += share * changed_probability(shares[g], ratio[k, i])


@njit
def note_change(born, mass, noticed):
    """Count a change once it is all but certain, hypotheses of neighbouring rounds together; update its date."""
    date, most = 0, 0.0
    for k in range(born.shape[0]):
        total = mass[k].sum()
        if born[k] > 0 and total > most:
            date, most = born[k], total
    near = 0.0
    for k in range(born.shape[0]):
        if born[k] > 0 and abs(born[k] - date) <= SAME_CHANGE:
            near += mass[k].sum()
    if near > CERTAIN:
        if noticed[0] == 0 or date > noticed[1] + SAME_CHANGE:
            noticed[0] += 1
            noticed[1] = date
        elif date >= noticed[1] - SAME_CHANGE:
            noticed[1] = date


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
        boolean[:],
        float64[:],
        int64,
        float64[:],
        float64[:],
        float64,
        float64,
        boolean,
        boolean[:],
    ),
    "(k),(k,g),(k,n,t),(k,n,t),(k,n),(k,n),(k,n),(n),(o),(t),(t),(n),(n),(),(g),(g),(),(),()->()",
    writes=("born", "mass", "kept", "fresh", "ratio", "silent", "changed", "seen", "latest", "noticed", "spread"),
)
def switching_arrival(
    born,
    mass,
    kept,
    fresh,
    ratio,
    silent,
    changed,
    seen,
    latest,
    noticed,
    spread,
    x,
    reward,
    played_at,
    shares,
    prior,
    hazard,
    idle_hazard,
    arrived,
    taken,
):
    """Weigh all hypotheses by the rewards of a round, whenever it arrives."""
    taken[0] = arrived
    if not arrived:
        return
    precision = precision_of(spread)
    for i in range(x.shape[0]):
        if x[i]:
            note_spread(mass, kept, fresh, changed, i, reward[i], spread)
    if played_at > latest[0]:
        if latest[0] > 0:
            elapsed = played_at - latest[0]
            open_hypothesis(
                born, mass, kept, fresh, ratio, silent, changed, seen, x, played_at, elapsed, hazard, idle_hazard, prior
            )
        latest[0] = played_at
    for i in range(x.shape[0]):
        if x[i]:
            weigh_reward(born, mass, kept, fresh, ratio, silent, shares, i, reward[i], played_at, precision)
            seen[i] = max(seen[i], played_at)
    update_changed(born, mass, ratio, silent, shares, changed)
    note_change(born, mass, noticed)
