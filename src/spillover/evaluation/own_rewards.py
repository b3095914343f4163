"""The posterior of the arms' own mean rewards where own rewards z are observed."""

from typing import NamedTuple

import numpy as np

from spillover.evaluation.log import Log
from spillover.evaluation.paths import Evidence, Process, drawn_paths, filtered
from spillover.types import Array

VARIANCES = (1 / 12, 1 / 40, 1 / 160)  # of mean rewards, in units of their range; the first is that of a uniform one
HAZARDS = (1e-7, 1e-3, 4e-3, 1.6e-2)  # how often means change, per round; the first is never
PRIOR = (0.4, 0.2, 0.2, 0.2)
LEVEL_DEVIATION = 0.5  # prior of the average mean reward, around the middle of the range
POOLED = 5.0  # rewards that the common noise is worth for an arm
LEAST_NOISE = 1e-6


class OwnRewards(NamedTuple):
    """Draws of the means, and their average."""

    paths: Array  # (draws, stretches, arms)
    average: Array  # (stretches, arms): the average of the draws
    residuals: tuple[Array, ...]  # of each arm: what its rewards differ by from their averages


def own_rewards(log: Log, draws: int, generator: np.random.Generator) -> OwnRewards:
    """Draw paths of the means: how often they change and how far apart they are is learned from all arms together."""
    low, high = (float(end) for end in log.problem.reward_range)
    width, z = high - low, log.z
    assert z is not None
    units = z / width
    noise = reward_noise(log, units)
    matrix, vector = stretch_sums(log, units, noise)
    cells = [(variance, hazard) for variance in VARIANCES for hazard in HAZARDS]
    length = len(log.x) / len(log.starts)
    process = Process(
        np.array([[variance] * len(log.arms) for variance, _ in cells]),
        np.array([[(1.0 - hazard) ** length] * len(log.arms) for _, hazard in cells]),
    )
    level, deviation, weight = level_of(matrix, vector, process, (low + high) / 2 / width)
    weight = weight + np.log(np.tile(PRIOR, len(VARIANCES)))
    share = np.exp(weight - weight.max())
    chosen = generator.choice(len(cells), draws, p=share / share.sum())
    levels = level[chosen] + deviation[chosen] * generator.standard_normal(draws)
    here = Process(process.variance[chosen], process.decay[chosen])
    evidence = Evidence(matrix, vector - matrix[..., 0] * levels[:, None, None, None])
    paths = drawn_paths(filtered(evidence, here), here, generator)[..., 0]
    paths = (np.swapaxes(paths, -1, -2) + levels[:, None, None]) * width
    average = paths.mean(axis=0)
    rest = [
        (z[log.x[:, j], j] / log.amounts[log.x[:, j], j]) - average[log.block[log.x[:, j]], j]
        for j in range(len(log.arms))
    ]
    return OwnRewards(paths, average, tuple(rest))


def reward_noise(log: Log, units: Array) -> Array:
    """The variance of each arm's rewards around their means, from successive ones: slow changes do not count."""
    squares, counts = np.zeros(len(log.arms)), np.zeros(len(log.arms))
    for j in range(len(log.arms)):
        here = log.x[:, j]
        steps = np.diff(units[here, j] / log.amounts[here, j])
        squares[j], counts[j] = (steps**2).sum() / 2, len(steps)
    pooled = squares.sum() / counts.sum() if counts.sum() else LEAST_NOISE
    return np.asarray(np.maximum((squares + POOLED * pooled) / (counts + POOLED), LEAST_NOISE))


def stretch_sums(log: Log, units: Array, noise: Array) -> tuple[Array, Array]:
    """The evidence of each arm, (arms, stretches, 1, 1) and (arms, stretches, 1)."""
    precise = np.add.reduceat(log.amounts**2, log.starts, axis=0) / noise
    vector = np.add.reduceat(log.amounts * units, log.starts, axis=0) / noise
    return precise.T[..., None, None], vector.T[..., None]


def level_of(matrix: Array, vector: Array, process: Process, middle: float) -> tuple[Array, Array, Array]:
    """The average mean reward of each cell of the grid: mean, deviation, and log evidence of the cell.

    The log likelihood is a parabola in the average, known from three points.
    """
    at = []
    for level in (0.0, 1.0, 2.0):
        moved = Evidence(matrix, vector - matrix[..., 0] * level)
        shift = level * vector[..., 0].sum(axis=-1) - 0.5 * level**2 * matrix[..., 0, 0].sum(axis=-1)
        at.append((filtered(moved, process).likelihood + shift).sum(axis=-1))
    curve = -(at[2] - 2.0 * at[1] + at[0])
    slope = at[1] - at[0] + curve / 2
    precision = curve + LEVEL_DEVIATION**-2
    level = (slope + middle * LEVEL_DEVIATION**-2) / precision
    top = at[0] + 0.5 * level**2 * precision - 0.5 * np.log(precision)
    return level, precision**-0.5, top
