"""The filter of each arm's own effect, which switches and is seen through y alone, and the value of information.

What an arm gives by itself is beta = own - a'o, where `own` and `o` are observed and `a` is the present estimate of the
arm's structural equation. A law keeps weighted sums of the vectors (o, own) instead of sums of beta, so that everything
learned follows when the estimate of the equation moves. The law of an arm "since round r" is the difference between its
sums now and its sums at r: a new observation changes one vector for each arm, not one for each hypothesis.

Functions of one learner: s is its `InstrumentalState`, room its `Room`.
"""

import math
from typing import Any, Final

from spillover.core import inner
from spillover.core.compiled import called
from spillover.kernels.switching import note_change
from spillover.kernels.switching_scores import normal_excess
from spillover.policies.changes import rivals
from spillover.policies.switching_model import HAZARD, IDLE_HAZARD, SHARE_PRIOR
from spillover.policies.switching_state import SHARES

CHANGED_ARMS: Final = tuple(SHARES.tolist())  # the share of arms that a change affects
CHANGED_ARMS_PRIOR: Final = tuple(SHARE_PRIOR.tolist())
LEAST_RATIO: Final = 1e-30  # bounds of a likelihood ratio: beyond them the question is settled anyway
MOST_RATIO: Final = 1e30
MOST_ALONE: Final = 0.4  # upper bound on the probability that an idle arm changed alone, if there was no shared change
LEAST_NOISE: Final = 1e-4  # variance of an observed effect, in squared units of the range
MINOR: Final = 1e-3  # a part of a mixture less probable than this adds to its mean only
REMOTE: Final = 1e-6  # under a less probable hypothesis the uncertainty of the graph is left out
HORIZON: Final = 50.0  # rounds over which a better arm pays off
NEGLIGIBLE: Final = 1e-6  # hypotheses less probable than this do not affect a decision
LASTING: Final = 4.0  # the variance of the weights counts so many times: what is learned of the graph lasts longer
NO_WEIGHT: Final = 1e-9  # an arm with a smaller total effect per unit is not worth exploring


@inner
def sizes(s: Any) -> Any:
    """The number of coefficients of a baseline, p, and of an own effect, q."""
    rest = s.equations.slope.shape[1]
    p = 1 if rest == 1 else 1 + s.context.shape[0]
    return p, rest - p


@inner
def prior_law(s: Any) -> Any:
    """The mean of an own effect before any observation, and the number of observations that it is worth."""
    pooled = s.equations.pooled
    return s.prior[0] * pooled[1], max(pooled[0] / (s.prior[1] * pooled[1]) ** 2, 1e-6)


@inner
def effect_variance(equations: Any, i: Any) -> Any:
    """The variance of an observed effect of a unit dose."""
    pooled = equations.pooled
    return max(max(pooled[0], equations.noise[i, 1]), LEAST_NOISE * pooled[1] ** 2)


@inner
def probability_of(mass: Any, k: Any) -> Any:
    """The probability of a hypothesis, whatever share of the arms changed."""
    whole = 0.0
    for g in range(mass.shape[1]):
        whole += mass[k, g]
    return whole


@inner
def changed_probability(prior: Any, ratio: Any) -> Any:
    """Posterior probability of a change, from its prior probability and its likelihood ratio."""
    return prior * ratio / (prior * ratio + (1.0 - prior))  # a prior of 1 gives 1, however small the ratio


@inner
def normalise(mass: Any) -> None:
    total = 0.0
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            total += mass[k, g]
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] /= total
            if mass[k, g] < 1e-200:
                mass[k, g] = 0.0


@inner
def expect_effects(belief: Any, prior_mean: Any) -> None:
    """Before any outcome, of one learner or of a batch: nothing has changed, and all own effects have their prior."""
    belief.change_round[...] = 0
    belief.mass[...] = 0.0
    belief.mass[..., 0, 0] = 1.0
    belief.base[...] = 0.0
    belief.base_share[...] = 1.0
    belief.base_mean[...] = prior_mean
    belief.base_weight[...] = 2.0
    belief.sums[...] = 0.0
    belief.sums_at[...] = 0.0
    belief.total[...] = 0.0
    belief.total_at[...] = 0.0
    belief.weight[...] = 0.0
    belief.weight_at[...] = 0.0
    belief.ratio[...] = 1.0
    belief.idle_prior[...] = 0.0
    belief.changed[...] = 0.0


