"""Choose by the evidence of the data what else moves the outcomes, besides the choices of a round.

Candidates are a trend, a slowly moving level, effects in later rounds, effects that drift or changed, and a
context that moves effects. Each is a block of columns whose coefficients have a common variance; a variance of 0 leaves
the block out. A search climbs the marginal likelihood, and the answers of all good structures are averaged.
"""

import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from spillover.regression.mixed import EXACT, MixedModel
from spillover.regression.robust import without_outliers
from spillover.regression.sparse import SPREAD
from spillover.types import Array, IntArray

LAGS = (1, 2, 4, 8)  # rounds in which choices may still have effects
# rounds ago at which effects may have changed
KNOTS = (4, 6, 8, 10, 13, 16, 20, 26, 32, 40, 50, 65, 80, 100, 130, 160, 210, 260, 340, 420, 550)
HAZARD = 1 / 600  # of a change of all effects, in each round
MOST_CHANGES = 3
STEP = 3.2  # between variances that are tried
LARGEST = 1e10  # variance, in units of the noise
MOST_WAVES = 24  # cosines of the level
MOST_DETAILED = 30  # arms up to which each has its own later effects and changes
REPRESENTATIVES = 12  # outcomes that the structure is chosen by, where there are more
USUAL = 0.3  # variance of effects that is probable, within a factor of many
GRAND_MEAN = 10.0  # variance of the arms' mean effect, in units of that of single effects
# Log odds of a block. While the same arms are chosen, a change of
# their effects looks like a change of the level: a level is believed only where the data show much of it.
PRIOR = {
    "trend": -5.0,
    "level": -6.0,
    "drift": -2.0,
    "lags": -3.0 - math.log(len(LAGS)),  # shared by the numbers of rounds that are tried
    "lag_mean": -0.5,
    "lag": -0.5,
    "moved": -2.0,
}
CHANGED = dict(zip(KNOTS, np.log(HAZARD * np.gradient(np.array(KNOTS, float))).tolist(), strict=True))
WORTH = 7.0  # log evidence by which a structure may be worse than the best one and still counts
SEARCHES = 2  # again if outliers were pulled in
PULLS = 8
PULLED = 0.1  # standard deviations of an outcome: what is pulled by less changes no structure


class Structure(NamedTuple):
    """Variances of the blocks, in units of the noise variance; 0: left out."""

    own: float = 0.3  # of effects: all, where there is one outcome; otherwise of an arm on its own outcome
    cross: float = 0.03  # of effects on the outcomes of other arms
    trend: float = 0.0
    level: float = 0.0
    drift: float = 0.0  # of effects that move slowly; only with an outcome for each arm
    changes: tuple[int, ...] = ()  # rounds ago at which all effects changed
    lags: int = 0  # rounds in which choices still have effects
    lag_mean: float = 0.0  # of what all arms' later effects have in common
    lag: float = 0.0  # of single arms' later effects
    moved: float = 0.0  # of what the context does to effects

    @property
    def shape(self) -> "Structure":
        """The same blocks, with variances of 1."""
        names = (name for name in self._fields if name not in {"changes", "lags"})
        sizes: dict[str, Any] = {name: float(getattr(self, name) > 0) for name in names}
        return self._replace(**sizes)


class Layout(NamedTuple):
    """The columns that each outcome is regressed on."""

    places: IntArray  # (outcomes, columns)
    variance: Array  # (outcomes, columns)
    block: tuple[str, ...]  # of each column


