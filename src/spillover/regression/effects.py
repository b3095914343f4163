"""The effect of choosing each arm: the posterior of total effects, averaged over structures."""

from collections.abc import Collection, Sequence
from math import erf
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.regression.mixed import MixedModel
from spillover.regression.sparse import SparseEffects, sparse_effects
from spillover.regression.structure import PULLED, Structure, Table, correlations
from spillover.types import Array, IntArray

POWERS = (1.0, 0.5)  # of amounts that vary: proportional effects, or effects that saturate
LEAST_WEIGHT = 0.03  # of a structure that is averaged over
FEWEST = 2  # structures of a kind that is probable, though none of them is
ADJUSTED = 2  # passes in which what outcomes share is taken out
SHRUNK = 2.0  # rounds, for each outcome, by which correlations between outcomes are shrunk
ACTIVE = 0.02  # of the largest: a coefficient with a smaller prior variance is 0
LEARNED = 3.0  # rounds that each prior variance costs, as it was learned from the same data
LIKELY = 0.5  # probability from which on the data, and not the prior alone, speak for effects that move
MOVING = 2.5  # more of the variance where effects move: smooth changes are a poor model of sudden ones
FAT_TAILED = 1.0  # more of the variance where outliers were pulled in: how far was learned from few of them
SATURATED = 2.0  # more of the variance where effects saturate: each arm does so, and carries over, in its own way
PARTS = ("level", "lags", "changes", "outliers", "saturation", "shared")  # that may be left out
HELPFUL = 0.95  # prior probability that arms help on average: otherwise nobody would choose them
ROUNDING = 1e-12  # of an outcome's variance: what is smaller is no noise
DIRECT = ("own", "total", "cross")  # blocks of effects in the same round
IN_TOTAL = ("own", "total", "step", "lag", "lag_mean", "moved")  # blocks of an arm's total, where there is one outcome


class Effects(NamedTuple):
    """Effects of choosing each arm in the usual amount, in the units of the outcomes, with the coming context."""

    total: Array  # (n,): on the sum of all outcomes, over all rounds in which the choice has effects
    covariance: Array  # (n, n): of the totals
    freedom: float  # degrees of freedom of the totals' t distribution
    noise: float  # variance of the sum of the outcomes in one round, whatever is chosen
    baseline: Array  # (m,): outcomes if nothing is chosen, on average over all rounds
    effects: Array  # (m, n): effects[i, j] of arm j on outcome i, the parts of `total`
    deviations: Array  # (m, n): their standard deviations
    spill_deviation: Array  # (n,): of an arm's effect on all outcomes but its own
    probability: Array  # (m, n): that the effect in the same round is not 0
    moved: Array  # (n,): the part of the totals that the coming context adds
    average: Array  # (n,): amounts in an average round, to the power below
    power: float  # effects are proportional to amounts to this power, on average
    structures: tuple[tuple[float, Structure], ...]  # that were averaged over, with their probabilities

    def probability_of(self, *blocks: str) -> float:
        """How probable it is that any of these blocks of `Structure` is there."""
        return sum(weight for weight, one in self.structures if any(getattr(one, block) for block in blocks))

    def compared_with_average(self) -> "Effects":
        """Totals as differences from the average arm, where the same number of arms was chosen in all rounds."""
        centre = np.eye(len(self.total)) - 1.0 / len(self.total)
        return self._replace(total=centre @ self.total, covariance=centre @ self.covariance @ centre)

    @property
    def later_rounds(self) -> int:
        """For how many rounds after its own a choice has effects, by the most probable structures."""
        ways = {one.lags: 0.0 for _, one in self.structures}
        for weight, one in self.structures:
            ways[one.lags] += weight
        return max(ways, key=ways.__getitem__)


class Candidate(NamedTuple):
    """A structure that may be averaged over, of amounts to some power."""

    score: float  # log evidence
    power: float
    table: Table
    structure: Structure

    @property
    def shape(self) -> tuple[float, Structure]:
        """Which blocks there are."""
        return self.power, self.structure.shape

    @property
    def kind(self) -> tuple[float, Structure, int]:
        """Which blocks there are, and how many changes, whenever they were."""
        return self.power, self.structure.shape._replace(changes=()), len(self.structure.changes)


