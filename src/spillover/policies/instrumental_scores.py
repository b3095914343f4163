"""What arms are ranked by: effects by the graph, or by a regression on decisions where it contradicts the graph."""

import math
from typing import Any, Final

import numpy as np

from spillover.core import inner
from spillover.core.compiled import rare
from spillover.kernels.factor import applied, invert_symmetric
from spillover.kernels.switching_scores import normal_excess
from spillover.policies.instrumental_equations import add_value
from spillover.policies.instrumental_filter import (
    Room,
    Y,
    completes_round,
    effect_noise,
    expected_effect,
    law,
    prior_of,
    probability,
    sizes,
)
from spillover.policies.switching_state import IDLE_HAZARD, rivals

HORIZON: Final = 50.0  # rounds over which a better arm pays off
NEGLIGIBLE: Final = 1e-6  # hypotheses less probable than this do not affect a decision
LASTING: Final = 4.0  # the variance of the weights counts so many times: what is learned of the graph lasts longer
NO_WEIGHT: Final = 1e-9  # an arm with a smaller total effect per unit is not worth exploring
LEAST_EFFECT: Final = 1e-9  # an own effect in units of the range that spill-over can be related to
ENOUGH: Final = 20  # rounds beyond the number of coefficients from which the graph is tested
REJECTED: Final = 3.719016485455709  # standard deviations that a normal error exceeds with a probability of 0.0001
RIDGE: Final = 1e-9

# lines that `InstrumentalSEM.index` fills in
OWN, INDEX, SHIFT, WEIGHT, FACTOR, BASELINE = range(6)
REGRESSED: Final = 6  # from here on n lines of effects by regression, n of the covariance of residuals, n + 2 of how
# much the variance of an effect differs from that with equal noise: on each outcome, on their sum, on all others


@inner
def lines_of(n: Any) -> Any:
    return REGRESSED + 3 * n + 2


@rare
def value_arms(s: Any, found: Any) -> None:
    """Fill in expected own effects at the coming context, the same plus the value of information, what context adds.

    The bonus of an arm outside the s best is `HORIZON` E[(w m - threshold)+] / w, where the threshold is the effect of
    the s-th best. For an arm among the s best it is the expected loss from keeping it, `HORIZON` E[(threshold - w m)+]
    / w, with the effect of the next best arm as the threshold. Both weights w and own effects m are uncertain. The
    bonus is divided by (1 + pulls in flight)^2, because the outcomes of those pulls will arrive without another try.
    """
    b, e, n, (p, q), (prior_mean, prior_weight) = s.belief, s.equations, s.n_arms, sizes(s), prior_of(s)
    mass, weights, mean, index, shift = b.mass, e.weights, found[OWN], found[INDEX], found[SHIFT]
    prior_deviation, squares = s.prior[1] * e.pooled[1], 0.0
    idle, effects, of_context = np.empty(n), np.empty(n), np.zeros(n)
    for k in range(mass.shape[0]):
        squares += probability(mass, k) ** 2
    for i in range(n):
        shift[i] = 0.0
        for c in range(q):
            shift[i] += e.coefficients[i, n + p + c] * s.context[c]
            for d in range(q):
                of_context[i] += s.context[c] * e.rest_covariance[i, p + c, p + d] * s.context[d]
        for j in range(n if q > 0 else 0):
            along = 0.0
            for c in range(q):
                along += e.slope[i, p + c, j] * s.context[c]
            of_context[i] += e.edge_variance[i, j] * along * along
        idle[i] = 1.0 - (1.0 - IDLE_HAZARD) ** (s.rounds - s.last_pull[i])
        expected = expected_effect(s, i, prior_mean, prior_weight)
        mean[i] = (1.0 - idle[i]) * expected + idle[i] * prior_mean + shift[i]
        effects[i] = weights[i] * mean[i]
    threshold, runner_up = rivals(effects, s.budget, np.empty(n + 1))
    for i in range(n):
        w, index[i], found[WEIGHT, i] = weights[i], mean[i], weights[i]
        if abs(w) < NO_WEIGHT:
            continue
        inside, lasting = effects[i] >= threshold and effects[i] > 0.0, LASTING * e.weight_variance[i]
        sign, rival = (-1.0, runner_up) if inside else (1.0, threshold)
        afresh, noise = prior_mean + shift[i], effect_noise(e, i)
        deviation = math.sqrt(w**2 * prior_deviation**2 + afresh**2 * lasting)
        missed = idle[i] * normal_excess(sign * (w * afresh - rival), deviation)
        for k in range(mass.shape[0]):  # squared: pulls in flight will settle an improbable change anyway
            share = probability(mass, k) ** 2 / squares
            for moved in (False, True):
                part = share * (b.changed[k, i] if moved else 1.0 - b.changed[k, i]) * (1.0 - idle[i])
                if part >= NEGLIGIBLE:
                    m, strength, _ = law(b, k, i, moved, prior_mean, prior_weight)
                    m += shift[i]
                    spread = w**2 * (noise / strength + of_context[i]) + m * m * lasting
                    missed += part * normal_excess(sign * (w * m - rival), math.sqrt(spread))
        index[i] += HORIZON * missed / (1.0 + s.in_flight[i]) ** 2 / w


