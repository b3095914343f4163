"""Worlds that a log leaves possible, drawn from the posterior; policies can be played in them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spillover.environments.world import observed
from spillover.evaluation.log import Log
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Course, IntArray, Outcome, Problem, Scored


@dataclass(frozen=True, kw_only=True, eq=False)
class Worlds:
    """Draws from the posterior. The outcomes of round t are effects (amounts * own) + outcomes without decisions."""

    log: Log
    effects: Array  # (draws, outcomes, arms): what one unit of an arm's own reward adds to each outcome
    own: Array  # (draws, stretches, arms): own rewards, on average
    fixed: Array  # (draws, outcomes, k): coefficients of `Log.fixed`
    reward_residuals: tuple[Array, ...]  # of each arm, what its own rewards differ by from their averages
    residuals: Array  # (rounds, outcomes): the same of outcomes
    binary: bool  # whether own rewards are 0 or 1

    @cached_property
    def worth(self) -> Array:
        """The total effect of choosing an arm, (draws, stretches, arms)."""
        return np.asarray(self.effects.sum(axis=1)[:, None, :] * self.own)

    @cached_property
    def without(self) -> Array:
        """The expected payoff of each round if nothing is chosen, (draws, rounds)."""
        return np.asarray(self.fixed.sum(axis=1) @ self.log.fixed.T)

    def expected(self, amounts: Any) -> Array:
        """What decisions add to the payoff, (draws, rounds); amounts: (rounds, arms), or (draws, rounds, arms)."""
        return np.asarray(np.vecdot(self.worth[:, self.log.block, :], amounts))

    def __len__(self) -> int:
        return len(self.effects)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedRounds:
    """An environment for `simulate`: replication k is draw k of the worlds, from the first again after the last."""

    worlds: Worlds
    decisions: BoolArray  # (replications, rounds, arms): of the policy that was played, written when they are measured

    @classmethod
    def of(cls, worlds: Worlds, replications: int) -> "LoggedRounds":
        return cls(worlds=worlds, decisions=np.zeros((replications, *worlds.log.x.shape), np.bool_))

    def draw(self, rng: Rng, batch: Batch = ()) -> "LoggedWorld":
        return LoggedWorld(
            rounds=self, rows=np.arange(int(np.prod(batch, dtype=int))).reshape(batch) % len(self.worlds)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedWorld:
    """The logged rounds, played again by another policy; noise is drawn anew from the residuals of the log."""

    rounds: LoggedRounds
    rows: IntArray  # (replications,): the draw of each

    @property
    def worlds(self) -> Worlds:
        return self.rounds.worlds

    @property
    def problem(self) -> Problem:
        return self.worlds.log.problem

    @property
    def horizon(self) -> int:
        return len(self.worlds.log.x)

    @property
    def arms(self) -> tuple[str, ...]:
        return self.worlds.log.arms

    @property
    def changes(self) -> tuple[int, ...]:
        return ()

    @property
    def graph_changes(self) -> tuple[int, ...]:
        return ()

    def context(self, t: int) -> Array | None:
        """The context of round t, the same in all draws."""
        known = self.worlds.log.context
        return None if known is None else np.broadcast_to(known[t - 1], (*self.rows.shape, known.shape[1]))

    def adjacency(self, t: int) -> Array:
        """Not known: the posterior is about total effects. The error of graphs is not measured here."""
        n = len(self.arms)
        return np.zeros((*self.rows.shape, n, n))

    @cached_property
    def total(self) -> Array:
        """(replications, n, n): what a unit of own reward adds to each outcome; one outcome is in the first row."""
        effects = self.worlds.effects[self.rows]
        rest = effects.shape[-1] - effects.shape[-2]
        return np.concatenate([effects, np.zeros((*effects.shape[:-2], rest, effects.shape[-1]))], axis=-2)

    def weights(self, t: int) -> Array:
        return np.asarray(self.total.sum(axis=-2))

    def scores(self, rounds: IntArray) -> Array:
        """The expected payoff of each arm, (replications, rounds, arms)."""
        return np.asarray(self.worlds.worth[self.rows][..., self.worlds.log.block[rounds - 1], :])

    def best_of(self, scores: Array) -> BoolArray:
        """The best sets by scores: the best arms whose effect is positive."""
        order = np.argsort(-scores, axis=-1, kind="stable")
        best = np.zeros(scores.shape, np.bool_)
        np.put_along_axis(best, order[..., : self.problem.budget], True, axis=-1)
        return best & (scores > 0)

    def best(self, t: int) -> BoolArray:
        return self.best_of(self.scores(np.array([t]))[..., 0, :])

    def best_of_rounds(self, rounds: IntArray) -> BoolArray:
        return self.best_of(self.scores(rounds))

    def expected(self, t: int, x: BoolArray) -> Array:
        return np.asarray(np.vecdot(self.scores(np.array([t]))[..., 0, :], x))

    def matches(self, t: int, x: BoolArray) -> IntArray:
        return np.asarray((self.best(t) & x).sum(axis=-1))

    def score_rounds(self, first: int, x: BoolArray) -> Scored:
        """Measure the decisions of some rounds, and keep them."""
        self.rounds.decisions[:, first - 1 : first - 1 + x.shape[-2]] = x
        scores = self.scores(np.arange(first, first + x.shape[-2]))
        best = self.best_of(scores)
        regret = np.vecdot(scores, best) - np.vecdot(scores, x)
        return Scored(np.asarray(regret), np.asarray((best & x).sum(axis=-1)), np.asarray(best.sum(axis=-1)))

    def course(self, first: int, last: int, rng: Rng) -> Course | None:
        """What rounds first to last bring whatever is chosen."""
        if self.problem.observes != "both":
            return None
        rounds = np.arange(first, last + 1)
        return self.brought(rounds, rng.over(Purpose.WORLD, rounds))

    def brought(self, rounds: IntArray, rng: Rng) -> Course:
        """Rewards of all arms, noise, and outcomes without decisions, (replications, rounds, arms)."""
        log, n = self.worlds.log, len(self.arms)
        drawn = rng.uniform(n + 1)
        own = self.worlds.own[self.rows][..., log.block[rounds - 1], :]
        donors = np.minimum((drawn[..., n] * self.horizon).astype(np.int64), self.horizon - 1)
        noise = self.outcomes(self.worlds.residuals[donors])
        still = np.matmul(self.worlds.fixed[self.rows], log.fixed[rounds - 1].T)
        return Course(self.total, self.rewards(own, drawn[..., :n]), noise, self.outcomes(np.swapaxes(still, -1, -2)))

    def rewards(self, own: Array, drawn: Array) -> Array:
        """Own rewards: their averages, and a residual of the same arm if there are any; within the declared range."""
        if self.problem.observes != "both":
            return own
        if self.worlds.binary:
            return np.asarray(drawn < own, float)
        values = own.copy()
        for j, residuals in enumerate(self.worlds.reward_residuals):
            if len(residuals):
                values[..., j] += residuals[(drawn[..., j] * len(residuals)).astype(np.int64) % len(residuals)]
        low, high = self.problem.reward_range
        return np.clip(values, low, high)

    def outcomes(self, values: Array) -> Array:
        """Values for each outcome as n columns; one outcome for all arms is in the first."""
        rest = len(self.arms) - values.shape[-1]
        return values if not rest else np.concatenate([values, np.zeros((*values.shape[:-1], rest))], axis=-1)

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        own = rng.over(Purpose.WORLD, np.array([t]))
        total, rewards, noise, still = self.brought(np.array([t]), own)[:4]
        z = np.where(x, rewards[..., 0, :], 0.0)
        y = (total @ z[..., None])[..., 0] + noise[..., 0, :] + still[..., 0, :]
        return observed(Outcome(z, y), "both" if self.problem.observes == "both" else "overall")