@inner
def mean_unchanged(belief: Any, k: Any, i: Any) -> Any:
    """The mean of an arm that did not change at the round of hypothesis k, and the observations it is worth."""
    known = belief.base_weight[k, i]
    weight = known + (belief.weight[i] - belief.weight_at[k, i])
    return (known * belief.base_mean[k, i] + belief.total[i] - belief.total_at[k, i]) / weight, weight


@inner
def mean_since(belief: Any, k: Any, i: Any, prior_mean: Any, prior_weight: Any) -> Any:
    """The same of an arm that changed at the round of hypothesis k."""
    weight = prior_weight + (belief.weight[i] - belief.weight_at[k, i])
    return (prior_weight * prior_mean + belief.total[i] - belief.total_at[k, i]) / weight, weight


@inner
def mixture_means(s: Any, means: Any) -> None:
    """The expected own effect of each arm, over all hypotheses."""
    belief = s.belief
    prior_mean, prior_weight = prior_law(s)
    for i in range(means.shape[0]):
        means[i] = 0.0
    for k in range(belief.mass.shape[0]):
        p = probability_of(belief.mass, k)
        if p > 0.0:
            for i in range(means.shape[0]):
                stayed = mean_unchanged(belief, k, i)[0]
                fresh = mean_since(belief, k, i, prior_mean, prior_weight)[0]
                means[i] += p * (stayed + belief.changed[k, i] * (fresh - stayed))


@inner
def expect_outcomes(s: Any, room: Any, given: Any) -> None:
    """room.yhat: E[y | decision, context, past] by the present estimates; room.effects: own effects of a unit dose."""
    n, (p, q) = s.n_arms, sizes(s)
    coefficients, total_effects, own = s.equations.coefficients, s.equations.total_effects, room.spare
    mixture_means(s, room.effects)
    for i in range(n):
        own[i] = 0.0
        for c in range(p):
            own[i] += coefficients[i, n + c] * given.context[c]
        for c in range(q):
            room.effects[i] += coefficients[i, n + p + c] * given.context[1 + c]
        if given.x[i]:
            own[i] += given.dose[i] * room.effects[i]
    for i in range(n):
        room.yhat[i] = 0.0
        for j in range(n):
            room.yhat[i] += total_effects[i, j] * own[j]


@inner
def law_vector(belief: Any, k: Any, i: Any, unchanged: Any, prior_weight: Any, vector: Any) -> Any:
    """The average observation under a law (prior observations count as zeros), as far as `vector` goes; its weight."""
    gained = belief.weight[i] - belief.weight_at[k, i]
    of_base = belief.base_weight[k, i] if unchanged else 0.0
    whole = gained + (of_base if unchanged else prior_weight)
    base, sums, sums_at = belief.base[k, i], belief.sums[i], belief.sums_at[k, i]
    for j in range(vector.shape[0]):
        vector[j] = (of_base * base[j] + sums[j] - sums_at[j]) / whole
    return whole


@called
def summarise_arm(s: Any, i: Any, noise: Any, vector: Any, work: Any) -> Any:
    """The law that sums up all hypotheses for an arm: its average observation, prior share, mean and weight."""
    belief, (prior_mean, prior_weight) = s.belief, prior_law(s)
    mean, square, share, kept = 0.0, 0.0, 0.0, 0.0
    for j in range(vector.shape[0]):
        vector[j] = 0.0
    for k in range(belief.mass.shape[0]):
        p = probability_of(belief.mass, k)
        if p <= 1e-12:
            continue
        for side in range(2):
            part = p * (belief.changed[k, i] if side == 1 else 1.0 - belief.changed[k, i])
            if part <= 1e-12:
                continue
            if side == 1:
                m, strength = mean_since(belief, k, i, prior_mean, prior_weight)
                of_prior = prior_weight
            else:
                m, strength = mean_unchanged(belief, k, i)
                of_prior = belief.base_weight[k, i] * belief.base_share[k, i]
            mean += part * m
            square += part * (m * m + noise / strength)
            if part > MINOR:
                law_vector(belief, k, i, side == 0, prior_weight, work)
                kept += part
                share += part * of_prior / strength
                for j in range(vector.shape[0]):
                    vector[j] += part * work[j]
    for j in range(vector.shape[0]):
        vector[j] /= kept
    return mean, max(noise / max(square - mean * mean, 1e-12), 0.5), share / kept


