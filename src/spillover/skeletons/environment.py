"""ExampleEnvironment, an environment to start from: a chain of arms whose order of merit is reversed half-way."""

from dataclasses import dataclass

import numpy as np

from spillover import validate
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, IntArray, Outcome, Problem


@dataclass(frozen=True, kw_only=True)
class ExampleEnvironmentWorld:
    """One drawn world for each learner; decisions may have further axes before those of the batch."""

    levels: Array  # (*batch, n): means of the first half, those of the second in reverse
    spill: float
    budget: int
    horizon: int

    @property
    def problem(self) -> Problem:
        """What a policy may know: no graph, no means."""
        largest = float((self.spill ** np.arange(self.budget)).sum())
        return Problem(self.levels.shape[-1], self.budget, True, (0.0, 1.0), (0.0, largest))

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(str(k + 1) for k in range(self.levels.shape[-1]))

    @property
    def changes(self) -> tuple[int, ...]:
        """First rounds of the stationary periods after the first one."""
        return (self.horizon // 2 + 1,) if self.horizon > 1 else ()

    @property
    def graph_changes(self) -> tuple[int, ...]:
        return ()

    def means(self, t: int) -> Array:
        return self.levels if t <= self.horizon // 2 or self.horizon == 1 else self.levels[..., ::-1]

    def reach(self) -> Array:
        """(I - A)^-1, (n, n): a reward of arm j arrives at arm i <= j as spill^(j - i)."""
        place = np.arange(self.levels.shape[-1])
        steps = place - place[:, None]
        return np.where(steps >= 0, self.spill ** np.maximum(steps, 0), 0.0)

    def adjacency(self, t: int) -> Array:
        """adjacency[i, j] is the effect of arm j on arm i: causes stand after their effects."""
        n = self.levels.shape[-1]
        return np.broadcast_to(self.spill * np.eye(n, k=1), (*self.levels.shape, n))

    def weights(self, t: int) -> Array:
        """What a reward of 1 brings in all."""
        return np.broadcast_to(self.reach().sum(axis=0), self.levels.shape)

    def scores(self, t: int) -> Array:
        """Expected payoff of each arm."""
        return np.asarray(self.weights(t) * self.means(t))

    def expected(self, t: int, x: BoolArray) -> Array:
        return np.asarray(np.where(x, self.scores(t), 0.0).sum(axis=-1))

    def best(self, t: int) -> BoolArray:
        """An optimal decision: the `budget` arms with the highest scores."""
        place = np.argsort(np.argsort(-self.scores(t), axis=-1, kind="stable"), axis=-1)
        return np.asarray(place < self.budget)

    def matches(self, t: int, x: BoolArray) -> IntArray:
        """How many of the chosen arms are optimal; no two arms have the same score here."""
        return np.asarray((x & self.best(t)).sum(axis=-1))

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        """Rewards are drawn for all arms, whatever is played; then they spill over."""
        rewards = rng.uniform(self.levels.shape[-1]) < self.means(t)
        z = np.where(x, rewards, 0.0)
        return Outcome(z, (self.reach() * z[..., None, :]).sum(axis=-1))


@dataclass(frozen=True, kw_only=True)
class ExampleEnvironment:
    """Each arm passes a share of its total on to the arm before it; means are drawn for each learner.

    n_arms, budget, horizon: the size of the problem. spill: the share, from 0 to 1.

    >>> world = ExampleEnvironment(n_arms=3, budget=1).draw(Rng(0))
    >>> world.weights(1)
    array([1.  , 1.5 , 1.75])
    """

    n_arms: int = 6
    budget: int = 2
    horizon: int = 200
    spill: float = 0.5

    def __post_init__(self) -> None:
        validate.whole("n_arms", self.n_arms, 1)
        validate.whole("budget", self.budget, 1, self.n_arms)
        validate.whole("horizon", self.horizon, 1)
        validate.number("spill", self.spill, "a share, from 0 to 1", low=0, high=1)

    def draw(self, rng: Rng, batch: Batch = ()) -> ExampleEnvironmentWorld:
        levels = np.broadcast_to(rng.uniform(self.n_arms), (*batch, self.n_arms))
        return ExampleEnvironmentWorld(levels=levels, spill=self.spill, budget=self.budget, horizon=self.horizon)
