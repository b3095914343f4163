"""Effects that switch and are seen through y alone: the filter of each arm's own effect.

What an arm gives by itself is beta = own - a'o, where `own` and `o` are observed and `a` is the present estimate of the
arm's structural equation. A law keeps weighted sums of the vectors (o, own) instead of sums of beta, so that everything
learned follows when the estimate of the equation moves. The law of an arm "since round r" is the difference between its
sums now and its sums at r: a new observation changes one vector for each arm, not one for each hypothesis.
"""

import math
from typing import Any, Final, NamedTuple

import numpy as np

from spillover.core import Lesson, inner
from spillover.core.compiled import rare
from spillover.kernels.outcomes import NEVER
from spillover.kernels.switching import MOST_ALONE, note_change
from spillover.policies.switching_state import HAZARD, IDLE_HAZARD, SHARE_PRIOR, SHARES, end_pull, fade_of, note_delay

LEAST_RATIO: Final = 1e-30  # bounds of a likelihood ratio: beyond them the question is settled anyway
MOST_RATIO: Final = 1e30
LEAST_NOISE: Final = 1e-4  # variance of an observed effect, in squared units of the range
NEGLIGIBLE: Final = 1e-3  # a part of a mixture less probable than this adds to its mean only
REMOTE: Final = 1e-6  # under a less probable hypothesis the uncertainty of the graph is left out

Y, Z, SHOCK, EXPECTED, EFFECT, COUNT = range(6)  # lines of `Room.lines`
KNOWN, FRESH = range(2)  # lines of `Room.flags`


class Room(NamedTuple):
    """What the functions tell each other about an outcome; they make other room to work in by themselves."""

    lines: Any  # (6, n): y and z in units of the range, shocks, expected y, own effects, observations since a change
    flags: Any  # (2, n): whether y is known, and whether y or z is news
    context: Any  # (1 + k,): 1 and the context
    centre: Any  # (n, m): the average observation of each chosen arm since its last change
    found: Any  # the lines of `InstrumentalSEM.index`


@inner
def completes_round(room: Room) -> Any:
    """Whether all outcomes of the round are known, some of them just now."""
    news, whole = False, True
    for i in range(room.flags.shape[1]):
        news |= room.flags[FRESH, i]
        whole &= room.flags[KNOWN, i]
    return news and whole


@inner
def sizes(s: Any) -> Any:
    """The number of coefficients of a baseline, p, and of an effect, q."""
    rest, columns = s.equations.slope.shape[1], s.context.shape[0]
    q = columns if rest == 1 + 2 * columns else 0
    return rest - q, q


@inner
def set_context(context: Any, full: Any) -> None:
    full[0] = 1.0
    for c in range(context.shape[0]):
        full[1 + c] = context[c]


@inner
def prior_of(s: Any) -> Any:
    """The prior mean of an own effect, and the observations that the prior is worth."""
    pooled, unit = s.equations.pooled[0], s.equations.pooled[1]
    return s.prior[0] * unit, max(pooled / (s.prior[1] * unit) ** 2, 1e-6)


@inner
def effect_noise(e: Any, i: Any) -> Any:
    """The variance of an observed effect."""
    return max(max(e.pooled[0], e.noise[i, 1]), LEAST_NOISE * e.pooled[1] ** 2)


@inner
def probability(mass: Any, k: Any) -> Any:
    """Of a hypothesis, over the shares of arms that changed."""
    total = 0.0
    for g in range(mass.shape[1]):
        total += mass[k, g]
    return total


@inner
def law(b: Any, k: Any, i: Any, moved: Any, prior_mean: Any, prior_weight: Any) -> Any:
    """An arm's own effect under hypothesis k, if the arm changed then (`moved`) or did not.

    Its mean, the observations that it is known by, and how many of these are the prior.
    """
    gained, added = b.weight[i] - b.weight_at[k, i], b.total[i] - b.total_at[k, i]
    if moved:
        return (prior_weight * prior_mean + added) / (prior_weight + gained), prior_weight + gained, prior_weight
    own = b.base_weight[k, i]
    return (own * b.base_mean[k, i] + added) / (own + gained), own + gained, own * b.base_share[k, i]


@rare
def average_of_law(b: Any, k: Any, i: Any, moved: Any, strength: Any, vector: Any) -> None:
    """The average observation under a law of so many observations; those of the prior count as zeros."""
    base, sums, sums_at = b.base[k, i], b.sums[i], b.sums_at[k, i]
    of_base = 0.0 if moved else b.base_weight[k, i]
    for j in range(vector.shape[0]):
        vector[j] = (of_base * base[j] + sums[j] - sums_at[j]) / strength


