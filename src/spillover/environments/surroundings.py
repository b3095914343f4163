"""Move the outcomes of a world besides its decisions: a baseline, known context and a hidden common cause."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from spillover import kernels
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch

WEEK = 7  # rounds: the period of the first context column
STEP, REACH = 0.1, 1.5  # of the random walks: standard deviation of a step, and where they are reflected
LARGEST_CAUSE = 4.0  # the hidden cause is a standard normal cut off here, so that rewards have a finite range


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Drawn once for each replication, except the hidden cause, which is drawn in every round.

    A round t may be an array of rounds: their axis then comes after those of the batch.

    The equation of arm i gets baseline + on_baseline' c + loading h, its reward on_effect' c (see `SEMWorld.means`) and
    loading h, where c is the context and h the hidden cause of the round.
    """

    baseline: Array  # (*batch, n)
    table: Array  # (*batch, rounds, k): the context of each round
    on_baseline: Array  # (*batch, n, k)
    on_effect: Array  # (*batch, n, k)
    loading: Array  # (*batch, n): how strongly the hidden cause acts on an arm

    @property
    def columns(self) -> int:
        return int(self.table.shape[-1])

    @property
    def moves_effects(self) -> bool:
        """Whether context changes what a decision is worth."""
        return bool(self.on_effect.any())

    @property
    def has_baseline(self) -> bool:
        """Whether outcomes are expected to differ from 0 where nothing is chosen."""
        return bool(self.baseline.any() or self.on_baseline.any())

    @property
    def confounds(self) -> bool:
        return bool(self.loading.any())

    def context(self, t: Any) -> Array:
        """(*batch, k): of round t, from 1; after the last round of the table that of the last one."""
        return self.table[..., np.minimum(t, self.table.shape[-2]) - 1, :]

    def added_effect(self, t: Any) -> Array:
        """(*batch, n): what context adds to each arm's mean reward in round t."""
        return np.asarray(kernels.added_by_context(for_rounds(t, self.on_effect, 2), self.context(t)))

    def without_decision(self, t: Any) -> Array:
        """(*batch, n): what each equation has in round t if nothing is chosen, without noise."""
        moved = kernels.added_by_context(for_rounds(t, self.on_baseline, 2), self.context(t))
        return np.asarray(for_rounds(t, self.baseline, 1) + moved)

    def hidden_cause(self, t: Any, rng: Rng) -> Array:
        """(*batch, n): what the hidden cause of round t adds to an arm's reward, and to its equation."""
        drawn = rng.at(Purpose.SURROUNDINGS, t).normal(1)
        return np.asarray(for_rounds(t, self.loading, 1) * np.clip(drawn, -LARGEST_CAUSE, LARGEST_CAUSE))

    def of_arms(self, order: list[int]) -> "Surroundings":
        """Put the arms in another order."""
        moved = {"on_baseline": self.on_baseline[..., order, :], "on_effect": self.on_effect[..., order, :]}
        return replace(self, baseline=self.baseline[..., order], loading=self.loading[..., order], **moved)

    def spread(self, batch: Batch) -> "Surroundings":
        """Repeat the surroundings for every replication of a batch."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: np.broadcast_to(v, (*batch, *v.shape)) for name, v in given.items()})


def for_rounds(t: Any, given: Array, core: int) -> Array:
    """Values of a batch for round t, or for many rounds t: the axis of the rounds comes before the `core` last axes."""
    return given if np.ndim(t) == 0 else np.expand_dims(given, -core - 1)


def draw_surroundings(
    rng: Rng,
    batch: Batch,
    n_arms: int,
    horizon: int,
    *,
    baseline: tuple[float, float] | None,
    columns: int,
    context_on_baseline: float,
    context_effect: float,
    confounding: float,
) -> Surroundings:
    """Draw from streams of their own, always in the same order: nothing that a world drew before is changed."""
    own = rng.at(Purpose.SURROUNDINGS)
    low, high = baseline or (0.0, 0.0)
    level, effect, moved = own.uniform(n_arms), own.normal(n_arms * columns), own.normal(n_arms * columns)
    touched = own.permutation(n_arms) < (n_arms + 1) // 2
    square = (*batch, n_arms, columns)
    return Surroundings(
        baseline=np.broadcast_to(low + (high - low) * level, (*batch, n_arms)),
        table=draw_context(own, batch, horizon, columns),
        on_baseline=np.broadcast_to(context_on_baseline * moved, (*batch, n_arms * columns)).reshape(square),
        on_effect=np.broadcast_to(context_effect * effect, (*batch, n_arms * columns)).reshape(square),
        loading=np.broadcast_to(confounding * touched, (*batch, n_arms)),
    )


def draw_context(rng: Rng, batch: Batch, horizon: int, columns: int) -> Array:
    """(*batch, horizon, columns): first a weekly sine, then random walks from 0 that are reflected at +-1.5."""
    table = np.empty((*batch, horizon, columns))
    for column in range(columns):
        if column == 0:
            table[..., column] = np.sin(2.0 * np.pi * np.arange(horizon) / WEEK)
        else:
            table[..., column] = reflected(STEP * np.cumsum(rng.normal(horizon), axis=-1), REACH)
    return table


def reflected(free: Array, reach: float) -> Array:
    """A free path folded into [-reach, reach]: as if it were reflected at the ends.

    >>> reflected(np.array([0.5, 1.4, 1.6, 3.1, -1.7]), 1.5).round(3).tolist()
    [0.5, 1.4, 1.4, -0.1, -1.3]
    """
    position = np.mod(free + reach, 4.0 * reach)
    return np.minimum(position, 4.0 * reach - position) - reach


def given_surroundings(
    n_arms: int, horizon: int, baseline: Any, table: Any, on_baseline: Any, on_effect: Any, loading: Any
) -> Surroundings:
    """Surroundings of a single world from arrays; None stands for nothing of the kind."""
    columns = 0 if table is None else np.shape(table)[-1]
    square = np.zeros((n_arms, columns))
    return Surroundings(
        baseline=np.zeros(n_arms) if baseline is None else baseline,
        table=np.zeros((horizon, 0)) if table is None else table,
        on_baseline=square if on_baseline is None else on_baseline,
        on_effect=square if on_effect is None else on_effect,
        loading=np.zeros(n_arms) if loading is None else loading,
    )
