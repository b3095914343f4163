"""Effects that switch and are seen through y alone: the filter of each arm's own effect.

What an arm gives by itself is beta = own - a'o, where `own` and `o` are observed and `a` is the present estimate of the
arm's structural equation. A law keeps weighted sums of the vectors (o, own) instead of sums of beta, so that everything
learned follows when the estimate of the equation moves. The law of an arm "since round r" is the difference between its
sums now and its sums at r: a new observation changes one vector for each arm, not one for each hypothesis.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.compiling import gufunc

LEAST_RATIO: Final = 1e-30  # bounds of a likelihood ratio: beyond them the question is settled anyway
MOST_RATIO: Final = 1e30
MOST_ALONE: Final = 0.4  # upper bound on the probability that an idle arm changed alone, if there was no shared change
CERTAIN: Final = 0.99  # a change counts as detected from this probability on
SAME_CHANGE: Final = 20  # hypotheses that differ by at most so many rounds are about the same change
LEAST_NOISE: Final = 1e-4  # variance of an observed effect, in squared units of the range
NEGLIGIBLE: Final = 1e-3  # a part of a mixture less probable than this adds to its mean only
REMOTE: Final = 1e-6  # under a less probable hypothesis the uncertainty of the graph is left out


@njit(inline="always")
def changed_probability(prior, ratio):
    """Posterior probability of a change, from its prior probability and its likelihood ratio."""
    return prior * ratio / (prior * ratio + (1.0 - prior))  # a prior of 1 gives 1, however small the ratio


@njit
def normalise(mass):
    total = mass.sum()
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] /= total
            if mass[k, g] < 1e-200:
                mass[k, g] = 0.0


@njit(inline="always")
def mean_unchanged(k, i, base_mean, base_weight, total, total_at, weight, weight_at):
    """The mean of an arm that did not change at the round of hypothesis k."""
    gained = weight[i] - weight_at[k, i]
    return (base_weight[k, i] * base_mean[k, i] + total[i] - total_at[k, i]) / (base_weight[k, i] + gained)


@njit(inline="always")
def mean_since(k, i, total, total_at, weight, weight_at, prior_mean, prior_weight):
    """The mean of an arm that changed at the round of hypothesis k."""
    gained = weight[i] - weight_at[k, i]
    return (prior_weight * prior_mean + total[i] - total_at[k, i]) / (prior_weight + gained)


@njit
def mixture_means(
    mass, base_mean, base_weight, total, total_at, weight, weight_at, changed, prior_mean, prior_weight, means
):
    """The expected own effect of each arm, over all hypotheses."""
    for i in range(means.shape[0]):
        means[i] = 0.0
    for k in range(mass.shape[0]):
        p = mass[k].sum()
        if p > 0.0:
            for i in range(means.shape[0]):
                stayed = mean_unchanged(k, i, base_mean, base_weight, total, total_at, weight, weight_at)
                fresh = mean_since(k, i, total, total_at, weight, weight_at, prior_mean, prior_weight)
                means[i] += p * (stayed + changed[k, i] * (fresh - stayed))


@njit
def expected_outcomes(x, dose, context, coefficients, total_effects, means, p, q, effects, yhat):
    """E[y | decision, context, past] by the present estimates, and the own effects of a unit dose."""
    n = x.shape[0]
    own = np.zeros(n)
    for i in range(n):
        for c in range(p):
            own[i] += coefficients[i, n + c] * context[c]
        effects[i] = means[i]
        for c in range(q):
            effects[i] += coefficients[i, n + p + c] * context[1 + c]
        if x[i]:
            own[i] += dose[i] * effects[i]
    for i in range(n):
        yhat[i] = 0.0
        for j in range(n):
            yhat[i] += total_effects[i, j] * own[j]


@njit
def law_vector(k, i, unchanged, base, base_weight, sums, sums_at, weight, weight_at, prior_weight, vector):
    """The average observation under a law (prior observations count as zeros); returns the law's weight."""
    gained = weight[i] - weight_at[k, i]
    of_base = base_weight[k, i] if unchanged else 0.0
    whole = gained + (of_base if unchanged else prior_weight)
    for j in range(vector.shape[0]):
        vector[j] = (of_base * base[k, i, j] + sums[i, j] - sums_at[k, i, j]) / whole
    return whole


