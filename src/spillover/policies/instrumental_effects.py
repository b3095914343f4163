"""What choosing an arm does to each outcome, with its uncertainty: by the structural equations, and without a graph.

The regression without a graph and the test of the graph are functions of one learner: s is its `InstrumentalState`,
room its `Room`. Explanations are for a whole batch.
"""

import math
from typing import Any, Final, NamedTuple

import numpy as np

from spillover.core import inner
from spillover.core.compiled import called
from spillover.kernels.inversion import invert
from spillover.policies.instrumental_equations import EDGE_SCALE, add_value, any_of, is_whole, row_times
from spillover.policies.instrumental_filter import sizes
from spillover.policies.instrumental_state import Belief, Equations, InstrumentalState
from spillover.types import Array, BoolArray

SIDE = 1.959963984540054  # standard deviations on each side of a 95% interval
REJECTED: Final = 1e-4  # level of the test of the graph against the regression on decisions
ABSENT = 0.025  # an edge less probable than this is taken for 0 in an interval
ENOUGH: Final = 20  # rounds beyond the number of coefficients from which the test is made
LEAST_EFFECT: Final = 1e-9  # an own effect in units of the range that spill-over can be related to
MOST_TURNS: Final = 30  # over all pairs of rows, in which a symmetric matrix becomes diagonal


# --- without a graph -------------------------------------------------------------------------------------------------


@inner
def learn_plainly(s: Any, room: Any, given: Any) -> None:
    """Add a round to the regression of all outcomes on decisions and context; it starts again after a change.

    Regressors: 1 and context, the dose of each arm, and for each arm its dose times the context.
    """
    known, x, y, context, n, (p, q) = s.reduced, given.x, given.y, given.context, s.n_arms, sizes(s)
    if s.belief.detected[0] > known.changes:
        known.changes = s.belief.detected[0]
        known.rounds = 0.0
        known.gram[:] = 0.0
        known.products[:] = 0.0
        known.squares[:] = 0.0
        known.chosen[:] = 0.0
        known.levels[:] = 0.0
    if not (any_of(given.fresh) and is_whole(y)):
        return
    values, places, count = room.regressors, room.places, p
    for c in range(p):
        values[c], places[c] = context[c], c
    for j in range(n):
        if x[j]:
            known.chosen[j] += 1.0
            values[count], places[count] = given.dose[j], p + j
            for c in range(q):
                values[count + 1 + c], places[count + 1 + c] = given.dose[j] * context[1 + c], p + n + j * q + c
            count += 1 + q
    for a in range(count):
        for b in range(count):
            known.gram[places[a], places[b]] += values[a] * values[b]
        for i in range(n):
            known.products[i, places[a]] += y[i] * values[a]
    payoff = 0.0
    for i in range(n):
        payoff += y[i]
        for j in range(n):
            known.squares[i, j] += y[i] * y[j]
            add_value(known.levels[i, j], 0 if x[j] else 3, y[i])
    for j in range(n):
        add_value(known.levels[n, j], 0 if x[j] else 3, payoff)
        add_value(known.levels[n + 1, j], 0 if x[j] else 3, payoff - y[j])
    known.rounds += 1.0


@inner
def unevenness(level: Any) -> Any:
    """By how much the variance of an effect differs from that with equal noise in rounds with and without the arm.

    An outcome may vary far more while its arm is chosen: a purchase that is rare otherwise.
    """
    chosen, other = level[0], level[3]
    share = chosen / (chosen + other) if chosen + other > 0.0 else 0.5
    with_arm, without = level[2] / max(chosen - 1.0, 1.0), level[5] / max(other - 1.0, 1.0)
    equal = share * with_arm + (1.0 - share) * without
    apart = (1.0 - share) * with_arm + share * without
    return apart / equal if chosen > 2.0 and other > 2.0 and equal > 0.0 else 1.0