@inner
def open_hypothesis(s: Any, room: Any, x: Any, played_at: Any) -> None:
    """Add the hypothesis of a change just before `played_at`: of a share of the arms, or (type 0) of one idle arm."""
    belief, mass, n = s.belief, s.belief.mass, s.n_arms
    slot, least = 0, math.inf
    for k in range(mass.shape[0]):
        t = probability_of(mass, k)
        if t < least:
            slot, least = k, t
    for g in range(mass.shape[1]):
        mass[slot, g] = 0.0
    normalise(mass)
    total_idle = 0.0
    for i in range(n):
        vector = room.observed
        mean, strength, share = summarise_arm(s, i, effect_variance(s.equations, i), vector, room.work)
        for j in range(vector.shape[0]):
            belief.base[slot, i, j], belief.sums_at[slot, i, j] = vector[j], belief.sums[i, j]
        belief.base_share[slot, i] = share
        belief.base_mean[slot, i] = mean
        belief.base_weight[slot, i] = strength
        belief.total_at[slot, i] = belief.total[i]
        belief.weight_at[slot, i] = belief.weight[i]
        gap = played_at - belief.seen[i]
        belief.idle_prior[slot, i] = 1.0 - (1.0 - IDLE_HAZARD) ** gap if x[i] and gap > 0 else 0.0
        total_idle += belief.idle_prior[slot, i]
        belief.ratio[slot, i] = 1.0
        belief.changed[slot, i] = 0.0
    for i in range(n):
        belief.idle_prior[slot, i] /= max(total_idle, 1e-300)
    belief.change_round[slot] = played_at
    shared = 1.0 - (1.0 - HAZARD) ** (played_at - belief.latest)
    alone = min(total_idle, MOST_ALONE * (1.0 - shared))
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] *= 1.0 - shared - alone
    mass[slot, 0] = alone
    for g in range(1, mass.shape[1]):
        mass[slot, g] = shared * CHANGED_ARMS_PRIOR[g]


@inner
def graph_doubt(equations: Any, i: Any, gaps: Any) -> Any:
    """Variance of a'gaps for the uncertain coefficients a of the equation of arm i."""
    edge_variance, slope = equations.edge_variance[i], equations.slope[i]
    n, rest, spread = edge_variance.shape[0], slope.shape[0], equations.rest_covariance[i]
    doubt = 0.0
    for j in range(n):
        if edge_variance[j] > 0.0:
            gap = gaps[j]
            for c in range(rest):
                gap -= slope[c, j] * gaps[n + c]
            doubt += edge_variance[j] * gap * gap
    for c in range(rest):
        for b in range(rest):
            doubt += gaps[n + c] * spread[c, b] * gaps[n + b]
    return max(doubt, 0.0)


@inner
def log_density(value: Any, mean: Any, variance: Any) -> Any:
    return -0.5 * math.log(variance) - 0.5 * (value - mean) ** 2 / variance


@inner
def doubt_of_law(s: Any, k: Any, i: Any, unchanged: Any, prior_weight: Any, observed: Any, gaps: Any) -> Any:
    """Variance of what an observation differs from a law by, due to the uncertain equation."""
    law_vector(s.belief, k, i, unchanged, prior_weight, gaps)
    for j in range(gaps.shape[0]):
        gaps[j] = observed[j] - gaps[j]
    return graph_doubt(s.equations, i, gaps)