@inner
def expected_effect(s: Any, i: Any, prior_mean: Any, prior_weight: Any) -> Any:
    """The own effect of an arm, over all hypotheses."""
    b, found = s.belief, 0.0
    for k in range(b.mass.shape[0]):
        stayed, _, _ = law(b, k, i, False, prior_mean, prior_weight)
        fresh, _, _ = law(b, k, i, True, prior_mean, prior_weight)
        found += probability(b.mass, k) * (stayed + b.changed[k, i] * (fresh - stayed))
    return found


@rare
def take_in(s: Any, lesson: Lesson, room: Room) -> Any:
    """Take in what has arrived: outcomes in units of the range, compared with the first known one of each arm.

    So a constant that is added to all outcomes changes nothing but the baseline. Returns whether nothing more will
    arrive of this round.
    """
    unit, whole = s.reward_range[1] - s.reward_range[0], lesson.arrival.shape[0] == 0
    y, z, known, fresh = room.lines[Y], room.lines[Z], room.flags[KNOWN], room.flags[FRESH]
    closed, news = True, False
    for i in range(y.shape[0]):
        when = s.rounds if whole else lesson.arrival[i]
        closed &= when <= s.rounds or when == NEVER
        y[i], z[i] = math.nan, math.nan
        if when <= s.rounds:
            y[i], z[i] = lesson.y[i] / unit, lesson.z[i] / unit
        known[i] = not math.isnan(y[i])
        fresh[i] = when == s.rounds and (known[i] or not math.isnan(z[i]))
        news |= fresh[i]
        if known[i]:
            if s.reference[i, 1] == 0.0:
                s.reference[i, 0], s.reference[i, 1] = y[i], 1.0
            y[i] -= s.reference[i, 0]
    age = s.rounds - lesson.round
    remains = fade_of(s, s.belief.latest > 0) ** age
    for i in range(y.shape[0]):
        missing = not known[i] and math.isnan(z[i])
        if lesson.x[i] and (fresh[i] or (missing and closed)):
            end_pull(s, i, remains)
    if news:
        note_delay(s, float(age))
    set_context(lesson.context, room.context)
    return closed


@rare
def expect_outcomes(s: Any, x: Any, dose: Any, room: Room) -> None:
    """Fill in E[y | decision, context, past] by the present estimates, and the own effects of a unit dose."""
    n, context, effects, expected = x.shape[0], room.context, room.lines[EFFECT], room.lines[EXPECTED]
    (p, q), (prior_mean, prior_weight) = sizes(s), prior_of(s)
    coefficients, total_effects, own = s.equations.coefficients, s.equations.total_effects, np.zeros(n)
    for i in range(n):
        for c in range(p):
            own[i] += coefficients[i, n + c] * context[c]
        effects[i] = expected_effect(s, i, prior_mean, prior_weight)
        for c in range(q):
            effects[i] += coefficients[i, n + p + c] * context[1 + c]
        if x[i]:
            own[i] += dose[i] * effects[i]
    for i in range(n):
        expected[i] = 0.0
        for j in range(n):
            expected[i] += total_effects[i, j] * own[j]


@rare
def average_since_change(s: Any, i: Any, prior_mean: Any, prior_weight: Any, centre: Any) -> Any:
    """The average observation of an arm since it last changed, as far as known; returns how many there are."""
    b, k = s.belief, 0
    for h in range(b.mass.shape[0]):
        k = h if probability(b.mass, h) > probability(b.mass, k) else k
    moved = b.changed[k, i] > 0.5
    _, strength, of_prior = law(b, k, i, moved, prior_mean, prior_weight)
    average_of_law(b, k, i, moved, strength, centre)
    count = strength - of_prior
    if not count > 1e-9 * strength:
        return 0.0
    for j in range(centre.shape[0]):
        centre[j] *= strength / count
    return count


@rare
def normalise(mass: Any) -> None:
    total = 0.0
    for k in range(mass.shape[0]):
        total += probability(mass, k)
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] /= total
            if mass[k, g] < 1e-200:
                mass[k, g] = 0.0