@called
def regress_plainly(s: Any, room: Any) -> None:
    """Effects by regression of all outcomes on decisions and context, without a graph.

    room.cells: the effect of each arm on each outcome. room.scatter: the covariance of the residuals, room.factor:
    times which it is that of a column of the effects. room.still: the outcomes that are expected without a decision.
    """
    known, n, (p, q) = s.reduced, s.n_arms, sizes(s)
    matrix, inverse, coefficients, size = room.gram, room.gram_inverse, room.plain, s.reduced.gram.shape[0]
    trace = 0.0
    for a in range(size):
        trace += known.gram[a, a]
        for b in range(size):
            matrix[a, b] = known.gram[a, b]
    for a in range(size):
        matrix[a, a] += 1e-9 * max(trace / size, 1e-300)
    invert(matrix, inverse)
    for i in range(n):
        for b in range(size):
            coefficients[i, b] = 0.0
        for a in range(size):
            for b in range(size):
                coefficients[i, b] += known.products[i, a] * inverse[a, b]
    for i in range(n):
        for k in range(n):
            explained = row_times(coefficients, i, known.products[k], size)
            room.square[i, k] = (known.squares[i, k] - explained) / max(known.rounds - size, 1.0)
    for i in range(n):
        room.still[i] = 0.0
        for c in range(p):
            room.still[i] += coefficients[i, c] * (s.context[c - 1] if c > 0 else 1.0)
        for k in range(n):
            room.scatter[i, k] = 0.5 * (room.square[i, k] + room.square[k, i])
    for j in range(n):
        room.factor[j] = 0.0
        for a in range(1 + q):
            here, amount = place_of(j, a, n, p, q), s.context[a - 1] if a > 0 else 1.0
            for b in range(1 + q):
                other = s.context[b - 1] if b > 0 else 1.0
                room.factor[j] += amount * inverse[here, place_of(j, b, n, p, q)] * other
        for i in range(n):
            room.cells[i, j] = 0.0
            for a in range(1 + q):
                amount = s.context[a - 1] if a > 0 else 1.0
                room.cells[i, j] += coefficients[i, place_of(j, a, n, p, q)] * amount


@inner
def place_of(j: Any, a: Any, n: Any, p: Any, q: Any) -> Any:
    """Where the a-th regressor of an arm is: its dose, or its dose times a context column."""
    return p + j if a == 0 else p + n + j * q + a - 1


@inner
def is_testable(s: Any, j: Any) -> Any:
    """Whether there are enough rounds for the test since the last change."""
    return s.reduced.rounds >= s.reduced.gram.shape[0] + ENOUGH and s.reduced.chosen[j] >= ENOUGH


@inner
def any_testable(s: Any) -> Any:
    for j in range(s.n_arms):
        if is_testable(s, j):
            return True
    return False


@called
def test_graph(s: Any, room: Any, own: Any) -> None:
    """Find the arms whose effects by the graph are not to be trusted: it contradicts the regression on decisions.

    A regression needs no graph, so where they contradict each other the graph is wrong: outcomes that add up to a
    constant, or effects that are not linear. All arms share the equations, so one contradiction counts for all of
    them. own: own effects at the coming context.
    """
    n, total_effects, directions, contradicted = s.n_arms, s.equations.total_effects, room.rows, False
    regress_plainly(s, room)
    diagonalise(room.scatter, directions)  # without noise it is rounding, and need not have an inverse
    largest = 0.0
    for k in range(n):
        largest = max(largest, abs(room.scatter[k, k]))
    for j in range(n):
        if is_testable(s, j):
            statistic = 0.0
            for k in range(n):
                along = 0.0
                for i in range(n):
                    along += (total_effects[i, j] * own[j] - room.cells[i, j]) * directions[i, k]
                statistic += along**2 / max(room.scatter[k, k], 1e-6 * largest + 1e-300)
            contradicted |= chance_of(statistic / max(room.factor[j], 1e-300), n) < REJECTED
    for j in range(n):
        s.rejected[j] = contradicted and is_testable(s, j)