@called
def weigh_effect(s: Any, room: Any, i: Any, value: Any, amount: Any, variance: Any, played_at: Any) -> None:
    """Update every hypothesis with one observed effect of weight `amount` and noise `variance` / `amount`."""
    belief, mass, change_round = s.belief, s.belief.mass, s.belief.change_round
    stayed, fresh, observed, best = room.stayed, room.fresh, room.observed, -math.inf
    prior_mean, prior_weight = prior_law(s)
    for k in range(mass.shape[0]):
        if change_round[k] > played_at:
            continue
        p, doubt = probability_of(mass, k), 0.0
        if p > REMOTE:
            doubt = doubt_of_law(s, k, i, True, prior_weight, observed, room.gaps)
        mean, weight = mean_unchanged(belief, k, i)
        stayed[k] = log_density(value, mean, variance * (1.0 / amount + 1.0 / weight) + doubt)
        if p > REMOTE:
            doubt = doubt_of_law(s, k, i, False, prior_weight, observed, room.gaps)
        mean, weight = mean_since(belief, k, i, prior_mean, prior_weight)
        fresh[k] = log_density(value, mean, variance * (1.0 / amount + 1.0 / weight) + doubt)
        if p > 0.0:
            best = max(best, max(stayed[k], fresh[k]))
    for j in range(observed.shape[0]):
        belief.sums[i, j] += amount * observed[j]
    belief.total[i] += amount * value
    belief.weight[i] += amount
    before, after = 0.0, 0.0
    for k in range(mass.shape[0]):
        if change_round[k] > played_at:
            take_in_base(belief, k, i, observed, value, amount)
            continue
        like_stayed = math.exp(min(max(stayed[k] - best, -600.0), 0.0))  # above 0 only if impossible (no mass)
        like_fresh = math.exp(min(max(fresh[k] - best, -600.0), 0.0))
        for g in range(mass.shape[1]):
            if mass[k, g] == 0.0:
                continue
            c = 0.0
            if change_round[k] > 0:
                prior = belief.idle_prior[k, i] if g == 0 else CHANGED_ARMS[g]
                c = changed_probability(prior, belief.ratio[k, i])
            before += mass[k, g]
            mass[k, g] *= max(c * like_fresh + (1.0 - c) * like_stayed, 1e-250)
            after += mass[k, g]
        gap = min(max(fresh[k] - stayed[k], -60.0), 60.0)
        belief.ratio[k, i] = min(max(belief.ratio[k, i] * math.exp(gap), LEAST_RATIO), MOST_RATIO)
    if after > 0.0:  # an observation from before a change has the likelihood that the other hypotheses give it
        for k in range(mass.shape[0]):
            if change_round[k] > played_at:
                for g in range(mass.shape[1]):
                    mass[k, g] *= after / before
    normalise(mass)


@inner
def take_in_base(belief: Any, k: Any, i: Any, observed: Any, value: Any, amount: Any) -> None:
    """Add an observation from before the change of hypothesis k."""
    grown = belief.base_weight[k, i] + amount
    for j in range(observed.shape[0]):
        belief.base[k, i, j] += amount / grown * (observed[j] - belief.base[k, i, j])
        belief.sums_at[k, i, j] += amount * observed[j]
    belief.base_share[k, i] *= belief.base_weight[k, i] / grown
    belief.base_mean[k, i] += amount / grown * (value - belief.base_mean[k, i])
    belief.base_weight[k, i] = grown
    belief.total_at[k, i] += amount * value
    belief.weight_at[k, i] += amount


@inner
def update_changed(belief: Any) -> None:
    """The probability, under each hypothesis, that an arm took part in the change."""
    mass, changed = belief.mass, belief.changed
    for k in range(mass.shape[0]):
        whole = probability_of(mass, k)
        for i in range(changed.shape[1]):
            changed[k, i] = 0.0
        if whole == 0.0 or belief.change_round[k] == 0:
            continue
        for g in range(mass.shape[1]):
            share = mass[k, g] / whole
            if share > 0.0:
                for i in range(changed.shape[1]):
                    prior = belief.idle_prior[k, i] if g == 0 else CHANGED_ARMS[g]
                    changed[k, i] += share * changed_probability(prior, belief.ratio[k, i])


@inner
def average_since(belief: Any, i: Any, prior_weight: Any, centre: Any) -> Any:
    """The average observation of an arm since it last changed, as far as known; returns how many there are."""
    k, most = 0, -1.0
    for h in range(belief.mass.shape[0]):
        p = probability_of(belief.mass, h)
        if p > most:
            k, most = h, p
    unchanged = not belief.changed[k, i] > 0.5
    whole = law_vector(belief, k, i, unchanged, prior_weight, centre)
    count = whole - (belief.base_weight[k, i] * belief.base_share[k, i] if unchanged else prior_weight)
    if not count > 1e-9 * whole:
        return 0.0
    for j in range(centre.shape[0]):
        centre[j] *= whole / count
    return count


