"""Quantities that revert to their mean: their posterior given all rounds, those before and those after.

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