@njit
def summarise_arm(
    i, mass, base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, weight, weight_at, changed,
    prior_mean, prior_weight, noise, vector, work,
):  # fmt: skip
    """The law that sums up all hypotheses for an arm: its average observation, prior share, mean and weight."""
    mean, square, share, kept = 0.0, 0.0, 0.0, 0.0
    vector[:] = 0.0
    for k in range(mass.shape[0]):
        p = mass[k].sum()
        if p <= 1e-12:
            continue
        gained = weight[i] - weight_at[k, i]
        for side in range(2):
            part = p * (changed[k, i] if side == 1 else 1.0 - changed[k, i])
            if part <= 1e-12:
                continue
            if side == 1:
                m = mean_since(k, i, total, total_at, weight, weight_at, prior_mean, prior_weight)
                strength, of_prior = prior_weight + gained, prior_weight
            else:
                m = mean_unchanged(k, i, base_mean, base_weight, total, total_at, weight, weight_at)
                strength, of_prior = base_weight[k, i] + gained, base_weight[k, i] * base_share[k, i]
            mean += part * m
            square += part * (m * m + noise / strength)
            if part > NEGLIGIBLE:
                law_vector(k, i, side == 0, base, base_weight, sums, sums_at, weight, weight_at, prior_weight, work)
                kept += part
                share += part * of_prior / strength
                for j in range(vector.shape[0]):
                    vector[j] += part * work[j]
    for j in range(vector.shape[0]):
        vector[j] /= kept
    return mean, max(noise / max(square - mean * mean, 1e-12), 0.5), share / kept


@njit
def open_hypothesis(
    change_round, mass, base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, weight, weight_at,
    ratio, idle_prior, changed, seen, x, played_at, elapsed, hazard, idle_hazard, share_prior, coefficients,
    prior_mean, prior_weight, noise,
):  # fmt: skip
    """Add the hypothesis of a change just before `played_at`: of a share of the arms, or (type 0) of one idle arm."""
    slot, least = 0, math.inf
    for k in range(mass.shape[0]):
        t = mass[k].sum()
        if t < least:
            slot, least = k, t
    n, m = sums.shape
    mass[slot] = 0.0
    normalise(mass)
    total_idle = 0.0
    vector, work = np.empty(m), np.empty(m)
    for i in range(n):
        mean, strength, share = summarise_arm(
            i, mass, base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, weight, weight_at,
            changed, prior_mean, prior_weight, noise[i], vector, work,
        )  # fmt: skip
        base[slot, i] = vector
        base_share[slot, i] = share
        base_mean[slot, i] = mean
        base_weight[slot, i] = strength
        sums_at[slot, i] = sums[i]
        total_at[slot, i] = total[i]
        weight_at[slot, i] = weight[i]
        gap = played_at - seen[i]
        idle_prior[slot, i] = 1.0 - (1.0 - idle_hazard) ** gap if x[i] and gap > 0 else 0.0
        total_idle += idle_prior[slot, i]
        ratio[slot, i] = 1.0
        changed[slot, i] = 0.0
    for i in range(n):
        idle_prior[slot, i] /= max(total_idle, 1e-300)
    change_round[slot] = played_at
    shared = 1.0 - (1.0 - hazard) ** elapsed
    alone = min(total_idle, MOST_ALONE * (1.0 - shared))
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] *= 1.0 - shared - alone
    mass[slot, 0] = alone
    for g in range(1, mass.shape[1]):
        mass[slot, g] = shared * share_prior[g]