@inner
def any_rejected(s: Any) -> Any:
    found = False
    for i in range(s.n_arms):
        found |= s.rejected[i]
    return found


@rare
def judge_arms(s: Any, found: Any) -> None:
    """What arms are ranked by, in units of the range; where the graph is rejected, the regression decides.

    Its bonus is one standard error, less while pulls are in flight.
    """
    value_arms(s, found)
    if not any_rejected(s):
        return
    regress(s, found)
    n, whole = s.n_arms, 0.0
    cells, scatter, uneven = found[REGRESSED:], found[REGRESSED + n :], found[REGRESSED + 3 * n]
    for i in range(n):
        for j in range(n):
            whole += scatter[i, j]
    for j in range(n):
        if s.rejected[j]:
            total, direct = 0.0, cells[j, j]
            for i in range(n):
                total += cells[i, j]
            direct = LEAST_EFFECT if abs(direct) < LEAST_EFFECT else direct
            error = math.sqrt(max(whole, 0.0) * found[FACTOR, j] * uneven[j])
            weight, score = total / direct, total + error / (1.0 + s.in_flight[j]) ** 2
            found[OWN, j], found[WEIGHT, j] = direct, weight
            found[INDEX, j] = score / weight if weight != 0.0 else direct


@rare
def learn_regression(s: Any, x: Any, dose: Any, room: Room) -> None:
    """Add a round to the regression of all outcomes on decisions and context; it starts again after a change.

    Regressors: 1 and context, the dose of each arm, and for each arm its dose times the context.
    """
    r, y, context, n, (p, q) = s.reduced, room.lines[Y], room.context, x.shape[0], sizes(s)
    gram, products, levels, chosen = r.gram, r.products, r.levels, r.chosen
    if s.belief.detected[0] > r.changes:
        r.changes, r.rounds = s.belief.detected[0], 0.0
        gram[:] = 0.0
        products[:] = 0.0
        r.squares[:] = 0.0
        chosen[:] = 0.0
        levels[:] = 0.0
    if not completes_round(room):
        return
    values, places, count, payoff = np.empty(gram.shape[0]), np.empty(gram.shape[0], np.int64), p, 0.0
    for c in range(p):
        values[c], places[c] = context[c], c
    for j in range(n):
        payoff += y[j]
        if x[j]:
            chosen[j] += 1.0
            values[count], places[count] = dose[j], p + j
            for c in range(q):
                values[count + 1 + c], places[count + 1 + c] = dose[j] * context[1 + c], p + n + j * q + c
            count += 1 + q
    for a in range(count):
        for b in range(count):
            gram[places[a], places[b]] += values[a] * values[b]
        for i in range(n):
            products[i, places[a]] += y[i] * values[a]
    for i in range(n):
        for j in range(n):
            r.squares[i, j] += y[i] * y[j]
    for i in range(n + 2):
        for j in range(n):
            side = levels[i, j, :3] if x[j] else levels[i, j, 3:]
            add_value(side, y[i] if i < n else payoff if i == n else payoff - y[j])
    r.rounds += 1.0


