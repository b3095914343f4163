"""Counter-based random numbers: every draw is a function of (seed, replication, purpose, round), not of earlier draws.

So replication k has the same rewards and delays for every policy, block, worker and engine; more replications do not
change the first ones; and a single run equals its row of a batch.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spillover import kernels
from spillover.validate import require


class Purpose(IntEnum):
    """The purpose of a stream; streams of different purposes are independent.

    >>> rng = Rng(0)
    >>> (rng.at(Purpose.WORLD, 1).uniform(2) == rng.at(Purpose.DELAY, 1).uniform(2)).any()
    np.False_
    """

    WORLD = 0
    DELAY = 1
    START = 2  # a policy's init
    CHOICE = 3  # a policy's select
    LEARNING = 4  # a policy's update, by the round that was played
    SURROUNDINGS = 5  # a world's baseline, context and hidden causes


class Rng:
    """A batch of streams, one for each replication, at a purpose and a round.

    >>> rng = Rng(seed=1, replication=[0, 1, 2])
    >>> rng.uniform(4).shape
    (3, 4)
    >>> alone = Rng(seed=1, replication=2)
    >>> bool((Rng(seed=1, replication=[0, 1, 2]).uniform(4)[2] == alone.uniform(4)).all())
    True

    Draws from one object are independent of each other; `at` gives a new object whose draws start at the beginning.
    """

    __slots__ = ("calls", "keys", "purpose", "round")

    def __init__(self, seed: int = 0, replication: ArrayLike = 0) -> None:
        require(
            not isinstance(seed, bool) and bool(np.issubdtype(type(seed), np.integer)) and 0 <= seed < 2**64,
            "seed",
            seed,
            "a whole number from 0 to 2^64 - 1",
        )
        rows = np.asarray(replication)
        require(
            rows.dtype.kind in "iu" and bool((rows >= 0).all()),
            "replication",
            replication,
            "whole numbers from 0 on",
        )
        self.keys: NDArray[np.uint64] = np.empty((*rows.shape, 2), np.uint64)
        self.keys[..., 0] = seed
        self.keys[..., 1] = rows
        self.purpose = np.uint64(Purpose.WORLD)
        self.round: Any = np.uint64(0)
        self.calls = 0

    @classmethod
    def of_seeds(cls, seeds: Any) -> "Rng":
        """The streams of many single runs, one for each seed.

        >>> bool((Rng.of_seeds([5, 7]).uniform(2)[1] == Rng(7).uniform(2)).all())
        True
        """
        given = np.asarray(seeds if isinstance(seeds, np.ndarray) else list(seeds))
        good = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iu" and bool((given >= 0).all())
        require(good, "seeds", seeds, "whole numbers from 0 to 2^64 - 1, at least one")
        rng = cls(0, np.zeros(given.size, np.int64))
        rng.keys[:, 0] = given
        return rng

    def at(self, purpose: Purpose, round: int | NDArray[np.int64] = 0) -> "Rng":
        """The streams of the same replications for a purpose and a round (or a round for each replication)."""
        other = object.__new__(Rng)
        other.keys = self.keys
        other.purpose = np.uint64(purpose)
        other.round = round.astype(np.uint64) if isinstance(round, np.ndarray) else np.uint64(round)
        other.calls = 0
        return other

    def over(self, purpose: Purpose, rounds: NDArray[np.int64]) -> "Rng":
        """The streams of the same replications for a purpose and many rounds, which become the last axis of the batch.

        >>> rng = Rng(seed=1, replication=[0, 1, 2])
        >>> rng.over(Purpose.WORLD, np.arange(1, 8)).uniform(4).shape
        (3, 7, 4)
        """
        other = self.at(purpose, rounds)
        other.keys = self.keys[..., None, :]
        return other

    def spread(self, batch: tuple[int, ...]) -> "Rng":
        """Broadcast the streams to a larger batch: the added axes share the replications."""
        other = self.at(Purpose(int(self.purpose)))
        other.round = self.round
        other.keys = np.broadcast_to(self.keys, (*batch, 2))
        return other

    def take(self, rows: Any) -> "Rng":
        """The streams of some replications, which an index into the first axis names."""
        other = self.at(Purpose(int(self.purpose)))
        other.round = self.round[rows] if self.round.ndim else self.round
        other.keys = self.keys[rows]
        return other

    def restarted(self) -> "Rng":
        """Start the streams again at the same purpose and round: they repeat earlier draws."""
        other = self.at(Purpose(int(self.purpose)))
        other.round = self.round
        return other

    def address(self) -> tuple[NDArray[np.uint64], np.uint64, Any, np.uint64]:
        """(key, call, round, purpose) of the next draw, for kernels that draw numbers themselves."""
        call = np.uint64(self.calls)
        self.calls += 1
        return self.keys, call, self.round, self.purpose

    def uniform(self, n: int) -> NDArray[np.float64]:
        """Uniform draws in [0, 1), `(*batch, n)`."""
        return np.asarray(kernels.uniform(*self.address(), np.empty(n)))

    def bernoulli(self, mean: ArrayLike) -> NDArray[np.float64]:
        """1 with these probabilities, `(n,)` or `(*batch, n)`, otherwise 0: `uniform(n) < mean` as numbers."""
        return np.asarray(kernels.bernoulli(*self.address(), np.asarray(mean, float)))

    def normal(self, n: int) -> NDArray[np.float64]:
        """Standard normal draws, `(*batch, n)`."""
        return np.asarray(kernels.normal(*self.address(), np.empty(n)))

    def beta(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Beta draws, `(*batch, n)` for parameters `(n,)` or `(*batch, n)`, all positive."""
        # compiled code divides before it knows whether it needs to, on some processors
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(kernels.beta(*self.address(), np.asarray(a, float), np.asarray(b, float)))

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A uniformly random order of 0..n-1 for each replication, `(*batch, n)`."""
        return np.argsort(self.uniform(n), axis=-1, kind="stable")


__all__ = [
    "Purpose",
    "Rng",
]