@njit
def graph_doubt(i, observed, vector, edge_variance, slope, rest_covariance):
    """Variance of a'(observed - vector) for the uncertain equation of arm i."""
    n, rest = edge_variance.shape[1], rest_covariance.shape[1]
    doubt = 0.0
    for j in range(n):
        if edge_variance[i, j] > 0.0:
            gap = observed[j] - vector[j]
            for c in range(rest):
                gap -= slope[i, c, j] * (observed[n + c] - vector[n + c])
            doubt += edge_variance[i, j] * gap * gap
    for c in range(rest):
        for b in range(rest):
            doubt += (observed[n + c] - vector[n + c]) * rest_covariance[i, c, b] * (observed[n + b] - vector[n + b])
    return max(doubt, 0.0)


@njit
def log_density(value, mean, variance):
    return -0.5 * math.log(variance) - 0.5 * (value - mean) ** 2 / variance


@njit
def weigh_effect(
    change_round, mass, base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, weight, weight_at,
    ratio, idle_prior, shares, i, observed, value, amount, variance, played_at, prior_mean, prior_weight, edge_variance,
    slope, rest_covariance,
):  # fmt: skip
    """Update every hypothesis with one observed effect of weight `amount` and noise `variance` / `amount`."""
    hypotheses, m = mass.shape[0], sums.shape[1]
    like_stayed, like_fresh = np.zeros(hypotheses), np.zeros(hypotheses)
    vector = np.empty(m)
    best = -math.inf
    for k in range(hypotheses):
        if change_round[k] > played_at:
            continue
        gained = weight[i] - weight_at[k, i]
        p = mass[k].sum()
        for side in range(2):
            doubt = 0.0
            if p > REMOTE:
                law_vector(k, i, side == 0, base, base_weight, sums, sums_at, weight, weight_at, prior_weight, vector)
                doubt = graph_doubt(i, observed, vector, edge_variance, slope, rest_covariance)
            if side == 0:
                mean = mean_unchanged(k, i, base_mean, base_weight, total, total_at, weight, weight_at)
                spread = variance * (1.0 / amount + 1.0 / (base_weight[k, i] + gained)) + doubt
                like_stayed[k] = log_density(value, mean, spread)
            else:
                mean = mean_since(k, i, total, total_at, weight, weight_at, prior_mean, prior_weight)
                spread = variance * (1.0 / amount + 1.0 / (prior_weight + gained)) + doubt
                like_fresh[k] = log_density(value, mean, spread)
        if p > 0.0:
            best = max(best, max(like_stayed[k], like_fresh[k]))
    for j in range(m):
        sums[i, j] += amount * observed[j]
    total[i] += amount * value
    weight[i] += amount
    before, after = 0.0, 0.0
    for k in range(hypotheses):
        if change_round[k] > played_at:  # an observation from before the change
            grown = base_weight[k, i] + amount
            for j in range(m):
                base[k, i, j] += amount / grown * (observed[j] - base[k, i, j])
                sums_at[k, i, j] += amount * observed[j]
            base_share[k, i] *= base_weight[k, i] / grown
            base_mean[k, i] += amount / grown * (value - base_mean[k, i])
            base_weight[k, i] = grown
            total_at[k, i] += amount * value
            weight_at[k, i] += amount
            continue
        stayed = math.exp(min(max(like_stayed[k] - best, -600.0), 0.0))  # above 0 only if impossible (no mass)
        fresh = math.exp(min(max(like_fresh[k] - best, -600.0), 0.0))
        for g in range(mass.shape[1]):
            if mass[k, g] == 0.0:
                continue
            c = 0.0
            if change_round[k] > 0:
                c = changed_probability(idle_prior[k, i] if g == 0 else shares[g], ratio[k, i])
            before += mass[k, g]
            mass[k, g] *= max(c * fresh + (1.0 - c) * stayed, 1e-250)
            after += mass[k, g]
        gap = min(max(like_fresh[k] - like_stayed[k], -60.0), 60.0)
        ratio[k, i] = min(max(ratio[k, i] * math.exp(gap), LEAST_RATIO), MOST_RATIO)
    if after > 0.0:  # an observation from before a change has the likelihood that the other hypotheses give it
        for k in range(hypotheses):
            if change_round[k] > played_at:
                mass[k] *= after / before
    normalise(mass)


