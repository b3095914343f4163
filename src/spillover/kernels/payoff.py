"""Bayesian linear regression of the payoff on the decision, with effects that switch."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc

CERTAIN: Final = 0.99  # a change counts as detected from this probability on
SAME_CHANGE: Final = 20  # hypotheses that differ by at most so many rounds are about the same change
LEAST: Final = 1e-12  # probability of a hypothesis below which it does not count


@njit
def open_hypothesis(change_round, mass, mean, cover, prior_mean, prior_variance, variance, arms, played_at, chance):
    """Add the hypothesis that the effects changed just before `played_at`, in place of the least probable one.

    The baseline and what context does are kept, as the most probable hypothesis knows them.
    """
    slot, likely = 0, 0
    for k in range(mass.shape[0]):
        slot = k if mass[k] < mass[slot] else slot
        likely = k if mass[k] > mass[likely] else likely
    total = 0.0
    mass[slot] = 0.0
    for k in range(mass.shape[0]):
        total += mass[k]
    for k in range(mass.shape[0]):
        mass[k] *= (1.0 - chance) / total
    mass[slot], change_round[slot] = chance, played_at
    for a in range(prior_mean.shape[0]):
        mean[slot, a] = prior_mean[a] if a < arms else mean[likely, a]
        for b in range(prior_mean.shape[0]):
            cover[slot, a, b] = cover[likely, a, b] if a >= arms and b >= arms else 0.0
        if a < arms:
            cover[slot, a, a] = prior_variance[a] / variance


@njit
def learn_payoff(mean, cover, features, error, spread, reach):
    """One step of recursive least squares; reach = cover features, spread = 1 + features' reach."""
    for a in range(features.shape[0]):
        step = reach[a] / spread
        mean[a] += step * error
        for b in range(features.shape[0]):
            cover[a, b] -= step * reach[b]


@njit
def note_change(change_round, mass, detected):
    """Count a change once it is nearly certain, summing over hypotheses of neighbouring rounds; update its round."""
    date, most = 0, 0.0
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and mass[k] > most:
            date, most = change_round[k], mass[k]
    near = 0.0
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and abs(change_round[k] - date) <= SAME_CHANGE:
            near += mass[k]
    if near > CERTAIN:
        if detected[0] == 0 or date > detected[1] + SAME_CHANGE:
            detected[0] += 1
            detected[1] = date
        elif date >= detected[1] - SAME_CHANGE:
            detected[1] = date


@gufunc(
    (
        int64[::1],
        float64[::1],
        float64[:, ::1],
        float64[:, :, ::1],
        float64[::1],
        int64[::1],
        int64[::1],
        float64[:],
        boolean[:],
        float64,
        int64,
        float64[:],
        float64[:],
        float64,
        boolean,
        boolean[:],
    ),
    "(k),(k),(k,d),(k,d,d),(t),(o),(t),(d),(n),(),(),(d),(d),(),()->()",
    writes=("change_round", "mass", "mean", "cover", "noise", "latest", "detected"),
)
def payoff_arrival(
    change_round,
    mass,
    mean,
    cover,
    noise,
    latest,
    detected,
    features,
    arms,
    payoff,
    played_at,
    prior_mean,
    prior_variance,
    hazard,
    arrived,
    taken,
):
    """Update all hypotheses "the last change was at round r" with the payoff of a round, however late it arrives.

    noise: sums of squared standardised errors and of their number; covers are in units of the noise variance.
    """
    taken[0] = arrived
    if not arrived:
        return
    count, d = mass.shape[0], features.shape[0]
    variance = noise[0] / noise[1]
    if played_at > latest[0]:
        if latest[0] > 0:
            chance = 1.0 - (1.0 - hazard) ** (played_at - latest[0])
            open_hypothesis(
                change_round,
                mass,
                mean,
                cover,
                prior_mean,
                prior_variance,
                variance,
                arms.shape[0],
                played_at,
                chance,
            )
        latest[0] = played_at
    logs, squares, reach = np.zeros(count), np.zeros(count), np.empty(d)
    best = -math.inf
    for k in range(count):
        if change_round[k] > played_at or mass[k] < LEAST * LEAST:
            continue
        error, spread = payoff, 1.0
        for a in range(d):
            error -= mean[k, a] * features[a]
            reach[a] = 0.0
        for b in range(d):
            if features[b] != 0.0:
                for a in range(d):
                    reach[a] += cover[k, b, a] * features[b]
        for a in range(d):
            spread += features[a] * reach[a]
        squares[k] = error * error / spread
        logs[k] = -0.5 * math.log(spread) - 0.5 * squares[k] / variance
        best = max(best, logs[k])
        learn_payoff(mean[k], cover[k], features, error, spread, reach)
    before, after = 0.0, 0.0
    for k in range(count):
        if change_round[k] <= played_at and mass[k] >= LEAST * LEAST:
            before += mass[k]
            mass[k] *= math.exp(max(logs[k] - best, -700.0))
            after += mass[k]
    surprise, total = 0.0, 0.0
    for k in range(count):
        if change_round[k] > played_at:  # a payoff from before the change: the likelihood is that of the others
            mass[k] *= after / before if before > 0.0 else 1.0
        else:
            surprise += mass[k] * squares[k]
        total += mass[k]
    for k in range(count):
        mass[k] /= total
    if after > 0.0:
        noise[0] += surprise / after
        noise[1] += 1.0
    note_change(change_round, mass, detected)


