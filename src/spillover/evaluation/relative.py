"""The posterior of effects where only outcomes are observed.

The outcomes of round t are (1, context) coefficients + effects (amounts * s_t) + noise. An arm's effects on all
outcomes keep their direction, and move together by the factor s_t around 1: when an arm's own effect changes, what
spills over changes with it. Effects given factors are a regression, factors given effects are a Gaussian process; they
are drawn in turn (Gibbs sampling), in as many chains as there are draws.
"""

import numpy as np

from spillover.evaluation.log import Log
from spillover.evaluation.paths import Evidence, Process, drawn_paths, filtered
from spillover.evaluation.regression import (
    Chains,
    Prior,
    residual_correlation,
    spread_of,
    started,
    sums_of,
    sweep,
)
from spillover.evaluation.worlds import Worlds
from spillover.types import Array

FIRST_SWEEPS, SWEEPS = 12, 8  # with factors of 1, and with factors that move
OWN = (0.03, 0.08, 0.2, 0.5, 1.0)  # of effects on own outcomes, in units of how far the range of effects reaches
OTHERS = (0.01, 0.03, 0.1, 0.25, 0.6)  # of an arm's effects on others
CONSTANT = 1e-3  # deviation of a factor that does not move
DEVIATIONS = (0.25, 0.6)  # of factors that do
HAZARDS = (1e-3, 4e-3, 1.6e-2)
STEADY = 0.5  # prior probability that nothing moves
FLAT = 1e-4  # precision of coefficients that may be anything, in units of the outcome's variance


def relative_effects(log: Log, draws: int, generator: np.random.Generator) -> Worlds:
    """Draw worlds by alternating between effects and factors."""
    spread, first = spread_of(log.y), log.fixed.shape[1]
    prior = prior_of(log, spread)
    columns = np.column_stack([log.fixed, log.amounts])
    sums, correlation = sums_of(columns, log.y), np.eye(len(spread))
    chains = started(prior, spread, draws, generator)
    for number in range(FIRST_SWEEPS):
        chains = sweep(chains, sums, prior, spread, correlation, generator)
        if number == FIRST_SWEEPS // 2:
            correlation = residual_correlation(log.y - columns @ chains.coefficients.mean(axis=0).T)
    factors = np.ones((draws, len(log.starts), len(log.arms)))
    process = drawn_process(log, chains, correlation, generator)
    moving = process.variance > CONSTANT**2
    for _ in range(SWEEPS if moving.any() else 0):
        told = stretch_evidence(log, chains, correlation)
        factors = np.where(moving[:, None, None], 1.0 + drawn_paths(filtered(told, process), process, generator), 1.0)
        moved = np.concatenate([spread_out(log.fixed, draws), log.amounts * factors[:, log.block, :]], axis=-1)
        chains = sweep(chains, sums_of(moved, log.y), prior, spread, correlation, generator)
    return Worlds(
        log=log,
        effects=chains.coefficients[..., first:],
        own=factors,
        fixed=chains.coefficients[..., :first],
        reward_residuals=(),
        residuals=residuals_of(log, chains.coefficients, factors),
        binary=False,
    )


def spread_out(fixed: Array, draws: int) -> Array:
    return np.broadcast_to(fixed, (draws, *fixed.shape))


def residuals_of(log: Log, coefficients: Array, factors: Array) -> Array:
    """What the average of the draws leaves unexplained."""
    first = log.fixed.shape[1]
    effects = np.einsum("kij,ktj->ti", coefficients[..., first:], log.amounts * factors[:, log.block, :])
    return np.asarray(log.y - log.fixed @ coefficients[..., :first].mean(axis=0).T - effects / len(coefficients))


def prior_of(log: Log, spread: Array) -> Prior:
    """Effects on the arms' own outcomes share a scale; effects on others have one for each arm."""
    low, high = (float(end) for end in log.problem.reward_range)
    size, first, n = (high - low) / 2, log.fixed.shape[1], len(log.arms)
    precision = np.broadcast_to(FLAT / spread[:, None], (len(spread), first + n))
    group = np.full(precision.shape, -1)
    group[:, first:] = n if len(spread) < n else np.arange(n)
    if len(spread) == n:
        group[np.arange(n), first + np.arange(n)] = n
    return Prior(np.zeros_like(precision), precision, group, size * np.array([OTHERS] * n + [OWN]))


def stretch_evidence(log: Log, chains: Chains, correlation: Array) -> Evidence:
    """What the outcomes of each stretch say about the factors, as deviations from 1."""
    first = log.fixed.shape[1]
    effects, fixed = chains.coefficients[..., first:], chains.coefficients[..., :first]
    deviation = np.sqrt(chains.variance)
    inverse = np.linalg.inv(correlation) / (deviation[..., :, None] * deviation[..., None, :])
    weighed = inverse @ effects  # (draws, outcomes, arms)
    together = np.swapaxes(effects, -1, -2) @ weighed
    products = np.add.reduceat(log.amounts[:, :, None] * log.amounts[:, None, :], log.starts, axis=0)
    rest = log.y - log.fixed @ np.swapaxes(fixed, -1, -2)
    vector = np.add.reduceat(log.amounts * (rest @ weighed), log.starts, axis=-2)
    matrix = together[..., None, :, :] * products
    return Evidence(matrix, vector - matrix.sum(axis=-1))


def cells(log: Log) -> tuple[Process, Array]:
    """All ways in which factors may move, and their prior probabilities."""
    length = len(log.x) / len(log.starts)
    moving = [(deviation**2, (1.0 - hazard) ** length) for deviation in DEVIATIONS for hazard in HAZARDS]
    pairs = [(CONSTANT**2, 1.0 - 1e-9), *moving]
    prior = np.array([STEADY, *[(1.0 - STEADY) / len(moving)] * len(moving)])
    return Process(*(np.array(values) for values in zip(*pairs, strict=True))), prior


def drawn_process(log: Log, chains: Chains, correlation: Array, generator: np.random.Generator) -> Process:
    """How factors move in each chain, by how probable the log is with the average effects of all chains."""
    average = Chains(*(values.mean(axis=0, keepdims=True) for values in chains))
    possible, prior = cells(log)
    fits = filtered(stretch_evidence(log, average, correlation), possible).likelihood + np.log(prior)
    share = np.exp(fits - fits.max())
    chosen = generator.choice(len(share), len(chains.coefficients), p=share / share.sum())
    return Process(possible.variance[chosen], possible.decay[chosen])