@njit
def update_changed(change_round, mass, ratio, idle_prior, shares, changed):
    """The probability, under each hypothesis, that an arm took part in the change."""
    for k in range(change_round.shape[0]):
        whole = mass[k].sum()
        for i in range(changed.shape[1]):
            changed[k, i] = 0.0
        if whole == 0.0 or change_round[k] == 0:
            continue
        for g in range(mass.shape[1]):
            share = mass[k, g] / whole
            if share > 0.0:
                for i in range(changed.shape[1]):
                    prior = idle_prior[k, i] if g == 0 else shares[g]
                    changed[k, i] += share * changed_probability(prior, ratio[k, i])


@njit
def note_change(change_round, mass, detected):
    """Count a change once it is nearly certain, summing over hypotheses of neighbouring rounds; update its round."""
    date, most, near = 0, 0.0, 0.0
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and mass[k].sum() > most:
            date, most = change_round[k], mass[k].sum()
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and abs(change_round[k] - date) <= SAME_CHANGE:
            near += mass[k].sum()
    if near > CERTAIN:
        if detected[0] == 0 or date > detected[1] + SAME_CHANGE:
            detected[0] += 1
            detected[1] = date
        elif date >= detected[1] - SAME_CHANGE:
            detected[1] = date


@njit
def average_since(
    i,
    change_round,
    mass,
    base,
    base_share,
    base_weight,
    sums,
    sums_at,
    weight,
    weight_at,
    changed,
    prior_weight,
    centre,
):
    """The average observation of an arm since it last changed, as far as known; returns how many there are."""
    k, most = 0, -1.0
    for h in range(mass.shape[0]):
        if mass[h].sum() > most:
            k, most = h, mass[h].sum()
    unchanged = not changed[k, i] > 0.5
    whole = law_vector(k, i, unchanged, base, base_weight, sums, sums_at, weight, weight_at, prior_weight, centre)
    of_prior = base_weight[k, i] * base_share[k, i] if unchanged else prior_weight
    count = whole - of_prior
    if not count > 1e-9 * whole:
        return 0.0
    for j in range(centre.shape[0]):
        centre[j] *= whole / count
    return count


@njit(inline="always")
def missing_variance(i, known, coefficients, edge_variance, noise):
    """Variance that expected outcomes in place of missing ones add to an observed effect."""
    more = 0.0
    for j in range(known.shape[0]):
        if not known[j] and j != i:
            more += (coefficients[i, j] ** 2 + edge_variance[i, j]) * noise[j]
    return more