@inner
def missing_variance(equations: Any, i: Any, y: Any) -> Any:
    """Variance that expected outcomes in place of missing ones add to an observed effect."""
    more = 0.0
    for j in range(y.shape[0]):
        if math.isnan(y[j]) and j != i:
            doubt = equations.coefficients[i, j] ** 2 + equations.edge_variance[i, j]
            more += doubt * effect_variance(equations, j)
    return more


@inner
def learn_effects(s: Any, room: Any, given: Any, played_at: Any) -> None:
    """Update all hypotheses with the outcomes of a round that are fresh, however late they arrive.

    Leaves in the room what the structural equations are learned from: the outcomes that were expected, and for each
    chosen arm the average observation since its last change before this round, with the weight of that average.
    """
    belief, equations, x, y, z = s.belief, s.equations, given.x, given.y, given.z
    n, d, (p, q), news = s.n_arms, equations.coefficients.shape[1], sizes(s), False
    prior_weight = prior_law(s)[1]
    expect_outcomes(s, room, given)
    for i in range(n):
        room.count[i] = 0.0
        for j in range(room.centre.shape[1]):
            room.centre[i, j] = 0.0
        if x[i]:
            news |= given.fresh[i] and not (math.isnan(y[i]) and math.isnan(z[i]))
            room.count[i] = average_since(belief, i, prior_weight, room.centre[i])
    if news and played_at > belief.latest:
        if belief.latest > 0:
            open_hypothesis(s, room, x, played_at)
        belief.latest = played_at
    observed = room.observed
    for i in range(n):
        rewarded = not math.isnan(z[i])
        if not (x[i] and given.fresh[i] and (rewarded or not math.isnan(y[i]))):
            continue
        dose, variance = given.dose[i], effect_variance(equations, i)
        amount = dose**2
        for j in range(n):
            observed[j], observed[d + 1 + j] = 0.0, given.dose[j] / dose if x[j] else 0.0
        for c in range(p):
            observed[n + c] = 0.0
        for c in range(q):
            observed[n + p + c] = given.context[1 + c]
        if rewarded:
            observed[d] = z[i] / dose
        else:
            observed[d] = (y[i] - room.shock[i]) / dose
            for j in range(n):
                if j != i:
                    observed[j] = (room.yhat[j] if math.isnan(y[j]) else y[j]) / dose
            for c in range(p):
                observed[n + c] = given.context[c] / dose
            amount *= variance / (variance + missing_variance(equations, i, y))
        value = observed[d]
        for j in range(d):
            value -= equations.coefficients[i, j] * observed[j]
        weigh_effect(s, room, i, value, amount, variance, played_at)
        belief.seen[i] = max(belief.seen[i], played_at)
    update_changed(belief)
    for k in range(belief.mass.shape[0]):
        room.stayed[k] = probability_of(belief.mass, k)
    note_change(belief.change_round, room.stayed, belief.detected)


@inner
def added_by_context(s: Any, shift: Any) -> None:
    """The part of the expected own effects that the context of the coming round adds."""
    n, (p, q) = s.n_arms, sizes(s)
    for i in range(n):
        shift[i] = 0.0
        for c in range(q):
            shift[i] += s.equations.coefficients[i, n + p + c] * s.context[c]


@inner
def idle_share(s: Any, i: Any) -> Any:
    """The probability that an arm changed unobserved since it was played last."""
    return 1.0 - (1.0 - IDLE_HAZARD) ** (s.rounds - s.last_pull[i])


@inner
def expected_effects(s: Any, shift: Any, mean: Any) -> None:
    """Expected own effects at the coming context."""
    mixture_means(s, mean)
    prior_mean = prior_law(s)[0]
    added_by_context(s, shift)
    for i in range(mean.shape[0]):
        idle = idle_share(s, i)
        mean[i] = (1.0 - idle) * mean[i] + idle * prior_mean + shift[i]


