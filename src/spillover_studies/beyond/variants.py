"""Policies and worlds of this study alone: policies without dates of outcomes, worlds in other units.

NDC-SEM and Switching-SEM have no parameter for the delay. They learn the age of an outcome when it arrives, and count
it from the round of its action. The versions here assume a delay, as one would whose outcomes carry no date.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from spillover import validate
from spillover.environments.synthetic import SyntheticSEM
from spillover.environments.world import SEMWorld
from spillover.policies.ndcsem import NDCSEM
from spillover.policies.switching import SwitchingSEM
from spillover.rng import Rng
from spillover.types import Array, Batch, Problem


@dataclass(frozen=True, kw_only=True)
class Misdated:
    """A policy that takes every outcome to have been played `assumed` rounds ago."""

    assumed: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of the policy
        validate.whole("assumed", self.assumed, 0)

    @property
    def assumed_delay(self) -> int:
        return self.assumed


@dataclass(frozen=True, kw_only=True)
class MisdatedNDCSEM(Misdated, NDCSEM):
    """NDC-SEM that discounts every outcome as one that was played `assumed` rounds ago."""


@dataclass(frozen=True, kw_only=True)
class MisdatedSwitchingSEM(Misdated, SwitchingSEM):
    """Switching-SEM that takes every outcome to have been played `assumed` rounds ago."""


@dataclass(frozen=True, kw_only=True)
class SyntheticInUnits(SyntheticSEM):
    """Synthetic worlds whose rewards z lie in [0, unit] instead of [0, 1]; the draws are those of `SyntheticSEM`.

    Policies know the range. Regret is in the new units too, so its ratio to a reference policy's has none.

    >>> SyntheticInUnits(unit=100.0).draw(Rng(seed=0)).problem.reward_range
    (0.0, 100.0)
    """

    unit: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.number("unit", self.unit, "a finite number > 0", low=0, high=np.inf, open_ends=True)

    def draw(self, rng: Rng, batch: Batch = ()) -> "WorldInUnits":
        drawn = super().draw(rng, batch)
        return WorldInUnits(**{part.name: getattr(drawn, part.name) for part in fields(drawn)}, unit=self.unit)


@dataclass(frozen=True, kw_only=True)
class WorldInUnits(SEMWorld):
    """Rewards are drawn as in [0, 1], then multiplied."""

    unit: float

    # for arrays of rounds too
    course, score_rounds = SEMWorld.course_at_once, SEMWorld.score_at_once
    best_of_rounds = SEMWorld.best_at_once

    @cached_property
    def problem(self) -> Problem:
        plain = super().problem
        return plain._replace(reward_range=(0.0, self.unit), overall_range=self.unit * plain.overall_range)

    def scores(self, t: Any, as_of: Any) -> Array:
        return self.unit * super().scores(t, as_of)

    def rewards(self, t: Any, rng: Rng) -> Array:
        return self.unit * super().rewards(t, rng)