@rare
def sum_up(s: Any, i: Any, slot: Any, prior_mean: Any, prior_weight: Any) -> None:
    """Sum up all hypotheses about an arm in one law, as what is known before the change of a new one."""
    b, noise = s.belief, effect_noise(s.equations, i)
    mean, square, share, kept = 0.0, 0.0, 0.0, 0.0
    vector, work = np.zeros(b.base.shape[2]), np.empty(b.base.shape[2])
    for k in range(b.mass.shape[0]):
        whole = probability(b.mass, k)
        for moved in (False, True):
            part = whole * (b.changed[k, i] if moved else 1.0 - b.changed[k, i])
            if part <= 1e-12:
                continue
            m, strength, of_prior = law(b, k, i, moved, prior_mean, prior_weight)
            mean += part * m
            square += part * (m * m + noise / strength)
            if part > NEGLIGIBLE:
                average_of_law(b, k, i, moved, strength, work)
                kept += part
                share += part * of_prior / strength
                for j in range(vector.shape[0]):
                    vector[j] += part * work[j]
    for j in range(vector.shape[0]):
        b.base[slot, i, j], b.sums_at[slot, i, j] = vector[j] / kept, b.sums[i, j]
    b.base_share[slot, i], b.base_mean[slot, i] = share / kept, mean
    b.base_weight[slot, i] = max(noise / max(square - mean * mean, 1e-12), 0.5)
    b.total_at[slot, i], b.weight_at[slot, i] = b.total[i], b.weight[i]


@rare
def open_hypothesis(s: Any, x: Any, played_at: Any) -> None:
    """Add the hypothesis of a change just before `played_at`: of a share of the arms, or (type 0) of one idle arm."""
    b, slot, total_idle = s.belief, 0, 0.0
    mass, (prior_mean, prior_weight) = b.mass, prior_of(s)
    for k in range(mass.shape[0]):
        slot = k if probability(mass, k) < probability(mass, slot) else slot
    for g in range(mass.shape[1]):
        mass[slot, g] = 0.0
    normalise(mass)
    for i in range(x.shape[0]):
        sum_up(s, i, slot, prior_mean, prior_weight)
        gap = played_at - b.seen[i]
        b.idle_prior[slot, i] = 1.0 - (1.0 - IDLE_HAZARD) ** gap if x[i] and gap > 0 else 0.0
        total_idle += b.idle_prior[slot, i]
        b.ratio[slot, i], b.changed[slot, i] = 1.0, 0.0
    for i in range(x.shape[0]):
        b.idle_prior[slot, i] /= max(total_idle, 1e-300)
    b.change_round[slot] = played_at
    shared = 1.0 - (1.0 - HAZARD) ** (played_at - b.latest)
    alone = min(total_idle, MOST_ALONE * (1.0 - shared))
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] *= 1.0 - shared - alone
    mass[slot, 0] = alone
    for g in range(1, mass.shape[1]):
        mass[slot, g] = shared * SHARE_PRIOR[g]


@rare
def doubt_about(e: Any, i: Any, gap: Any) -> Any:
    """The variance of a'gap for the uncertain coefficients a of one equation; gap: (at least d,)."""
    n, rest = e.edge_variance.shape[1], e.slope.shape[1]
    edge_variance, slope, covariance, doubt = e.edge_variance[i], e.slope[i], e.rest_covariance[i], 0.0
    for j in range(n):
        if edge_variance[j] > 0.0:
            along = gap[j]
            for c in range(rest):
                along -= slope[c, j] * gap[n + c]
            doubt += edge_variance[j] * along * along
    for c in range(rest):
        for b in range(rest):
            doubt += gap[n + c] * covariance[c, b] * gap[n + b]
    return max(doubt, 0.0)


@inner
def changed_probability(prior: Any, ratio: Any) -> Any:
    """Posterior probability of a change, from its prior probability and its likelihood ratio."""
    return prior * ratio / (prior * ratio + (1.0 - prior))  # a prior of 1 gives 1, however small the ratio