@inner
def shift_variance(s: Any, i: Any) -> Any:
    """The variance of what the context adds to an own effect."""
    equations, (p, q), found = s.equations, sizes(s), 0.0
    for c in range(q):
        for b in range(q):
            found += s.context[c] * equations.rest_covariance[i, p + c, p + b] * s.context[b]
    for j in range(s.n_arms):
        if q > 0 and equations.edge_variance[i, j] > 0.0:
            t = 0.0
            for c in range(q):
                t += equations.slope[i, p + c, j] * s.context[c]
            found += equations.edge_variance[i, j] * t * t
    return found


@called
def value_arms(s: Any, room: Any, mean: Any, index: Any, shift: Any) -> None:
    """Expected own effects at the coming context, the same plus the value of information over `HORIZON` rounds, and
    the part of the expected effects that the context adds.

    The bonus of an arm outside the s best is horizon E[(w m - threshold)+] / w, where the threshold is the effect of
    the s-th best. For an arm among the s best it is the expected loss from keeping it, horizon E[(threshold - w m)+] /
    w, with the effect of the next best arm as the threshold. Both weights w and own effects m are uncertain. The bonus
    is divided by (1 + pulls in flight)^2, because the outcomes of those pulls will arrive without another try.
    """
    belief, mass, weights, variances = s.belief, s.belief.mass, s.equations.weights, s.equations.weight_variance
    (prior_mean, prior_weight), n, squares = prior_law(s), s.n_arms, 0.0
    expected_effects(s, shift, mean)
    for i in range(n):
        index[i] = weights[i] * mean[i]
    threshold, runner_up = rivals(index, s.budget, room.spare)
    idle, signs, noise, of_shift = room.idle, room.signs, room.noise, room.of_shift
    levels, missed = room.levels, index
    for i in range(n):
        inside = index[i] >= threshold and index[i] > 0.0
        rival = runner_up if inside else threshold
        signs[i], idle[i] = -1.0 if inside else 1.0, idle_share(s, i)
        levels[i] = signs[i] * rival
        noise[i], of_shift[i] = effect_variance(s.equations, i), shift_variance(s, i)
        afresh, of_prior = prior_mean + shift[i], s.prior[1] * s.equations.pooled[1]
        deviation = math.sqrt(weights[i] ** 2 * of_prior**2 + LASTING * afresh**2 * variances[i])
        missed[i] = idle[i] * normal_excess(signs[i] * weights[i] * afresh - levels[i], deviation)
    for k in range(mass.shape[0]):
        room.stayed[k] = probability_of(mass, k)
        squares += room.stayed[k] ** 2
    for k in range(mass.shape[0]):
        sharpened = room.stayed[k] * (room.stayed[k] / squares)
        if sharpened < NEGLIGIBLE:  # squared: pulls in flight will settle an improbable change anyway
            continue
        for i in range(n):
            changed = belief.changed[k, i]
            m, strength = mean_unchanged(belief, k, i)
            part = sharpened * (1.0 - changed) * (1.0 - idle[i])
            found = part * excess_of(m + shift[i], strength, weights[i], variances[i], room, i)
            missed[i] += found if part >= NEGLIGIBLE else 0.0
            m, strength = mean_since(belief, k, i, prior_mean, prior_weight)
            part = sharpened * changed * (1.0 - idle[i])
            found = part * excess_of(m + shift[i], strength, weights[i], variances[i], room, i)
            missed[i] += found if part >= NEGLIGIBLE else 0.0
    for i in range(n):
        worth = abs(weights[i]) >= NO_WEIGHT
        bonus = HORIZON * missed[i] / (1.0 + s.in_flight[i]) ** 2 / weights[i] if worth else 0.0
        index[i] = mean[i] + bonus


@inner
def excess_of(m: Any, strength: Any, weight: Any, weight_variance: Any, room: Any, i: Any) -> Any:
    """What an arm with the own effect m, known by so many observations, may be better than its rival."""
    spread = weight**2 * (room.noise[i] / strength + room.of_shift[i]) + LASTING * m * m * weight_variance
    return normal_excess(room.signs[i] * weight * m - room.levels[i], math.sqrt(spread))
