"""Bayesian regressions by Gibbs sampling in many chains at once, and quantities that revert to their mean.

Regressions are of several outcomes on the same columns. Coefficients have normal priors. The scale of some of them is
learned: groups of coefficients share one, on a grid, so that arms with few rounds keep a wide prior, whatever the
others are like.

A quantity that is redrawn now and then, with probability h a round, has the covariance v (1 - h)^|t - s|. So has the
Gaussian process here, whose posterior is exact. Where nothing was observed, it is as wide as the prior.
"""

from typing import NamedTuple

import numpy as np

from spillover.types import Array

JITTER = 1e-10  # of the prior variance, so that covariances can be factored


class Evidence(NamedTuple):
    """What each stretch says about the quantities u: its log likelihood is vector'u - u' matrix u / 2."""

    matrix: Array  # (*batch, stretches, n, n)
    vector: Array  # (*batch, stretches, n)


class Process(NamedTuple):
    """How the quantities move around 0."""

    variance: Array  # (*batch,)
    decay: Array  # (*batch,): the correlation from one stretch to the next


class Filtered(NamedTuple):
    """The posterior of each stretch given it and those before."""

    mean: Array  # (*batch, stretches, n)
    covariance: Array  # (*batch, stretches, n, n)
    likelihood: Array  # (*batch,): logarithm of the marginal likelihood


def filtered(evidence: Evidence, process: Process) -> Filtered:
    """Go through the stretches in order."""
    n, stretches = evidence.vector.shape[-1], evidence.vector.shape[-2]
    identity, variance = np.eye(n), process.variance[..., None, None]
    kept = process.decay[..., None, None] ** 2
    mean = np.zeros((*np.broadcast_shapes(evidence.vector.shape[:-2], process.decay.shape), n))
    covariance = np.broadcast_to(variance * identity, (*mean.shape, n))
    likelihood = np.zeros(mean.shape[:-1])
    means, covariances = [], []
    for b in range(stretches):
        if b:
            mean = process.decay[..., None] * mean
            covariance = kept * covariance + (1.0 - kept) * variance * identity
        matrix, vector = evidence.matrix[..., b, :, :], evidence.vector[..., b, :]
        shrunk = identity + covariance @ matrix
        rest = vector - matvec(matrix, mean)
        likelihood = likelihood + np.vecdot(vector, mean) - 0.5 * np.vecdot(mean, matvec(matrix, mean))
        covariance = np.asarray(np.linalg.solve(shrunk, covariance), float)
        covariance = 0.5 * (covariance + np.swapaxes(covariance, -1, -2))
        step = matvec(covariance, rest)
        likelihood = likelihood + 0.5 * (np.vecdot(rest, step) - np.linalg.slogdet(shrunk)[1])
        mean = mean + step
        means.append(mean)
        covariances.append(covariance)
    return Filtered(np.stack(means, axis=-2), np.stack(covariances, axis=-3), likelihood)


def drawn_paths(found: Filtered, process: Process, generator: np.random.Generator) -> Array:
    """One path of each batch member from the posterior given all stretches, (*batch, stretches, n)."""
    mean, covariance = found.mean, found.covariance
    n, stretches = mean.shape[-1], mean.shape[-2]
    noise = generator.standard_normal(mean.shape)
    floor = JITTER * process.variance[..., None, None] * np.eye(n)
    kept = process.decay[..., None, None] ** 2
    path = np.empty(mean.shape)
    now_mean, now_covariance = mean[..., -1, :], covariance[..., -1, :, :]
    for b in range(stretches - 1, -1, -1):
        if b < stretches - 1:
            here = covariance[..., b, :, :]
            ahead = kept * here + (1.0 - kept) * process.variance[..., None, None] * np.eye(n) + floor
            gain = process.decay[..., None, None] * np.swapaxes(np.linalg.solve(ahead, here), -1, -2)
            expected = process.decay[..., None] * mean[..., b, :]
            now_mean = mean[..., b, :] + matvec(gain, path[..., b + 1, :] - expected)
            now_covariance = here - gain @ ahead @ np.swapaxes(gain, -1, -2)
        root = square_root(now_covariance + floor)
        path[..., b, :] = now_mean + matvec(root, noise[..., b, :])
    return path


def square_root(covariance: Array) -> Array:
    """A factor of covariances that may be singular up to rounding."""
    if covariance.shape[-1] == 1:
        return np.sqrt(np.maximum(covariance, 0.0))
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def matvec(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])


LEAST_NOISE, WORTH = 1e-7, 0.5  # share of the outcomes' variance that is noise at least, and rounds this is worth
FIRST_NOISE = 0.1  # share of an outcome's variance at which chains start


class Sums(NamedTuple):
    """Products of the columns and outcomes of all rounds."""

    gram: Array  # (*batch, columns, columns)
    cross: Array  # (*batch, columns, outcomes)
    squares: Array  # (outcomes,)
    rounds: int