@rare
def weigh_effect(s: Any, i: Any, observed: Any, value: Any, amount: Any, played_at: Any) -> None:
    """Update every hypothesis with one observed effect of weight `amount`."""
    b, e, (prior_mean, prior_weight) = s.belief, s.equations, prior_of(s)
    mass, change_round, variance, (hypotheses, m) = b.mass, b.change_round, effect_noise(e, i), b.base[:, i].shape
    likely, gap, best = np.zeros((2, hypotheses)), np.empty(m), -math.inf
    for k in range(hypotheses):
        if change_round[k] > played_at:
            continue
        whole = probability(mass, k)
        for moved in (False, True):
            mean, strength, _ = law(b, k, i, moved, prior_mean, prior_weight)
            doubt = 0.0
            if whole > REMOTE:
                average_of_law(b, k, i, moved, strength, gap)
                for j in range(m):
                    gap[j] = observed[j] - gap[j]
                doubt = doubt_about(e, i, gap)
            spread = variance * (1.0 / amount + 1.0 / strength) + doubt
            likely[int(moved), k] = -0.5 * math.log(spread) - 0.5 * (value - mean) ** 2 / spread
        if whole > 0.0:
            best = max(best, max(likely[0, k], likely[1, k]))
    for j in range(m):
        b.sums[i, j] += amount * observed[j]
    b.total[i] += amount * value
    b.weight[i] += amount
    before, after = 0.0, 0.0
    for k in range(hypotheses):
        if change_round[k] > played_at:  # an observation from before the change
            grown = b.base_weight[k, i] + amount
            for j in range(m):
                b.base[k, i, j] += amount / grown * (observed[j] - b.base[k, i, j])
                b.sums_at[k, i, j] += amount * observed[j]
            b.base_share[k, i] *= b.base_weight[k, i] / grown
            b.base_mean[k, i] += amount / grown * (value - b.base_mean[k, i])
            b.base_weight[k, i] = grown
            b.total_at[k, i] += amount * value
            b.weight_at[k, i] += amount
            continue
        stayed = math.exp(min(max(likely[0, k] - best, -600.0), 0.0))  # above 0 only if impossible (no mass)
        fresh = math.exp(min(max(likely[1, k] - best, -600.0), 0.0))
        for g in range(mass.shape[1]):
            if mass[k, g] > 0.0:
                prior = 0.0 if change_round[k] == 0 else b.idle_prior[k, i] if g == 0 else SHARES[g]
                c = changed_probability(prior, b.ratio[k, i])
                before += mass[k, g]
                mass[k, g] *= max(c * fresh + (1.0 - c) * stayed, 1e-250)
                after += mass[k, g]
        gained = math.exp(min(max(likely[1, k] - likely[0, k], -60.0), 60.0))
        b.ratio[k, i] = min(max(b.ratio[k, i] * gained, LEAST_RATIO), MOST_RATIO)
    if after > 0.0:  # an observation from before a change has the likelihood that the other hypotheses give it
        for k in range(hypotheses):
            if change_round[k] > played_at:
                for g in range(mass.shape[1]):
                    mass[k, g] *= after / before
    normalise(mass)


@rare
def find_changed(b: Any) -> None:
    """The probability, under each hypothesis, that an arm took part in the change; count changes that are certain."""
    mass, changed, totals = b.mass, b.changed, np.empty(b.mass.shape[0])
    for k in range(mass.shape[0]):
        totals[k] = probability(mass, k)
        for i in range(changed.shape[1]):
            changed[k, i] = 0.0
            for g in range(mass.shape[1]):
                if mass[k, g] > 0.0 and b.change_round[k] > 0:
                    prior = b.idle_prior[k, i] if g == 0 else SHARES[g]
                    changed[k, i] += mass[k, g] / totals[k] * changed_probability(prior, b.ratio[k, i])
    note_change(b.change_round, totals, b.detected)


@rare
def filter_outcome(s: Any, x: Any, dose: Any, played_at: Any, room: Room) -> None:
    """Update all hypotheses with the news of a round, however late they arrive.

    Fills in, for each chosen arm, the average observation since its last change before this round, and of how many.
    """
    b, e, n, (p, q) = s.belief, s.equations, x.shape[0], sizes(s)
    (prior_mean, prior_weight), d, news = prior_of(s), n + p + q, False
    y, z, expected, shock = room.lines[Y], room.lines[Z], room.lines[EXPECTED], room.lines[SHOCK]
    known, fresh, context, count = room.flags[KNOWN], room.flags[FRESH], room.context, room.lines[COUNT]
    for i in range(n):
        count[i] = 0.0
        if x[i]:
            news |= fresh[i]
            count[i] = average_since_change(s, i, prior_mean, prior_weight, room.centre[i])
    if news and played_at > b.latest:
        if b.latest > 0:
            open_hypothesis(s, x, played_at)
        b.latest = played_at
    observed = np.empty(room.centre.shape[1])
    for i in range(n):
        if not (x[i] and fresh[i]):
            continue
        amount = dose[i] ** 2
        observed[:] = 0.0
        for c in range(q):
            observed[n + p + c] = context[1 + c]
        for j in range(n):
            observed[d + 1 + j] = dose[j] / dose[i] if x[j] else 0.0
        if not math.isnan(z[i]):
            observed[d] = z[i] / dose[i]
        else:
            observed[d], more, own = (y[i] - shock[i]) / dose[i], 0.0, effect_noise(e, i)
            for j in range(n):
                if j != i:
                    observed[j] = (y[j] if known[j] else expected[j]) / dose[i]
                    if not known[j]:  # the variance that expected outcomes in place of missing ones add
                        more += (e.coefficients[i, j] ** 2 + e.edge_variance[i, j]) * effect_noise(e, j)
            for c in range(p):
                observed[n + c] = context[c] / dose[i]
            amount *= own / (own + more)
        value = observed[d]
        for j in range(d):
            value -= e.coefficients[i, j] * observed[j]
        weigh_effect(s, i, observed, value, amount, played_at)
        b.seen[i] = max(b.seen[i], played_at)
    find_changed(b)