@inner
def diagonalise(matrix: Any, directions: Any) -> None:
    """The eigenvalues of a symmetric matrix, on its diagonal, and their directions, by Jacobi's rotations."""
    n = matrix.shape[0]
    for i in range(n):
        for j in range(n):
            directions[i, j] = 1.0 if i == j else 0.0
    for _ in range(MOST_TURNS):
        whole, off = 0.0, 0.0
        for i in range(n):
            whole += matrix[i, i] ** 2
            for j in range(i):
                off += matrix[i, j] ** 2
        if not off > 1e-30 * whole:
            return
        for a in range(n):
            for b in range(a + 1, n):
                if matrix[a, b] != 0.0:
                    turn = (matrix[b, b] - matrix[a, a]) / (2.0 * matrix[a, b])
                    t = math.copysign(1.0, turn) / (abs(turn) + math.sqrt(turn * turn + 1.0))
                    c = 1.0 / math.sqrt(t * t + 1.0)
                    rotate(matrix, directions, a, b, c, t * c)


@inner
def rotate(matrix: Any, directions: Any, a: Any, b: Any, c: Any, s: Any) -> None:
    """Turn rows and columns a and b of a symmetric matrix, and their directions."""
    for k in range(matrix.shape[0]):
        first, second = matrix[a, k], matrix[b, k]
        matrix[a, k], matrix[b, k] = c * first - s * second, s * first + c * second
    for k in range(matrix.shape[0]):
        first, second = matrix[k, a], matrix[k, b]
        matrix[k, a], matrix[k, b] = c * first - s * second, s * first + c * second
        first, second = directions[k, a], directions[k, b]
        directions[k, a], directions[k, b] = c * first - s * second, s * first + c * second


