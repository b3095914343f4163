"""Policies that are wrong about the delay: they take every outcome to be the same number of rounds old.

NDC-SEM and Switching-SEM have no parameter for the delay. They learn the age of an outcome when it arrives, and count
it from the round of its action. These versions do without that: they assume a delay, as one would whose outcomes carry
no date.
"""

from dataclasses import dataclass

from spillover import validate
from spillover.policies.ndcsem import NDCSEM
from spillover.policies.switching import SwitchingSEM


@dataclass(frozen=True, kw_only=True)
class MisdatedNDCSEM(NDCSEM):
    """NDC-SEM that discounts every outcome as one that was played `assumed` rounds ago."""

    assumed: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("assumed", self.assumed, 0)

    @property
    def assumed_delay(self) -> int:
        return self.assumed


@dataclass(frozen=True, kw_only=True)
class MisdatedSwitchingSEM(SwitchingSEM):
    """Switching-SEM that takes every outcome to have been played `assumed` rounds ago."""

    assumed: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("assumed", self.assumed, 0)

    @property
    def assumed_delay(self) -> int:
        return self.assumed
