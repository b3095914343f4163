"""The effects of choosing an arm on each outcome, and their uncertainty: by the equations, and without a graph."""

from typing import NamedTuple

import numpy as np

from spillover.policies.instrumental_equations import EDGE_SCALE
from spillover.policies.instrumental_scores import FACTOR, REGRESSED
from spillover.policies.instrumental_state import Belief, Equations, InstrumentalState
from spillover.types import Array, BoolArray

SIDE = 1.959963984540054  # standard deviations on each side of a 95% interval
ABSENT = 0.025  # an edge less probable than this is taken for 0 in an interval


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


def reduced_effects(lines: Array) -> Effects:
    """Effects by regression of all outcomes on decisions and context, without a graph; see `instrumental_scores`."""
    n = lines.shape[-1]
    cells, scatter = lines[..., REGRESSED : REGRESSED + n, :], lines[..., REGRESSED + n : REGRESSED + 2 * n, :]
    factor, uneven = lines[..., FACTOR, :], lines[..., REGRESSED + 2 * n :, :]
    noise = np.maximum(np.diagonal(scatter, axis1=-2, axis2=-1), 0.0)
    whole = np.maximum(scatter.sum(axis=(-2, -1)), 0.0)[..., None]
    of_others = np.maximum(whole - 2.0 * scatter.sum(axis=-1) + noise, 0.0)
    total = cells.sum(axis=-2)
    direct = np.diagonal(cells, axis1=-2, axis2=-1)
    cell_variance = noise[..., :, None] * factor[..., None, :] * uneven[..., :n, :]
    spill_variance = of_others * factor * uneven[..., n + 1, :]
    return Effects(
        cells,
        cell_variance,
        cell_variance,
        total - direct,
        spill_variance,
        spill_variance,
        total,
        whole * factor * uneven[..., n, :],
    )


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