class Table:
    """Past choices and outcomes as regressions with all columns that a structure may use.

    amounts: (rounds, n), of all rounds so far; 1 is the usual amount. outcomes: (rounds, m), NaN where not known;
    m is 1, or n if each arm has an outcome of its own. context: (rounds, k), standardised. without: parts to leave out.
    """

    def __init__(self, amounts: Array, outcomes: Array, context: Array, without: Collection[str] = ()) -> None:
        self.without = frozenset(without)
        self.rounds, self.n = amounts.shape
        self.m, self.k = outcomes.shape[1], context.shape[1]
        pairs = [[j for j in range(self.n) if j != i] for i in range(self.n)]
        self.others = np.array(pairs, np.int64).reshape(self.n, -1)
        rows = np.flatnonzero(np.isfinite(outcomes).any(axis=1))
        now = np.arange(self.rounds)
        total = amounts.sum(axis=1, keepdims=True)
        waves = np.arange(1, min(len(rows) // 4, MOST_WAVES) + 1)
        level = np.sqrt(2.0) * np.cos(np.pi * np.outer(now + 0.5, waves) / self.rounds) / np.maximum(waves, 1)
        detailed = self.n <= MOST_DETAILED
        per_outcome = self.n if self.m == 1 else 3
        self.lags = tuple(
            lags for lags in LAGS if detailed and "lags" not in without and len(rows) >= 4 * per_outcome + 6 * lags
        )
        self.knots = tuple(ago for ago in KNOTS if detailed and "changes" not in without and ago < self.rounds - 8)
        self.place: dict[tuple[str, int], IntArray] = {}
        parts: list[Array] = []

        def add(block: str, columns: Array, which: int = 0) -> None:
            first = sum(part.shape[1] for part in parts)
            self.place[block, which] = np.arange(first, first + columns.shape[1])
            parts.append(columns)

        add("own", amounts)
        add("total", total)
        add("trend", ((now - now.mean()) / self.rounds * np.sqrt(12.0))[:, None])
        add("level", level)
        for lag in range(1, max(self.lags, default=0) + 1):  # before the first round, average amounts are assumed
            before = np.vstack([np.tile(amounts.mean(axis=0), (lag, 1)), amounts[:-lag]])
            add("lag", before, lag)
            add("lag_mean", before.sum(axis=1, keepdims=True), lag)
        for (
            ago
        ) in self.knots:  # with one outcome half of a change, otherwise what effects before had beyond those of now
            before = (now < self.rounds - ago)[:, None]
            add("step", amounts * (np.where(before, -1.0, 1.0) if self.m == 1 else before), ago)
        for column in range(self.k if detailed else 0):
            add("moved", amounts * context[:, column : column + 1], column)
        fixed = np.column_stack([np.ones(self.rounds), context])[rows]
        everything = np.column_stack(parts)[rows]
        plain = np.column_stack([fixed, amounts[rows], level[rows, : min(len(rows) // 8, 8)]])
        known = outcomes[rows]
        seen = np.isfinite(known)
        largest = np.where(seen, np.abs(known), 0.0).max(axis=0)
        largest = np.maximum(largest, np.finfo(float).tiny)  # squares of large outcomes overflow
        spread = largest * np.array(
            [part[here].std() if here.any() else 0.0 for part, here in zip((known / largest).T, seen.T, strict=True)]
        )
        self.scale = np.where(spread > EXACT * largest, spread, largest)
        self.measured = known / self.scale
        self.model = MixedModel(fixed, everything, self.measured)
        self.order = np.argsort(-spread, kind="stable")[:REPRESENTATIVES]
        self.independent = independent_share(self.measured, plain)
        self.scores: dict[Structure, float] = {}

    def layout(self, structure: Structure) -> Layout:
        """The columns and variances of a structure."""
        parts = list(self.blocks(structure))
        places = np.concatenate([np.broadcast_to(at, (self.m, at.shape[1])) for _, at, _ in parts], axis=1)
        variance = np.concatenate([np.full((self.m, at.shape[1]), size) for _, at, size in parts], axis=1)
        names = tuple(name for name, at, _ in parts for _ in range(at.shape[1]))
        return Layout(places, variance, names)

    def blocks(self, s: Structure) -> Iterator[tuple[str, IntArray, float]]:
        """The blocks with their columns, (1 or outcomes, columns), and variances."""
        arms = self.place["own", 0]
        if self.m == 1:  # effects before a change are unrelated to those after it, but for what all arms share
            yield "total", self.place["total", 0][None], GRAND_MEAN * s.own
            yield "own", arms[None], s.own / (1 + len(s.changes))
            for ago in s.changes:
                yield "step", self.of_arm("step", ago), s.own / (1 + len(s.changes))
        else:
            yield "own", arms[:, None], s.own
            yield "total", self.place["total", 0][None], s.cross
            yield "cross", arms[self.others], s.cross
        for name, size in (("trend", s.trend), ("level", s.level)):
            if size > 0 and len(self.place[name, 0]):
                yield name, self.place[name, 0][None], size
        for lag in range(1, s.lags + 1):
            if s.lag_mean > 0:
                yield "lag_mean", self.place["lag_mean", lag][None], s.lag_mean
            if s.lag > 0:
                yield "lag", self.of_arm("lag", lag), s.lag
        for ago in s.changes if self.m > 1 else ():
            yield "step", self.of_arm("step", ago), 2.0 * SPREAD * s.own
            yield "step", self.place["step", ago][self.others], 2.0 * s.cross
        for ago in self.knots[::2] if s.drift > 0 else ():
            yield "step", self.of_arm("step", ago), s.drift * ago / 20.0
        for ago in self.knots[::4] if s.drift > 0 else ():
            yield "step", self.place["step", ago][self.others], 2.0 * s.drift * ago / 20.0 * s.cross / s.own
        for column in range(self.k if s.moved > 0 else 0):
            yield "moved", self.of_arm("moved", column), s.moved

    def of_arm(self, block: str, which: int) -> IntArray:
        """The columns of a block: of all arms, or of each outcome's own arm."""
        at = self.place[block, which]
        return at[None] if self.m == 1 else at[:, None]

    def score(self, s: Structure) -> float:
        """The log evidence of a structure with its prior. Outcomes that move together count as fewer."""
        if s.lags and not (s.lag_mean or s.lag):
            return self.score(s._replace(lags=0))
        if s not in self.scores:
            layout = self.layout(s)
            found = self.evidence(layout)
            prior = 0.5 * np.log(s.own) - np.log1p(s.own / USUAL)  # half-Cauchy
            prior += sum(odds for name, odds in PRIOR.items() if getattr(s, name))
            prior += sum(CHANGED[ago] for ago in s.changes)
            self.scores[s] = found + float(prior)
        return self.scores[s]

    def evidence(self, layout: Layout) -> float:
        if self.m == 1:
            return float(self.model.evidence(layout.places, layout.variance)[0])
        some = self.order
        each = self.model.evidence(layout.places[some], layout.variance[some], some)
        return float(each.sum() * self.independent)

    def climb(self, s: Structure, names: tuple[str, ...], sweeps: int = 2) -> Structure:
        """Change one variance after the other as long as that helps."""
        for _ in range(sweeps):
            before = self.score(s)
            for name in names:
                s = self.best_size(s, name)
            if self.score(s) - before < 0.1:
                break
        return s

    def best_size(self, s: Structure, name: str) -> Structure:
        """The structure with the best variance of one block, by steps up or down; 0 where the block may be left out."""
        size = float(getattr(s, name)) or 0.1
        options = [s, with_size(s, name, size)]
        if name in PRIOR:
            options.append(with_size(s, name, 0.0))
        best = max(options, key=self.score)
        if getattr(best, name) == 0:
            return best
        for factor in (STEP, 1.0 / STEP):
            while 1e-4 < (size := float(getattr(best, name)) * factor) < LARGEST:
                other = with_size(best, name, size)
                if self.score(other) <= self.score(best):
                    break
                best = other
        return best

    def search(self) -> Array:
        """Score the structures that count; outliers are pulled in along the way. Returns the outcomes without them."""
        for _ in range(SEARCHES):
            self.climb_all()
            if not self.pull_outliers(self.layout(self.best())):
                break
            self.scores.clear()
        else:
            self.climb_all()
        return np.where(np.isfinite(self.measured), self.model.outcomes + self.model.explained, np.nan)

    def search_with(self, outcomes: Array) -> None:
        """Score structures of these outcomes, in standard deviations, instead of those that were measured."""
        self.model.replace_outcomes(outcomes)
        self.scores.clear()
        self.climb_all()

    def found(self) -> list[tuple[float, Structure]]:
        """The structures that count, with their scores, the best first."""
        top = self.score(self.best())
        return [(score, s) for s, score in self.scores.items() if score > top - WORTH]

    def pull_outliers(self, layout: Layout) -> bool:
        """Pull outliers towards what the layout expects; whether that changed any outcome much."""
        before = self.model.outcomes
        for _ in range(0 if "outliers" in self.without else PULLS):
            last, expected = self.model.outcomes, self.model.fitted(layout.places, layout.variance)
            self.model.replace_outcomes(without_outliers(self.measured, expected))
            if (self.model.outcomes == last).all():
                break
        return bool(np.abs(self.model.outcomes - before).max(initial=0.0) > PULLED)

    def climb_all(self) -> None:
        """Score structures, from simple ones to those with later effects and changes."""
        sizes = ("own",) if self.m == 1 else ("own", "cross")
        level = () if "level" in self.without else ("trend", "level")
        always = (*sizes, *level, *(("moved",) if ("moved", 0) in self.place else ()))
        self.climb(Structure(), (*always, *(("drift",) if self.m > 1 and self.knots else ())))
        changes: tuple[int, ...] = ()
        for _ in range(MOST_CHANGES):
            before = max((s for s in self.scores if not s.drift and s.changes == changes), key=self.score)
            more = [before._replace(changes=(*changes, ago)) for ago in self.knots if ago not in changes]
            found = max(more, key=self.score, default=before)
            if self.score(found) <= self.score(before):
                break
            changes = self.climb(found, sizes, 1).changes
        best = self.best()
        for factor in (STEP, 1.0 / STEP, STEP**2, STEP**-2):
            self.score(best._replace(own=best.own * factor))
        best = self.best()
        for lags in self.lags:
            self.climb(best._replace(lags=lags, lag_mean=0.1, lag=0.1), ("lag_mean", "lag"), 1)
        best = self.best()
        self.climb(best, (*always, *(("lag_mean", "lag") if best.lags else ())), 1)

    def best(self) -> Structure:
        return max(self.scores, key=self.scores.__getitem__)


def with_size(s: Structure, name: str, size: float) -> Structure:
    """The structure with another variance of one block."""
    changed: dict[str, Any] = {name: size}
    return s._replace(**changed)


def independent_share(outcomes: Array, columns: Array) -> float:
    """How much the evidence of each outcome counts: 1 if errors are independent, 1 / m if they are all the same."""
    rest = np.zeros_like(outcomes)
    for i, known in enumerate(np.isfinite(outcomes).T):
        here, y = columns[known], outcomes[known, i]
        rest[known, i] = y - here @ np.linalg.lstsq(here, y, rcond=None)[0]
    together = correlations(rest)
    return float(len(together) / (together**2).sum())


def correlations(rest: Array) -> Array:
    """The correlations of residuals (rounds, m) around 0; nearer to 0 where they are known in different rounds."""
    size = np.sqrt((rest**2).sum(axis=0))
    unit = rest / np.where(size > 0, size, 1.0)
    found = unit.T @ unit
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)
