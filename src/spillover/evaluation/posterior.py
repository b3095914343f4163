"""Draw worlds from the posterior given a log, by Gibbs sampling in many chains at once."""

from typing import NamedTuple

import numpy as np

from spillover.evaluation.worlds import Log, Worlds
from spillover.types import Array

JITTER = 1e-10  # of the prior variance, so that covariances can be factored


class Evidence(NamedTuple):
    """The likelihood of each stretch given the quantities u: its log likelihood is vector'u - u' matrix u / 2."""

    matrix: Array  # (*batch, stretches, n, n)
    vector: Array  # (*batch, stretches, n)


class Process(NamedTuple):
    """A process in which quantities revert to 0."""

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


LEAST_RESIDUAL, WORTH = 1e-7, 0.5  # share of the outcomes' variance that is noise at least, and rounds this is worth
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
    squares = residual_squares(sums, coefficients) + WORTH * LEAST_RESIDUAL * spread
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


SWEEPS = 15
SPREADS = (0.03, 0.1, 0.3, 0.6, 1.2)  # of an arm's effects on others, in units of its effect on its own outcome
OWN_GAINS = (0.01, 0.03, 0.1, 0.3, 1.0)  # of what effects of rewards on their own outcomes differ by from 1
HIDDEN = (0.003, 0.03, 0.1, 0.3, 1.0)  # of what deviations of rewards from their means tell about outcomes

# of own rewards
REWARD_VARIANCES = (1 / 12, 1 / 40, 1 / 160)  # of means, in units of their range; the first is that of a uniform one
REWARD_HAZARDS = (1e-7, 1e-3, 4e-3, 1.6e-2)  # how often means change, per round; the first is never
HAZARD_PRIOR = (0.4, 0.2, 0.2, 0.2)
LEVEL_DEVIATION = 0.5  # prior of the average mean reward, around the middle of the range
POOLED = 5.0  # rewards that the common noise is worth for an arm
LEAST_NOISE = 1e-6

# of effects where only outcomes are observed
STEADY_SWEEPS, MOVING_SWEEPS = 12, 8  # with factors of 1, and with factors that move
OWN_EFFECTS = (0.03, 0.08, 0.2, 0.5, 1.0)  # on own outcomes, in units of how far the range of effects reaches
OTHER_EFFECTS = (0.01, 0.03, 0.1, 0.25, 0.6)  # of an arm's effects on others
CONSTANT = 1e-3  # deviation of a factor that does not move
FACTOR_DEVIATIONS = (0.25, 0.6)  # of factors that do
FACTOR_HAZARDS = (1e-3, 4e-3, 1.6e-2)
UNMOVED = 0.5  # prior probability that nothing moves
FLAT = 1e-4  # precision of coefficients that may be anything, in units of the outcome's variance


class OwnRewards(NamedTuple):
    """Draws of the means, and their average."""

    paths: Array  # (draws, stretches, arms)
    average: Array  # (stretches, arms): the average of the draws
    residuals: tuple[Array, ...]  # of each arm: what its rewards differ by from their averages


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
    prior = prior_of_gains(log, spread_of(log.y))
    chains, _ = settled(prior, log.y, columns, draws, SWEEPS, generator)
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
    prior: Prior, y: Array, columns: Array, draws: int, sweeps: int, generator: np.random.Generator
) -> tuple[Chains, Array]:
    """Chains after some sweeps; residuals of the first half of them tell how outcomes are correlated."""
    sums, spread = sums_of(columns, y), spread_of(y)
    chains, correlation = started(prior, spread, draws, generator), np.eye(len(spread))
    for number in range(sweeps):
        chains = sweep(chains, sums, prior, spread, correlation, generator)
        if number == sweeps // 2:
            correlation = residual_correlation(y - columns @ chains.coefficients.mean(axis=0).T)
    return chains, correlation


def prior_of_gains(log: Log, spread: Array) -> Prior:
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
    return Prior(mean, precision, group, unit * np.array([SPREADS] * n + [HIDDEN, OWN_GAINS]))