class Prior(NamedTuple):
    """Normal priors of the coefficients. Those of group g have the deviation of the group, a value of its grid."""

    mean: Array  # (outcomes, columns)
    precision: Array  # (outcomes, columns); not used for coefficients of a group
    group: Array  # (outcomes, columns): the group of a coefficient; -1: none
    grid: Array  # (groups, values): deviations that a group may have, all equally probable


class Chains(NamedTuple):
    """The present values of all chains."""

    coefficients: Array  # (chains, outcomes, columns)
    variance: Array  # (chains, outcomes): of the residuals
    scales: Array  # (chains, groups)


def sums_of(columns: Array, y: Array) -> Sums:
    turned = np.swapaxes(columns, -1, -2)
    return Sums(turned @ columns, turned @ y, (y**2).sum(axis=0), len(y))


def spread_of(y: Array) -> Array:
    """The variance of each outcome; of one that never varies a small share of the others'."""
    found = y.var(axis=0)
    return np.asarray(np.maximum(found, max(1e-3 * float(found.mean()), np.finfo(float).tiny)))


def started(prior: Prior, spread: Array, chains: int, generator: np.random.Generator) -> Chains:
    """Chains at values from the prior."""
    places = generator.integers(prior.grid.shape[1], size=(chains, len(prior.grid)))
    scales = np.take_along_axis(prior.grid[None], places[..., None], axis=-1)[..., 0]
    variance = np.broadcast_to(FIRST_NOISE * spread, (chains, len(spread)))
    return Chains(np.broadcast_to(prior.mean, (chains, *prior.mean.shape)), variance, scales)


def precision_of(prior: Prior, scales: Array) -> Array:
    """The prior precision of all coefficients, (chains, outcomes, columns)."""
    grouped = scales[:, np.maximum(prior.group, 0)] ** -2 if scales.shape[1] else 1.0
    return np.where(prior.group >= 0, grouped, prior.precision)


def posterior(sums: Sums, mean: Array, precision: Array, variance: Array) -> tuple[Array, Array]:
    """Covariance and mean of the coefficients, (chains, outcomes, columns, columns) and (chains, outcomes, columns)."""
    scale = 1.0 / variance[..., None]
    total = sums.gram[..., None, :, :] * scale[..., None] + precision[..., None] * np.eye(mean.shape[-1])
    vector = np.swapaxes(sums.cross, -1, -2) * scale + precision * mean
    covariance: Array = np.asarray(np.linalg.inv(total), float)
    return 0.5 * (covariance + np.swapaxes(covariance, -1, -2)), (covariance @ vector[..., None])[..., 0]


def sweep(
    chains: Chains, sums: Sums, prior: Prior, spread: Array, correlation: Array, generator: np.random.Generator
) -> Chains:
    """New coefficients, then residual variances, then scales.

    correlation: of the residuals of the outcomes. Errors of a column's coefficients are correlated just so.
    """
    covariance, mean = posterior(sums, prior.mean, precision_of(prior, chains.scales), chains.variance)
    together = np.linalg.cholesky(correlation) @ generator.standard_normal(mean.shape)
    coefficients = mean + (np.linalg.cholesky(covariance) @ together[..., None])[..., 0]
    squares = residual_squares(sums, coefficients) + WORTH * LEAST_NOISE * spread
    variance = squares / generator.chisquare(sums.rounds + WORTH, squares.shape)
    return Chains(coefficients, variance, drawn_scales(coefficients, prior, generator))


def residual_squares(sums: Sums, coefficients: Array) -> Array:
    """The sum of squared residuals of each outcome."""
    explained = np.vecdot(coefficients, np.swapaxes(sums.cross, -1, -2))
    fitted = np.vecdot(coefficients, (sums.gram[..., None, :, :] @ coefficients[..., None])[..., 0])
    return np.asarray(np.maximum(sums.squares - 2.0 * explained + fitted, 0.0))


def drawn_scales(coefficients: Array, prior: Prior, generator: np.random.Generator) -> Array:
    """The scale of each group given its coefficients, (chains, groups)."""
    rest = (coefficients - prior.mean) ** 2
    found = np.empty((len(coefficients), len(prior.grid)))
    for g, grid in enumerate(prior.grid):
        members = prior.group == g
        fit = -members.sum() * np.log(grid) - 0.5 * rest[:, members].sum(axis=-1)[:, None] / grid**2
        share = np.cumsum(np.exp(fit - fit.max(axis=-1, keepdims=True)), axis=-1)
        drawn = generator.uniform(size=(len(fit), 1)) * share[:, -1:]
        found[:, g] = grid[np.minimum((share < drawn).sum(axis=-1), len(grid) - 1)]
    return found


def residual_correlation(residuals: Array) -> Array:
    """The correlations of the residuals, (outcomes, outcomes), drawn to 0 if there are few rounds."""
    rounds, outcomes = residuals.shape
    centred = residuals - residuals.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0))
    unit = centred / np.where(deviation > 0, deviation, 1.0)
    trusted = rounds / (rounds + 2.0 * outcomes)
    found = trusted * (unit.T @ unit) / rounds
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)
