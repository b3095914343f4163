"""ExampleDelay, a delay to start from: outcomes are reported together, at the end of every week."""

from dataclasses import dataclass

import numpy as np

from spillover import validate
from spillover.contracts import Delay
from spillover.rng import Rng
from spillover.types import Batch, IntArray


@dataclass(frozen=True, kw_only=True)
class ExampleDelay(Delay):
    """An outcome arrives at the end of its period, or, if it misses that report, with the next one.

    period: rounds from one report to the next. missed: probability of missing a report, from 0 to 1.

    >>> delay = ExampleDelay(period=7, missed=0.0)
    >>> [int(delay.draw(t, Rng(0))) for t in (1, 6, 7, 8)]
    [6, 1, 0, 6]
    """

    period: int = 7
    missed: float = 0.1

    def __post_init__(self) -> None:
        validate.whole("period", self.period, 1)
        validate.number("missed", self.missed, "a probability, from 0 to 1", low=0, high=1)

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delay of round t (from 1) for each learner: one draw of its own each."""
        misses = np.broadcast_to(rng.uniform(1)[..., 0], batch) < self.missed
        return np.asarray(-t % self.period + self.period * misses.astype(np.int64))