def own_rewards(log: Log, draws: int, generator: np.random.Generator) -> OwnRewards:
    """Draw paths of the means: how often they change and how far apart they are is learned from all arms together."""
    low, high = (float(end) for end in log.problem.reward_range)
    width, z = high - low, log.z
    assert z is not None
    units = z / width
    noise = reward_noise(log, units)
    matrix, vector = stretch_sums(log, units, noise)
    cells = [(variance, hazard) for variance in REWARD_VARIANCES for hazard in REWARD_HAZARDS]
    length = len(log.x) / len(log.starts)
    process = Process(
        np.array([[variance] * len(log.arms) for variance, _ in cells]),
        np.array([[(1.0 - hazard) ** length] * len(log.arms) for _, hazard in cells]),
    )
    level, deviation, weight = level_of(matrix, vector, process, (low + high) / 2 / width)
    weight = weight + np.log(np.tile(HAZARD_PRIOR, len(REWARD_VARIANCES)))
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


def relative_effects(log: Log, draws: int, generator: np.random.Generator) -> Worlds:
    """Draw worlds by alternating between effects and factors."""
    spread, first = spread_of(log.y), log.fixed.shape[1]
    prior = prior_of_effects(log, spread)
    columns = np.column_stack([log.fixed, log.amounts])
    chains, correlation = settled(prior, log.y, columns, draws, STEADY_SWEEPS, generator)
    factors = np.ones((draws, len(log.starts), len(log.arms)))
    process = drawn_process(log, chains, correlation, generator)
    moving = process.variance > CONSTANT**2
    for _ in range(MOVING_SWEEPS if moving.any() else 0):
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
    """The residuals of the average of the draws."""
    first = log.fixed.shape[1]
    effects = np.einsum("kij,ktj->ti", coefficients[..., first:], log.amounts * factors[:, log.block, :])
    return np.asarray(log.y - log.fixed @ coefficients[..., :first].mean(axis=0).T - effects / len(coefficients))


def prior_of_effects(log: Log, spread: Array) -> Prior:
    """Effects on the arms' own outcomes share a scale; effects on others have one for each arm."""
    low, high = (float(end) for end in log.problem.reward_range)
    size, first, n = (high - low) / 2, log.fixed.shape[1], len(log.arms)
    precision = np.broadcast_to(FLAT / spread[:, None], (len(spread), first + n))
    group = np.full(precision.shape, -1)
    group[:, first:] = n if len(spread) < n else np.arange(n)
    if len(spread) == n:
        group[np.arange(n), first + np.arange(n)] = n
    return Prior(np.zeros_like(precision), precision, group, size * np.array([OTHER_EFFECTS] * n + [OWN_EFFECTS]))


def stretch_evidence(log: Log, chains: Chains, correlation: Array) -> Evidence:
    """The likelihood of each stretch given the factors, as deviations from 1."""
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


def possible_processes(log: Log) -> tuple[Process, Array]:
    """All ways in which factors may move, and their prior probabilities."""
    length = len(log.x) / len(log.starts)
    moving = [(deviation**2, (1.0 - hazard) ** length) for deviation in FACTOR_DEVIATIONS for hazard in FACTOR_HAZARDS]
    pairs = [(CONSTANT**2, 1.0 - 1e-9), *moving]
    prior = np.array([UNMOVED, *[(1.0 - UNMOVED) / len(moving)] * len(moving)])
    return Process(*(np.array(values) for values in zip(*pairs, strict=True))), prior


def drawn_process(log: Log, chains: Chains, correlation: Array, generator: np.random.Generator) -> Process:
    """Draw how factors move in each chain, by the likelihood with the average effects of all chains."""
    average = Chains(*(values.mean(axis=0, keepdims=True) for values in chains))
    possible, prior = possible_processes(log)
    fits = filtered(stretch_evidence(log, average, correlation), possible).likelihood + np.log(prior)
    share = np.exp(fits - fits.max())
    chosen = generator.choice(len(share), len(chains.coefficients), p=share / share.sum())
    return Process(possible.variance[chosen], possible.decay[chosen])
