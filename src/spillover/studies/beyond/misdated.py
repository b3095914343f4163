"""Policies that are wrong about the delay: they take every outcome to be the same number of rounds old.

NDC-SEM and Switching-SEM have no parameter for the delay. They learn the age of an outcome when it arrives, and count
it from the round of its action. These versions do without that: they assume a delay, as one would whose outcomes carry
no date.
"""

from dataclasses import dataclass

import numpy as np

from spillover import validate
from spillover.policies.graph_policy import MeansState
from spillover.policies.ndcsem import NDCSEM
from spillover.policies.switching import SwitchingSEM
from spillover.policies.switching_state import SwitchingState
from spillover.rng import Rng
from spillover.types import Feedback, IntArray


@dataclass(frozen=True, kw_only=True)
class MisdatedNDCSEM(NDCSEM):
    """NDC-SEM that discounts every outcome as one that was played `assumed` rounds ago."""

    assumed: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("assumed", self.assumed, 0)

    def learn(self, state: MeansState, feedback: Feedback, rng: Rng) -> MeansState:
        return super().learn(state, feedback._replace(age=assumed_age(self.assumed, state.rounds)), rng)


@dataclass(frozen=True, kw_only=True)
class MisdatedSwitchingSEM(SwitchingSEM):
    """Switching-SEM that takes every outcome to have been played `assumed` rounds ago."""

    assumed: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("assumed", self.assumed, 0)

    def learn(self, state: SwitchingState, feedback: Feedback, rng: Rng) -> SwitchingState:
        return super().learn(state, feedback._replace(age=assumed_age(self.assumed, state.rounds)), rng)


def assumed_age(assumed: int, rounds: IntArray) -> IntArray:
    """The age that outcomes are taken to have: nothing is older than the first round."""
    return np.minimum(assumed, rounds - 1)