@inner
def chance_of(statistic: Any, n: Any) -> Any:
    """The chance that the sum of n squared standard normals exceeds a number.

    >>> round(chance_of(3.0, 2), 6), round(chance_of(7.815, 3), 4)
    (0.22313, 0.05)
    """
    half = 0.5 * statistic
    found, term = 0.0, math.exp(-half)
    if n % 2 == 1:
        found, term = math.erfc(math.sqrt(half)), term * 2.0 * math.sqrt(half / math.pi)
    for k in range(n // 2):
        found += term
        term *= half / (k + 1 + 0.5 * (n % 2))
    return found


@inner
def use_plain_effects(s: Any, room: Any, weights: Any, own: Any, index: Any) -> None:
    """Replace weights, own effects and index of arms whose graph is rejected by those of the regression on decisions.

    Their bonus is one standard error, less while pulls are in flight.
    """
    n, whole = s.n_arms, 0.0
    regress_plainly(s, room)
    for i in range(n):
        for k in range(n):
            whole += room.scatter[i, k]
    for j in range(n):
        if s.rejected[j]:
            total, direct = 0.0, room.cells[j, j]
            for i in range(n):
                total += room.cells[i, j]
            direct = LEAST_EFFECT if abs(direct) < LEAST_EFFECT else direct
            variance = max(whole, 0.0) * room.factor[j] * unevenness(s.reduced.levels[n, j])
            score = total + math.sqrt(variance) / (1.0 + s.in_flight[j]) ** 2
            weights[j], own[j] = total / direct, direct
            index[j] = score / weights[j] if weights[j] != 0.0 else direct


# --- explanations ----------------------------------------------------------------------------------------------------


class Effects(NamedTuple):
    """Effects and their variances, in units of the range."""

    cells: Array  # (*batch, n, n): of choosing arm j on the outcome of arm i
    cell_variance: Array
    cell_beyond: Array  # the same on the side away from 0, which allows for edges that are shrunk towards 0
    spill: Array  # (*batch, n): on all other outcomes together
    spill_variance: Array
    spill_beyond: Array
    total: Array  # (*batch, n): on all outcomes together
    total_variance: Array


class OwnEffect(NamedTuple):
    """The law of each arm's own effect, over all hypotheses."""

    variance: Array  # (*batch, n): given the equation
    average: Array  # (*batch, n, m): the observation that it is the average of


def own_effect(belief: Belief, noise: Array, prior_mean: Array, prior_weight: Array) -> OwnEffect:
    """Mixture of the laws of all hypotheses; noise, prior_weight: (*batch, n) and (*batch, 1)."""
    weight = belief.mass.sum(axis=-1)[..., None]  # (*batch, k, 1)
    gained = belief.weight[..., None, :] - belief.weight_at
    added = belief.total[..., None, :] - belief.total_at
    vectors = belief.sums[..., None, :, :] - belief.sums_at
    strengths = (belief.base_weight + gained, prior_weight[..., None] + gained)
    means = (
        (belief.base_weight * belief.base_mean + added) / strengths[0],
        ((prior_weight * prior_mean)[..., None] + added) / strengths[1],
    )
    observed = (
        (belief.base_weight[..., None] * belief.base + vectors) / strengths[0][..., None],
        vectors / strengths[1][..., None],
    )
    parts = (weight * (1.0 - belief.changed), weight * belief.changed)
    mean = sum((p * m).sum(axis=-2) for p, m in zip(parts, means, strict=True))
    average = sum((p[..., None] * o).sum(axis=-3) for p, o in zip(parts, observed, strict=True))
    spread = sum(
        (p * (noise[..., None, :] / s + (m - np.asarray(mean)[..., None, :]) ** 2)).sum(axis=-2)
        for p, m, s in zip(parts, means, strengths, strict=True)
    )
    return OwnEffect(np.asarray(spread), np.asarray(average))


def interval_if_existing(equations: Equations, signed: bool) -> Array:
    """95% intervals of the edges in case that they exist, (*batch, n, n, 2).

    The law of an edge that exists is the slab times what the data and the other edges say: normal, cut off at 0 unless
    edges may be negative. Edges that are not possible get 0.
    """
    from scipy.special import ndtr, ndtri  # imported here, because live decisions do not need SciPy

    n = equations.coefficients.shape[-2]
    possible = equations.edge_variance > 0.0
    variance = np.where(possible, equations.edge_variance, 1.0)
    precision = np.maximum(1.0 / variance - equations.site_precision, 1e-9 / variance) + 1.0 / EDGE_SCALE**2
    deviation = 1.0 / np.sqrt(precision)
    centre = (equations.coefficients[..., :n] / variance - equations.site_product) / precision
    positive = 1.0 if signed else np.maximum(ndtr(centre / deviation), 1e-290)
    bounds = [centre - deviation * ndtri((1.0 - level) * positive) for level in (0.025, 0.975)]
    return np.where(possible[..., None], np.stack(bounds, axis=-1), 0.0)


def unshrunk(equations: Equations, signed: bool) -> Array:
    """The covariance of the edges into each arm, wide enough for each edge in case that it exists."""
    mean = equations.coefficients[..., : equations.coefficients.shape[-2]]
    law = interval_if_existing(equations, signed)
    far = np.where(mean >= 0.0, law[..., 1] - mean, mean - law[..., 0]) / SIDE
    deviation = np.sqrt(np.maximum(equations.edge_variance, 0.0))
    wider = (equations.probability > ABSENT) & (far > deviation) & (deviation > 0.0)
    scale = np.divide(far, deviation, out=np.ones(far.shape), where=wider)
    return np.asarray(equations.covariance * scale[..., :, None] * scale[..., None, :])


def structural_effects(state: InstrumentalState, own: Array, p: int, signed: bool) -> Effects:
    """Effects by the graph, with variances by linearisation; own: own effects at the coming context, (*batch, n)."""
    found = linearised(state, own, p, state.equations.covariance)
    wide = linearised(state, own, p, unshrunk(state.equations, signed))
    beyond = np.where(np.eye(own.shape[-1], dtype=np.bool_), found.cell_variance, wide.cell_variance)
    return found._replace(cell_beyond=beyond, spill_beyond=wide.spill_variance)


def linearised(state: InstrumentalState, own: Array, p: int, covariance: Array) -> Effects:
    """Effects and their variances for a covariance of the edges into each arm."""
    equations, n = state.equations, own.shape[-1]
    unit = equations.pooled[..., 1:]
    prior_weight = np.maximum(equations.pooled[..., :1] / (state.prior[..., 1:] * unit) ** 2, 1e-6)
    law = own_effect(state.belief, equations.noise[..., 1], state.prior[..., :1] * unit, prior_weight)
    d = equations.coefficients.shape[-1]
    gap = law.average[..., :d].copy()
    gap[..., n + p :] -= state.context[..., None, : d - n - p]
    rest = gap[..., n:]
    edges = gap[..., :n] - np.einsum("...rcj,...rc->...rj", equations.slope, rest)
    total_effects = equations.total_effects
    along = np.einsum("...aj,...rab->...rbj", total_effects, covariance)
    row = np.einsum("...rbj,...bj->...rj", along, total_effects)  # variance of a_r' m_j
    shared = -np.einsum("...jbj,...jb->...j", along, edges)  # covariance of a_j' m_j with the own effect of j
    variance = (
        law.variance
        + np.einsum("...ra,...rab,...rb->...r", edges, covariance, edges)
        + np.einsum("...rc,...rcb,...rb->...r", rest, equations.rest_covariance, rest)
    )

    def spread(weights: Array) -> Array:
        """Variance of sum_i weights_ij effects_ij; weights M'v for each arm: (*batch, r, j)."""
        mine = np.diagonal(weights, axis1=-2, axis2=-1)
        from_edges = own**2 * (weights**2 * row).sum(axis=-2)
        return np.asarray(np.maximum(from_edges + mine**2 * (variance + 2.0 * own * shared), 0.0))

    weights = total_effects.sum(axis=-2)
    cell_variance = np.stack(
        [spread(np.broadcast_to(total_effects[..., i, :, None], total_effects.shape)) for i in range(n)], axis=-2
    )
    all_of = np.broadcast_to(weights[..., :, None], total_effects.shape)
    others = all_of - np.swapaxes(total_effects, -1, -2)
    cells = total_effects * own[..., None, :]
    total = cells.sum(axis=-2)
    direct = np.diagonal(cells, axis1=-2, axis2=-1)
    spill = spread(others)
    return Effects(cells, cell_variance, cell_variance, total - direct, spill, spill, total, spread(all_of))


def plain_effects(cells: Array, scatter: Array, factor: Array, uneven: Array) -> Effects:
    """Effects without a graph, from what `regress_plainly` found; uneven: (*batch, n + 2, n), see `unevenness`."""
    n = cells.shape[-1]
    noise = np.maximum(np.diagonal(scatter, axis1=-2, axis2=-1), 0.0)
    whole = np.maximum(scatter.sum(axis=(-2, -1)), 0.0)[..., None]
    of_others = np.maximum(whole - 2.0 * scatter.sum(axis=-1) + noise, 0.0)
    variance = noise[..., :, None] * factor[..., None, :] * uneven[..., :n, :]
    spill_variance, total = of_others * factor * uneven[..., n + 1, :], cells.sum(axis=-2)
    spill = total - np.diagonal(cells, axis1=-2, axis2=-1)
    spread = (spill_variance, spill_variance, total, whole * factor * uneven[..., n, :])
    return Effects(cells, variance, variance, spill, *spread)


def merged(graph: Effects, plain: Effects, rejected: BoolArray) -> Effects:
    """Effects by the graph, but by regression for arms for which it is rejected."""
    return Effects(
        *(
            np.where(rejected[..., None, :] if one.ndim > rejected.ndim else rejected, other, one)
            for one, other in zip(graph, plain, strict=True)
        )
    )


def interval(centre: Array, variance: Array, beyond: Array | None = None) -> Array:
    """95% intervals, low and high along a new last axis; beyond: the variance on the side away from 0, if another."""
    side = SIDE * np.sqrt(variance)
    far = side if beyond is None else SIDE * np.sqrt(np.maximum(beyond, variance))
    positive = centre >= 0.0
    return np.stack([centre - np.where(positive, side, far), centre + np.where(positive, far, side)], axis=-1)


def edge_interval(equations: Equations, allowed: BoolArray, signed: bool) -> Array:
    """95% intervals of the edges in case that they exist, with 0 unless it is less probable than 2.5%.

    An interval of the mixture with 0 would be narrower, but would contain too few of the edges that exist.
    """
    law, probability = interval_if_existing(equations, signed), equations.probability[..., None]
    with_zero = np.stack([np.minimum(law[..., 0], 0.0), np.maximum(law[..., 1], 0.0)], axis=-1)
    found = np.where(probability < 1.0 - ABSENT, with_zero, law)
    return np.where(allowed[..., None] & (probability > ABSENT), found, 0.0)