@inner
def unevenness(level: Any) -> Any:
    """By how much the variance of an effect differs from that with equal noise in rounds with and without the arm.

    An outcome may vary far more while its arm is chosen: a purchase that is rare otherwise.
    """
    if not (level[0] > 2.0 and level[3] > 2.0):
        return 1.0
    share = level[0] / (level[0] + level[3])
    with_arm, without = level[2] / (level[0] - 1.0), level[5] / (level[3] - 1.0)
    equal = share * with_arm + (1.0 - share) * without
    return ((1.0 - share) * with_arm + share * without) / equal if equal > 0.0 else 1.0


@rare
def regress(s: Any, found: Any) -> None:
    """Effects by regression of all outcomes on decisions and context, without a graph, as `lines_of` says.

    The covariance of column j of the effects is that of the residuals times the factor of arm j.
    """
    r, n, size, (p, q) = s.reduced, s.n_arms, s.reduced.gram.shape[0], sizes(s)
    gram, products, top = r.gram.copy(), r.products, 0.0
    for a in range(size):
        top += gram[a, a] / size
    for a in range(size):
        gram[a, a] += RIDGE * max(top, 1e-300)
    inverse, pick, coefficients = np.empty((size, size)), np.empty(size), np.empty((n, size))
    invert_symmetric(gram, inverse)
    freedom = max(r.rounds - size, 1.0)
    for i in range(n):
        coefficients[i] = applied(inverse, products[i])
        found[BASELINE, i] = coefficients[i, 0]
        for c in range(1, p):
            found[BASELINE, i] += coefficients[i, c] * s.context[c - 1]
    for j in range(n):
        pick[:] = 0.0
        pick[p + j] = 1.0
        for c in range(q):
            pick[p + n + j * q + c] = s.context[c]
        along, found[FACTOR, j] = applied(inverse, pick), 0.0
        for a in range(size):
            found[FACTOR, j] += pick[a] * along[a]
        for i in range(n):
            effect, left, other = 0.0, r.squares[i, j], r.squares[j, i]
            for a in range(size):
                effect += coefficients[i, a] * pick[a]
                left -= coefficients[i, a] * products[j, a]
                other -= coefficients[j, a] * products[i, a]
            found[REGRESSED + i, j], found[REGRESSED + n + i, j] = effect, 0.5 * (left + other) / freedom
        for i in range(n + 2):
            found[REGRESSED + 2 * n + i, j] = unevenness(r.levels[i, j])


@inner
def is_testable(s: Any, j: Any) -> Any:
    """Whether there are enough rounds for the test since the last change."""
    r = s.reduced
    return r.rounds >= r.gram.shape[0] + ENOUGH and r.chosen[j] >= ENOUGH


@rare
def test_graph(s: Any, found: Any) -> None:
    """Find the arms whose effects by the graph contradict the regression on decisions, and so are not to be trusted.

    A regression needs no graph, so where they contradict each other the graph is wrong: outcomes that add up to a
    constant, or effects that are not linear. All arms share the equations, so one contradiction counts for all of
    them that can be tested.
    """
    n, contradicted, testable = s.n_arms, False, False
    for j in range(n):
        testable |= is_testable(s, j)
        s.rejected[j] = False
    if not testable:
        return
    value_arms(s, found)
    regress(s, found)
    scatter, inverse, gap = found[REGRESSED + n : REGRESSED + 2 * n].copy(), np.empty((n, n)), np.empty(n)
    top = 0.0
    for i in range(n):
        top += max(scatter[i, i], 0.0)
    for i in range(n):  # without noise it is rounding, and need not have an inverse
        scatter[i, i] += 1e-6 * top + 1e-300
    invert_symmetric(scatter, inverse)
    # the quantile of chi-squared with n degrees of freedom, by Wilson and Hilferty
    limit = n * (1.0 - 2.0 / (9.0 * n) + REJECTED * math.sqrt(2.0 / (9.0 * n))) ** 3
    for j in range(n):
        statistic = 0.0
        for i in range(n):
            gap[i] = s.equations.total_effects[i, j] * found[OWN, j] - found[REGRESSED + i, j]
        along = applied(inverse, gap)
        for i in range(n):
            statistic += gap[i] * along[i]
        contradicted |= is_testable(s, j) and statistic > limit * max(found[FACTOR, j], 1e-300)
    for j in range(n):
        s.rejected[j] = contradicted and is_testable(s, j)