@gufunc(
    (
        int64[::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1],
        float64[:, ::1], float64[:, :, ::1], float64[::1], float64[:, ::1], float64[::1], float64[:, ::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1], int64[::1],
        float64[:, :], float64[:, :], float64[:, :, :], float64[:, :, :], float64[:, :], float64[:], float64[:, :],
        boolean[:], float64[:], float64[:], float64[:], float64[:], boolean[:], float64[:], int64, float64[:],
        float64[:], float64[:], float64[:], int64, int64, boolean,
        float64[:], float64[:], float64[:, :], float64[:],
    ),
    "(k),(k,g),(k,n,m),(k,n),(k,n),(k,n),(n,m),(k,n,m),(n),(k,n),(n),(k,n),(k,n),(k,n),(k,n),(n),(o),(t),"
    "(n,d),(n,n),(n,r,n),(n,r,r),(n,t),(t),(n,n),(n),(n),(n),(n),(n),(n),(c),(),(t),(g),(g),(t),(),(),()->(n),(n),(n,m),(n)",
    writes=(
        "change_round", "mass", "base", "base_share", "base_mean", "base_weight", "sums", "sums_at", "total",
        "total_at", "weight", "weight_at", "ratio", "idle_prior", "changed", "seen", "latest", "detected",
    ),
)  # fmt: skip
def instrumental_arrival(
    change_round, mass, base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, weight, weight_at,
    ratio, idle_prior, changed, seen, latest, detected,
    coefficients, edge_variance, slope, rest_covariance, noise, pooled, total_effects,
    x, dose, z, y, shock, fresh, context, played_at, prior,
    shares, share_prior, hazards, p, q, arrived,
    yhat, effects, centre, count,
):  # fmt: skip
    """Update all hypotheses with the outcomes of a round that are fresh, however late they arrive.

    Returns what the structural equations are learned from: the outcomes that were expected, and for each chosen arm
    the average observation since its last change before this round, with the weight of that average.
    """
    n, m = sums.shape
    d = n + p + q
    yhat[:] = 0.0
    effects[:] = 0.0
    centre[:] = 0.0
    count[:] = 0.0
    if not arrived:
        return
    variances, means = np.empty(n), np.empty(n)
    for i in range(n):
        variances[i] = max(max(pooled[0], noise[i, 1]), LEAST_NOISE * pooled[1] ** 2)
    prior_mean, prior_weight = prior[0] * pooled[1], max(pooled[0] / (prior[1] * pooled[1]) ** 2, 1e-6)
    mixture_means(
        mass, base_mean, base_weight, total, total_at, weight, weight_at, changed, prior_mean, prior_weight, means
    )
    expected_outcomes(x, dose, context, coefficients, total_effects, means, p, q, effects, yhat)
    known = np.empty(n, np.bool_)
    any_fresh = False
    for i in range(n):
        known[i] = not math.isnan(y[i])
        if x[i]:
            any_fresh |= fresh[i] and (known[i] or not math.isnan(z[i]))
            count[i] = average_since(
                i, change_round, mass, base, base_share, base_weight, sums, sums_at, weight, weight_at, changed,
                prior_weight, centre[i],
            )  # fmt: skip
    if any_fresh and played_at > latest[0]:
        if latest[0] > 0:
            open_hypothesis(
                change_round, mass, base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, weight,
                weight_at, ratio, idle_prior, changed, seen, x, played_at, played_at - latest[0], hazards[0],
                hazards[1], share_prior, coefficients, prior_mean, prior_weight, variances,
            )  # fmt: skip
        latest[0] = played_at
    observed = np.empty(m)
    for i in range(n):
        rewarded = not math.isnan(z[i])
        if not (x[i] and fresh[i] and (rewarded or known[i])):
            continue
        amount = dose[i] ** 2
        observed[:] = 0.0
        for c in range(q):
            observed[n + p + c] = context[1 + c]
        for j in range(n):
            observed[d + 1 + j] = dose[j] / dose[i] if x[j] else 0.0
        if rewarded:
            observed[d] = z[i] / dose[i]
        else:
            observed[d] = (y[i] - shock[i]) / dose[i]
            for j in range(n):
                if j != i:
                    observed[j] = (y[j] if known[j] else yhat[j]) / dose[i]
            for c in range(p):
                observed[n + c] = context[c] / dose[i]
            amount *= variances[i] / (variances[i] + missing_variance(i, known, coefficients, edge_variance, variances))
        value = observed[d]
        for j in range(d):
            value -= coefficients[i, j] * observed[j]
        weigh_effect(
            change_round, mass, base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, weight,
            weight_at, ratio, idle_prior, shares, i, observed, value, amount, variances[i], played_at, prior_mean,
            prior_weight, edge_variance, slope, rest_covariance,
        )  # fmt: skip
        seen[i] = max(seen[i], played_at)
    update_changed(change_round, mass, ratio, idle_prior, shares, changed)
    note_change(change_round, mass, detected)