@njit
def arm_effect(mean, cover, context, arm, n):
    """Mean and variance of what choosing an arm adds to the payoff in the given context."""
    m, v = mean[arm], cover[arm, arm]
    for q in range(context.shape[0]):
        a = (q + 1) * n + arm
        m += context[q] * mean[a]
        v += 2.0 * context[q] * cover[arm, a]
        for p in range(context.shape[0]):
            v += context[q] * context[p] * cover[a, (p + 1) * n + arm]
    return m, max(v, 0.0)


@njit(inline="always")
def expected_excess(mean, deviation, level):
    """E[(m - level)+] for a normal m."""
    if deviation <= 0.0:
        return max(mean - level, 0.0)
    z = (mean - level) / deviation
    if z < -6.0:
        return 0.0
    return deviation * (math.exp(-0.5 * z * z) * 0.3989422804014327 + 0.5 * z * math.erfc(-z * 0.7071067811865476))


@gufunc(
    (
        float64[:],
        float64[:, :],
        float64[:, :, :],
        float64[:],
        float64[:],
        float64[:],
        float64[:],
        int64[:],
        float64[:],
        int64,
        int64,
        float64,
        float64,
        float64[:],
        float64[:],
        float64[:],
    ),
    "(k),(k,d),(k,d,d),(t),(d),(d),(q),(n),(n),(),(),(),()->(n),(n),(n)",
)
def payoff_index(
    mass,
    mean,
    cover,
    noise,
    prior_mean,
    prior_variance,
    context,
    last_pull,
    in_flight,
    now,
    budget,
    idle_hazard,
    horizon,
    effect,
    deviation,
    index,
):
    """Expected effect of each arm on the payoff, its deviation, and the effect plus the value of information.

    The value is `horizon` times the expected improvement over the s-th best arm, for the s best the expected loss from
    keeping them, divided by (1 + pulls in flight)^2.
    """
    count, n = mass.shape[0], last_pull.shape[0]
    variance = noise[0] / noise[1]
    means, spreads = np.zeros((count, n)), np.zeros((count, n))
    squares = 0.0
    for k in range(count):
        squares += mass[k] * mass[k]
        if mass[k] >= LEAST:
            for i in range(n):
                means[k, i], spreads[k, i] = arm_effect(mean[k], cover[k], context, i, n)
    idle = np.empty(n)
    for i in range(n):
        idle[i] = 1.0 - (1.0 - idle_hazard) ** (now - last_pull[i])
        first, second, total = 0.0, 0.0, 0.0
        for k in range(count):
            if mass[k] >= LEAST:
                total += mass[k]
                first += mass[k] * means[k, i]
                second += mass[k] * (means[k, i] ** 2 + variance * spreads[k, i])
        first, second = first / total, second / total
        prior = prior_mean[i]
        second = (1.0 - idle[i]) * second + idle[i] * (prior * prior + prior_variance[i])
        effect[i] = (1.0 - idle[i]) * first + idle[i] * prior
        deviation[i] = math.sqrt(max(second - effect[i] ** 2, 0.0))
    ordered = np.sort(effect)
    threshold = max(ordered[n - budget], 0.0)
    runner_up = max(ordered[n - budget - 1], 0.0) if budget < n else 0.0
    for i in range(n):
        inside = effect[i] >= threshold and effect[i] > 0.0
        level = runner_up if inside else threshold
        sign = -1.0 if inside else 1.0
        own = math.sqrt(prior_variance[i])
        missed = idle[i] * expected_excess(sign * prior_mean[i], own, sign * level)
        for k in range(count):
            if mass[k] >= LEAST:
                share = mass[k] * mass[k] / squares
                own = math.sqrt(variance * spreads[k, i])
                missed += (1.0 - idle[i]) * share * expected_excess(sign * means[k, i], own, sign * level)
        index[i] = effect[i] + horizon * missed / (1.0 + in_flight[i]) ** 2
