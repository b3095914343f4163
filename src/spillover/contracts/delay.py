"""The contract of a delay."""

from abc import ABC, abstractmethod

import numpy as np

from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, IntArray, Lateness

# What a delay says of itself, and the methods that it is about.
DRAWS = {"stationary": {"draw"}, "depends_on_rewards": {"draw_given"}, "foreseeable": {"draw", "draw_given"}}


class Delay(ABC):
    """How many rounds pass until the outcome of a round arrives; a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        """Refuse a class that draws in its own way, but inherits what another class says of its draws."""
        super().__init_subclass__()
        own = cls.__dict__.keys()
        for trait, methods in DRAWS.items():
            if methods & own and trait not in own and getattr(cls, trait) is not getattr(Delay, trait):
                named = " and ".join(sorted(methods & own))
                raise TypeError(f"{cls.__name__}.{trait}: must be defined in the same class as {named}")

    @abstractmethod
    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delay of round t in each replication; `NEVER` if the outcome is lost."""

    def draw_given(self, t: int, x: BoolArray, z: Array, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delay of round t, in which x was played and brought the rewards z; by default it depends on neither."""
        return self.draw(t, rng, batch)

    def draw_rounds(self, rounds: IntArray, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delays of many rounds, (*batch, rounds), for a delay that does not depend on rewards."""
        if self.stationary:
            return self.draw(int(rounds[0]), rng.over(Purpose.DELAY, rounds), (*batch, len(rounds)))
        each = [self.draw(int(t), rng.at(Purpose.DELAY, int(t)), batch) for t in rounds]
        return np.stack(each, axis=len(batch))

    @property
    def foreseeable(self) -> bool:
        """Whether `foresee` can tell: the delay does not depend on rewards, or in a way that `Lateness` can express."""
        return not self.depends_on_rewards

    def foresee(self, rounds: IntArray, rng: Rng, batch: Batch, n_arms: int, calls: int = 0) -> Lateness:
        """When the outcomes of many rounds arrive, those of each arm and of whole rounds, with the last of their arms.

        calls: how many draws have been made from the stream of each round before.
        """
        found = self.draw_rounds(rounds, rng, batch)
        late = found.max(axis=-1) if self.per_arm else found
        together = Lateness.of_all_arms(late, late)
        return together._replace(by_arm=found) if self.per_arm else together

    @property
    def stationary(self) -> bool:
        """Whether `draw` uses the round through `rng` only, so that one call can draw for many rounds."""
        return False

    @property
    def depends_on_rewards(self) -> bool:
        """Whether `draw_given` depends on decisions or rewards: by default if a class has its own."""
        return type(self).draw_given is not Delay.draw_given

    @property
    def constant(self) -> int | None:
        """The delay of every round, if it is the same for all of them."""
        return None

    @property
    def per_arm(self) -> bool:
        """Whether `draw` returns a delay for each arm, (*batch, n), instead of one for each replication."""
        return False

    @property
    def largest(self) -> int | None:
        """The longest possible delay; None if it is unbounded or outcomes may be lost."""
        return None

    def check_reach(self, horizon: int, replications: int) -> None:  # noqa: B027 (optional: nothing to refuse)
        """Raise a ValueError if it has no delays for so many rounds or replications."""
