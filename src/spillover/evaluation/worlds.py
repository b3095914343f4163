"""Worlds that a log leaves possible, drawn from the posterior, and what decisions and policies bring in them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import AnyPolicy
from spillover.contracts.world import observed
from spillover.evaluation.log import Log
from spillover.rng import Purpose, Rng
from spillover.simulation import simulate
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
        """The expected payoff of decisions, (draws, rounds); amounts: (rounds, arms), or (draws, rounds, arms)."""
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
        """Draw what rounds first to last bring whatever is chosen."""
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


TAILS = (0.025, 0.975)
# Noise differs between rounds and means move otherwise than assumed: on the worlds that the model was developed on,
# intervals of the draws alone contained the truth in 85% to 100% of the cases.
WIDER = 1.25
AGAIN = 3  # every third world is played twice
LEAST_KEPT = 0.2  # of the variance of the draws, whatever is luck


class Counterfactual(NamedTuple):
    """Decisions in each draw, and what they bring in expectation."""

    payoff: Array  # (draws,): of all rounds, with the outcomes that there are without any decision
    course: Array  # (draws, rounds): the payoff up to each round
    shares: Array  # (arms,): the share of each arm in all choices


def of_decisions(worlds: Worlds, amounts: Array | BoolArray) -> Counterfactual:
    """Of given decisions: (rounds, arms), or (draws, rounds, arms) if they differ between worlds."""
    expected = np.clip(worlds.expected(amounts) + worlds.without, *worlds.log.possible)
    course = np.cumsum(expected, axis=-1)
    chosen = (amounts != 0).reshape(-1, amounts.shape[-1]).sum(axis=0)
    return Counterfactual(course[:, -1], course, chosen / max(int(chosen.sum()), 1))


def of_policy(worlds: Worlds, policy: AnyPolicy, delay: Any, seed: int = 0) -> Counterfactual:
    """Of a policy that starts in the first round, knows nothing, and learns from what it brings about itself.

    Its payoff in a world is an expectation. It plays once in each world, so draws also differ by its own luck. In a
    third of the worlds it plays twice: how far apart the two are tells by how much, and the draws are moved together.
    """
    draws, again = len(worlds), max(len(worlds) // AGAIN, 2)
    rounds = LoggedRounds.of(worlds, draws + again)
    simulate(policy, rounds, delay, replications=draws + again, seed=seed, record=[len(worlds.log.x)], threads=1)
    found = of_decisions(worlds, rounds.decisions[:draws])
    twice = np.concatenate([rounds.decisions[draws:], rounds.decisions[again:draws]])  # the others count once
    luck = float(((found.payoff - of_decisions(worlds, twice).payoff)[:again] ** 2).mean()) / 2
    spread = float(found.payoff.var(ddof=1))
    kept = max(1.0 - luck / spread, LEAST_KEPT) ** 0.5 if spread > 0 else 1.0
    payoff, course = (values.mean(axis=0) + kept * (values - values.mean(axis=0)) for values in found[:2])
    return found._replace(payoff=payoff, course=course)


def of_best_sets(worlds: Worlds) -> Counterfactual:
    """Of the best set of each round, in each world: nobody could have known them, so no policy does better."""
    world = LoggedWorld(rounds=LoggedRounds.of(worlds, 0), rows=np.arange(len(worlds)))
    return of_decisions(worlds, world.best_of(worlds.worth)[:, worlds.log.block, :])


def effect_of_each_arm(worlds: Worlds) -> Array:
    """The expected effect of each arm, (arms,), if it had been chosen in all rounds: to find the best fixed set."""
    return np.asarray(worlds.worth[:, worlds.log.block, :].mean(axis=(0, 1)))


def interval_of(draws: Array, possible: tuple[float, float] = (-np.inf, np.inf)) -> tuple[float, float]:
    """The 95% interval of draws, wider than that of the draws alone by a factor, but within what is possible."""
    mean, ends = draws.mean(), np.quantile(draws, TAILS, method="weibull")
    low, high = np.clip(mean + WIDER * (ends - mean), *possible)
    return float(low), float(high)