class Posterior(NamedTuple):
    """Of one structure; see `Effects`."""

    total: Array
    covariance: Array
    effects: Array
    deviations: Array
    spill_deviation: Array
    probability: Array
    moved: Array


def estimate_effects(
    amounts: Array, outcomes: Array, context: Array, coming: Array, *, without: Collection[str] = ()
) -> Effects:
    """Regress outcomes on choices, and on whatever else the data show to move them.

    amounts: (rounds, n), 0 where an arm was not chosen, 1 for its usual amount. outcomes: (rounds, m), m being 1, or n
    with one for each arm; NaN where one is not known. context: (rounds, k), standardised. coming: (k,), that of the
    round to be decided. without: `PARTS` to leave out, to see what they bring.

    >>> chosen = np.random.default_rng(0).random((60, 2)) < 0.5
    >>> outcomes = 5.0 + chosen @ [[2.0], [1.0]] + np.random.default_rng(1).normal(0, 0.1, (60, 1))
    >>> estimate_effects(chosen.astype(float), outcomes, np.zeros((60, 0)), np.zeros(0)).total.round(1)
    array([2., 1.])
    """
    validate.require(set(without) <= set(PARTS), "without", without, f"some of {', '.join(PARTS)}")
    varied = "saturation" not in without and bool(((amounts != 0) & (amounts != 1)).any())
    tables = {
        power: Table(raised(amounts, power), outcomes, context, without) for power in (POWERS if varied else (1.0,))
    }
    pulled = [table.search() for table in tables.values()]
    if len(pulled) > 1 and any((one != pulled[0]).any() for one in pulled):  # evidence of different data has no ratio
        for table in tables.values():
            table.search_with(np.mean(pulled, axis=0))
    found, weights = worth_averaging(
        [Candidate(score, power, table, one) for power, table in tables.items() for score, one in table.found()]
    )
    parts = [posterior(table, one, coming) for _, _, table, one in found]
    mean = averaged(weights, [part.total for part in parts])
    spread = [part.covariance + np.outer(part.total - mean, part.total - mean) for part in parts]
    _, _, table, best = found[int(weights.argmax())]
    rounds = max(averaged(weights, [informative_rounds(table, one) for *_, table, one in found]), 3.0)
    moving = float(weights @ [bool(one.drift or one.changes) for *_, one in found])
    saturated = float(weights @ [power < 1.0 for _, power, _, _ in found])
    fat_tailed = float((np.nan_to_num(np.abs(pulled[0] - table.measured)) > PULLED).any(axis=0).mean())
    misfit = MOVING * min(moving / LIKELY, 1.0) ** 2 + SATURATED * saturated + FAT_TAILED * fat_tailed
    learned = best.lags + (table.m > 1)  # the variance of the effects of one outcome is averaged over
    doubt = (1.0 + LEARNED * table.n * learned / rounds) * (1.0 + misfit)
    effects = averaged(weights, [part.effects for part in parts])
    squares = averaged(weights, [part.deviations**2 + (part.effects - effects) ** 2 for part in parts])
    seen, known = np.isfinite(outcomes), np.isfinite(outcomes).any(axis=1)
    average = np.where(seen, outcomes, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    usual = averaged(weights, [raised(amounts[known], power).mean(axis=0) for _, power, _, _ in found])
    return Effects(
        total=mean,
        covariance=averaged(weights, spread) * doubt,
        freedom=float(max(rounds - table.n, 3.0)),
        noise=noise_of_sum(table, best),
        baseline=average - effects @ usual,
        effects=effects,
        deviations=np.sqrt(squares * doubt),
        spill_deviation=np.sqrt(averaged(weights, [part.spill_deviation**2 for part in parts]) * doubt),
        probability=averaged(weights, [part.probability for part in parts]),
        moved=averaged(weights, [part.moved for part in parts]),
        average=usual,
        power=float(weights @ [power for _, power, _, _ in found]),
        structures=tuple((float(weight), one) for weight, (*_, one) in zip(weights, found, strict=True)),
    )


def worth_averaging(found: Sequence[Candidate]) -> tuple[list[Candidate], Array]:
    """The structures to average over, and their probabilities.

    Variants of a shape, by the variances of its blocks, share the probability of the best one: how many of them the
    search came across says nothing. What is left out for its small probability leaves it to others of its kind.
    """
    shapes: dict[Any, list[Candidate]] = {}
    for one in sorted(found, key=lambda one: -one.score):
        shapes.setdefault(one.shape, []).append(one)
    top = max(one.score for one in found)
    kinds: dict[Any, list[tuple[float, Candidate]]] = {}
    for variants in shapes.values():
        some = variants if variants[0].table.m == 1 else variants[:1]  # sparse effects learn their own variances
        shares = np.exp([one.score - top for one in some]) / np.exp([one.score - some[0].score for one in some]).sum()
        kinds.setdefault(some[0].kind, []).extend(zip(shares.tolist(), some, strict=True))
    least = LEAST_WEIGHT * sum(share for several in kinds.values() for share, _ in several)
    kept: list[tuple[float, Candidate]] = []
    for several in kinds.values():
        mass = sum(share for share, _ in several)
        likely = [pair for pair in several if pair[0] >= least] or sorted(several, key=lambda pair: -pair[0])[:FEWEST]
        left = sum(share for share, _ in likely)
        kept += [(share * mass / left, one) for share, one in likely] if mass >= least else []
    weights = np.array([share for share, _ in kept])
    return [one for _, one in kept], weights / weights.sum()


def raised(amounts: Array, power: float) -> Array:
    return np.asarray(np.sign(amounts) * np.abs(amounts) ** power)


def averaged(weights: Array, values: Sequence[Array]) -> Array:
    return np.asarray(np.tensordot(weights, np.stack(values), axes=1))


def posterior(table: Table, structure: Structure, coming: Array) -> Posterior:
    """The posterior of the effects under one structure."""
    return of_one_outcome(table, structure, coming) if table.m == 1 else of_all_outcomes(table, structure, coming)


def of_one_outcome(table: Table, structure: Structure, coming: Array) -> Posterior:
    """One outcome for all arms: every coefficient is normal, and totals are sums of them."""
    layout, n, scale = table.layout(structure), table.n, float(table.scale[0])
    mean, cover, noise = table.model.posterior(layout.places, layout.variance)
    sums = sums_over_blocks(layout.block, n, coming)
    moved = sums_over_blocks(layout.block, n, coming, ("moved",))
    total, covariance = likely_helpful(scale * sums @ mean[0], scale**2 * float(noise[0]) * sums @ cover[0] @ sums.T)
    return Posterior(
        total=total,
        covariance=covariance,
        effects=total[None],
        deviations=np.sqrt(np.diagonal(covariance))[None],
        spill_deviation=np.zeros(n),
        probability=np.ones((1, n)),
        moved=scale * moved @ mean[0],
    )


def likely_helpful(total: Array, covariance: Array) -> tuple[Array, Array]:
    """The posterior if arms help on average with the probability `HELPFUL`, by a prior that was symmetric around 0."""
    shared = covariance.mean(axis=1)
    average, variance = float(total.mean()), float(shared.mean())
    if variance <= 0:
        return total, covariance
    deviation = np.sqrt(variance)
    z = average / deviation
    positive = 0.5 * (1.0 + erf(z / np.sqrt(2.0)))
    mass = HELPFUL * positive + (1.0 - HELPFUL) * (1.0 - positive)
    more = (2.0 * HELPFUL - 1.0) * deviation * float(np.exp(-0.5 * z**2)) / np.sqrt(2.0 * np.pi) / mass
    slope = shared / variance
    return total + slope * more, covariance - np.outer(slope, slope) * more * (average + more)


def sums_over_blocks(block: tuple[str, ...], n: int, coming: Array, wanted: Sequence[str] = IN_TOTAL) -> Array:
    """What of each coefficient is part of the total of each arm, (n, columns)."""
    found, seen = np.zeros((n, len(block))), dict.fromkeys(block, 0)
    for place, name in enumerate(block):
        if name in wanted:
            arm, which = seen[name] % n, seen[name] // n
            if name in ("total", "lag_mean"):
                found[:, place] = 1.0
            else:
                found[arm, place] = coming[which] if name == "moved" else 1.0
        seen[name] += 1
    return found


class Reduced(NamedTuple):
    """What the data say of effects in the same round, of each outcome, the other columns being accounted for."""

    precision: Array  # (m, n, n)
    moments: Array  # (m, n)
    noise: Array  # (m,)
    places: list[IntArray]  # of the other columns
    weights: list[Array]  # (others, others): inverse precision of the other columns
    block: tuple[str, ...]


def reduced(table: Table, structure: Structure) -> Reduced:
    """Account for all columns but those of effects in the same round."""
    layout, model, arms = table.layout(structure), table.model, table.place["own", 0]
    _, _, noise = model.posterior(layout.places, layout.variance)
    other = np.array([name not in DIRECT for name in layout.block])
    places, weights = layout.places[:, other], []
    precision = np.stack([model.gram_for(i, arms, arms) for i in range(table.m)])
    moments = model.moments[arms].T.copy()
    for i in range(table.m if other.any() else 0):
        at = places[i]
        inverse = np.linalg.inv(model.gram_for(i, at, at) + np.diag(1.0 / layout.variance[i, other]))
        cross = model.gram_for(i, at, arms)
        precision[i] -= cross.T @ inverse @ cross
        moments[i] -= cross.T @ inverse @ model.moments[at, i]
        weights.append(np.asarray(inverse, float))
    block = tuple(name for name in layout.block if name not in DIRECT)
    return Reduced(precision, moments, np.maximum(noise, ROUNDING), list(places), weights, block)


def without_others(table: Table, data: Reduced, values: Array) -> Array:
    """What the other columns do not explain of values (rounds, m), with the fixed columns accounted for."""
    rest = table.model.centred(values)
    if not data.block:
        return rest
    moved = np.zeros_like(rest)
    for i, (at, inverse) in enumerate(zip(data.places, data.weights, strict=True)):
        columns = table.model.columns[:, at]
        moved[:, i] = columns @ (inverse @ (columns.T @ rest[:, i]))
    return rest - table.model.centred(moved)


def of_all_outcomes(table: Table, structure: Structure, coming: Array) -> Posterior:
    """One outcome for each arm: sparse effects on each other, with noise that outcomes may share."""
    model, arms, data = table.model, table.place["own", 0], reduced(table, structure)
    found, joint = sparse_effects(data.precision, data.moments, data.noise), np.diag(1.0 / data.noise)
    for _ in range(0 if "shared" in table.without else ADJUSTED):
        rest = without_others(table, data, model.outcomes - model.columns[:, arms] @ found.effects.T)
        joint = joint_precision(rest, data.noise, model)
        alone = np.diag(joint)
        shared = rest @ (np.eye(table.m) - joint / alone[:, None]).T  # of each residual, what the others predict
        moments = data.moments - (model.columns[:, arms].T @ without_others(table, data, shared)).T
        found = sparse_effects(data.precision, moments, 1.0 / alone)
    return summed(table, data, found, joint, coming)


def symmetric_root(matrices: Array) -> Array:
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def joint_precision(rest: Array, noise: Array, model: MixedModel) -> Array:
    """The inverse covariance of the outcomes' noise, with correlations that are shrunk towards 0."""
    freedom = model.freedom.mean()
    correlation = correlations(rest) * freedom / (freedom + SHRUNK * len(noise))
    np.fill_diagonal(correlation, 1.0)
    deviation = np.sqrt(noise)
    return np.asarray(np.linalg.inv(correlation) / np.outer(deviation, deviation))


def summed(table: Table, data: Reduced, found: SparseEffects, joint: Array, coming: Array) -> Posterior:
    """Totals over outcomes and rounds, with the covariance of all coefficients that may differ from 0."""
    n, model, scale = table.n, table.model, table.scale
    arms = table.place["own", 0]
    outcome, arm = np.nonzero(found.variance > ACTIVE * found.variance.max())
    prior = found.variance[outcome, arm]
    root = symmetric_root(data.precision)[outcome, arm]
    known = joint[np.ix_(outcome, outcome)] * (root @ root.T)
    cover = np.linalg.inv(known + np.diag(1.0 / prior))
    sums = np.zeros((n, len(arm)))
    sums[arm, np.arange(len(arm))] = scale[outcome]
    effects, moved = found.effects * scale[:, None], np.zeros(n)
    factor = disagreement(table, data, found.effects, sums @ cover @ sums.T)
    covariance, variances = np.zeros((n, n)), np.zeros((n, n))
    variances[outcome, arm] = np.diag(cover) * scale[outcome] ** 2
    late = {"lag", "lag_mean", "moved"} & set(data.block)
    for i in range(n if late else 0):  # coefficients of other columns, given the effects in the same round
        part, context = later_part(data.block, i, n, coming)
        both = (part + context) @ data.weights[i]
        cross = model.gram_for(i, data.places[i], arms)
        left = model.moments[data.places[i], i] - cross @ found.effects[i]
        effects[i] += scale[i] * both @ left
        moved += scale[i] * context @ data.weights[i] @ left
        here = outcome == i
        sums[:, here] -= scale[i] * (both @ cross)[:, arm[here]]
        own = scale[i] ** 2 * data.noise[i] * both @ (part + context).T
        covariance += own
        variances[i] += np.diag(own)
    covariance += sums @ cover @ sums.T
    others = np.where(outcome == arm, 0.0, sums)
    total = effects.sum(axis=0)
    return Posterior(
        total=total,
        covariance=covariance * factor,
        effects=effects,
        deviations=np.sqrt(variances * factor),
        spill_deviation=np.sqrt(np.diag(others @ cover @ others.T) * factor),
        probability=found.probability,
        moved=moved,
    )


def later_part(block: tuple[str, ...], i: int, n: int, coming: Array) -> tuple[Array, Array]:
    """What of outcome i's other coefficients is part of each arm's total: in later rounds, and by the context."""
    later, moved, which = np.zeros((n, len(block))), np.zeros((n, len(block))), 0
    for place, name in enumerate(block):
        if name == "lag_mean":
            later[:, place] = 1.0
        elif name == "lag":
            later[i, place] = 1.0
        elif name == "moved":
            moved[i, place] = coming[which]
            which += 1
    return later, moved


def disagreement(table: Table, data: Reduced, effects: Array, covariance: Array) -> float:
    """A factor of the covariance: larger than 1 where plain least squares disagrees by more than it allows for.

    Sparse effects are more precise than least squares, and biased where effects are not sparse. The differences between
    the two should be as large as the difference of their variances says (Hausman's test).
    """
    n, model, arms = table.n, table.model, table.place["own", 0]
    left = float(model.freedom.mean()) - n
    if left < 1:
        return 1.0
    inverse = np.linalg.pinv(data.precision, rcond=1e-8, hermitian=True)
    plain = np.einsum("iab,ib->ia", inverse, data.moments)
    rest = without_others(table, data, model.outcomes - model.columns[:, arms] @ plain.T)
    average = inverse.mean(axis=0)
    wide = variance_of_sum(table, rest, left) * np.diag(average)
    shown = inverse @ data.precision  # what of the effects a singular design shows
    apart = table.scale @ (np.einsum("iab,ib->ia", shown, effects) - plain)
    seen = shown.mean(axis=0)
    varied = wide > 0
    if not varied.any():
        return 1.0
    narrow = np.diag(seen @ covariance @ seen.T)
    gap = np.maximum(wide - narrow, 0.1 * np.maximum(wide, narrow))[varied]
    ratio = float((apart[varied] ** 2 / gap).mean())
    return float(max(1.0, (ratio * n / 2 + 2.0) / (n / 2 + 2.0)))


def informative_rounds(table: Table, structure: Structure) -> Array:
    """How many rounds effects were learned from: fewer than all where older ones say less of them."""
    model, arms = table.model, table.place["own", 0]
    whole = np.stack([np.diagonal(model.gram_for(i, arms, arms)) for i in range(table.m)])
    used = np.diagonal(reduced(table, structure).precision, axis1=1, axis2=2)
    varied = whole > 0
    share = float((used[varied] / whole[varied]).mean()) if varied.any() else 1.0
    return np.asarray(share * model.freedom.mean())


def noise_of_sum(table: Table, structure: Structure) -> float:
    """The variance of the sum of the outcomes that nothing explains."""
    layout, model = table.layout(structure), table.model
    rest = model.outcomes + model.explained - model.fitted(layout.places, layout.variance)
    return variance_of_sum(table, rest, float(model.freedom.mean()))


def variance_of_sum(table: Table, rest: Array, freedom: float) -> float:
    """The variance of the sum of the outcomes by their residuals, which are 0 where an outcome is not known."""
    known = table.model.freedom / table.model.freedom.mean()
    size = np.sqrt(np.maximum((rest**2).sum(axis=0) / (known * freedom), ROUNDING)) * table.scale
    return float(size @ correlations(rest) @ size)
