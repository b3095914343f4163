"""Worlds from the posterior given a log: from own rewards and outcomes, or from outcomes alone."""

import numpy as np

from spillover.evaluation.log import Log
from spillover.evaluation.own_rewards import OwnRewards, own_rewards
from spillover.evaluation.regression import (
    Chains,
    Prior,
    Sums,
    residual_correlation,
    spread_of,
    started,
    sums_of,
    sweep,
)
from spillover.evaluation.relative import FLAT, relative_effects
from spillover.evaluation.worlds import Worlds
from spillover.types import Array

SWEEPS = 15
SPREADS = (0.03, 0.1, 0.3, 0.6, 1.2)  # of an arm's effects on others, in units of its effect on its own outcome
OWN = (0.01, 0.03, 0.1, 0.3, 1.0)  # of what effects of rewards on their own outcomes differ by from 1
HIDDEN = (0.003, 0.03, 0.1, 0.3, 1.0)  # of what deviations of rewards from their means tell about outcomes


def drawn_worlds(log: Log, draws: int, seed: int = 0) -> Worlds:
    """Draw worlds from the posterior."""
    generator = np.random.Generator(np.random.Philox(seed))
    if log.z is None:
        return relative_effects(log, draws, generator)
    own = own_rewards(log, draws, generator)
    if log.spills:
        return from_rewards(log, own, draws, generator)
    n = len(log.arms)
    return Worlds(
        log=log,
        effects=np.broadcast_to(np.eye(n), (draws, n, n)),
        own=own.paths,
        fixed=np.zeros((draws, n, log.fixed.shape[1])),
        reward_residuals=own.residuals,
        residuals=np.zeros_like(log.y),
        binary=is_binary(log),
    )


def is_binary(log: Log) -> bool:
    """Whether all own rewards are 0 or 1."""
    assert log.z is not None
    return bool(np.isin(log.z[log.x], (0.0, 1.0)).all() and (log.amounts[log.x] == 1.0).all())


def from_rewards(log: Log, own: OwnRewards, draws: int, generator: np.random.Generator) -> Worlds:
    """Means from z; effects from the regression of y on z, and on what z differs by from its mean.

    The latter takes out hidden causes that rewards and outcomes have in common; its size is learned.
    """
    assert log.z is not None
    surprise = log.z - log.amounts * own.average[log.block]
    columns = np.column_stack([log.fixed, log.z, surprise])
    sums, spread = sums_of(columns, log.y), spread_of(log.y)
    prior = prior_of(log, spread)
    chains = settled(sums, prior, log.y, columns, spread, draws, generator)
    first, last = log.fixed.shape[1], log.fixed.shape[1] + len(log.arms)
    found = chains.coefficients
    return Worlds(
        log=log,
        effects=found[..., first:last],
        own=own.paths,
        fixed=found[..., :first],
        reward_residuals=own.residuals,
        residuals=log.y - columns[:, :last] @ found[..., :last].mean(axis=0).T,
        binary=is_binary(log),
    )


def settled(
    sums: Sums, prior: Prior, y: Array, columns: Array, spread: Array, draws: int, generator: np.random.Generator
) -> Chains:
    """Chains after enough sweeps; residuals of the first half of them tell how outcomes are correlated."""
    chains, correlation = started(prior, spread, draws, generator), np.eye(len(spread))
    for number in range(SWEEPS):
        chains = sweep(chains, sums, prior, spread, correlation, generator)
        if number == SWEEPS // 2:
            correlation = residual_correlation(y - columns @ chains.coefficients.mean(axis=0).T)
    return chains


def prior_of(log: Log, spread: Array) -> Prior:
    """A reward is expected to add itself to the outcome of its arm; each arm has its own scale of effects on others."""
    assert log.z is not None
    n, first = len(log.arms), log.fixed.shape[1]
    unit = max(1.0, float(np.sqrt(spread.mean() / max(log.z.var(axis=0).mean(), np.finfo(float).tiny))))
    unit = 1.0 if unit < 10.0 else unit  # outcomes vary more than rewards anyway: only other units count
    mean, precision = np.zeros((n, first + 2 * n)), np.zeros((n, first + 2 * n))
    group = np.full(mean.shape, -1)
    precision[:, :first] = FLAT / spread[:, None]
    group[:, first : first + n] = np.arange(n)
    group[:, first + n :] = n
    own = np.arange(n)
    mean[own, first + own] = 1.0
    group[own, first + own] = n + 1
    return Prior(mean, precision, group, unit * np.array([SPREADS] * n + [HIDDEN, OWN]))
