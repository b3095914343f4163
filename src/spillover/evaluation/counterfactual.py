"""What decisions would have brought in the worlds that a log leaves possible."""

from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import AnyPolicy
from spillover.evaluation.worlds import LoggedRounds, LoggedWorld, Worlds
from spillover.simulation import simulate
from spillover.types import Array, BoolArray

REPLAYS = 2  # of a policy in each world: they tell its own luck from what is not known about the world


class Counterfactual(NamedTuple):
    """The expected payoff of some decisions in each draw."""

    effect: Array  # (draws,): what the decisions add to the payoff, over all rounds
    payoff: Array  # (draws,): the same with the outcomes that there are without any decision
    course: Array  # (draws, rounds): expected payoff up to each round


def of_decisions(worlds: Worlds, amounts: Array) -> Counterfactual:
    """Of given decisions, (rounds, arms)."""
    return counterfactual(worlds, worlds.expected(amounts))


def of_policy(worlds: Worlds, policy: AnyPolicy, delay: Any, seed: int = 0) -> Counterfactual:
    """Of a policy that starts in the first round, knows nothing, and learns from what it brings about itself."""
    draws = len(worlds)
    environment, replications = LoggedRounds(worlds=worlds), draws * REPLAYS
    run = simulate(policy, environment, delay, replications=replications, seed=seed, record=[len(worlds.log.x)], threads=1)
    regret = np.diff(run.regret, axis=-1, prepend=0.0).reshape(REPLAYS, draws, -1)
    each = best_of_each_round(worlds) - regret
    return counterfactual(worlds, without_own_luck(each))


def without_own_luck(each: Array) -> Array:
    """The average over replays, (draws, rounds), with the variance of totals that replays of one world do not share removed.

    each: (replays, draws, rounds).
    """
    average = each.mean(axis=0)
    totals = each.sum(axis=-1)
    luck = float(totals.var(axis=0, ddof=1).mean()) / len(each)
    total = average.sum(axis=-1)
    spread = float(total.var(ddof=1))
    kept = np.sqrt(max(spread - luck, 0.0) / spread) if spread > 0 else 1.0
    return np.asarray(average.mean(axis=0) + kept * (average - average.mean(axis=0)))


def counterfactual(worlds: Worlds, effects: Array) -> Counterfactual:
    """From what the decisions of each round add, (draws, rounds)."""
    total = effects + worlds.without
    return Counterfactual(effects.sum(axis=-1), total.sum(axis=-1), np.cumsum(total, axis=-1))


def best_of_each_round(worlds: Worlds) -> Array:
    """What the best set of each round would have added, (draws, rounds): nobody could have known it."""
    world = LoggedWorld(worlds=worlds, rows=np.arange(len(worlds)))
    stretches = world.best_of(worlds.worth) * worlds.worth
    return np.asarray(stretches.sum(axis=-1)[:, worlds.log.block])


def effect_of_each_arm(worlds: Worlds) -> Array:
    """The expected effect of each arm, (arms,), if it had been chosen in all rounds: to find the best fixed set."""
    return np.asarray(worlds.worth[:, worlds.log.block, :].mean(axis=(0, 1)))


def shares_of_arms(x: BoolArray) -> Array:
    """How often each arm is chosen."""
    return np.asarray(x.reshape(-1, x.shape[-1]).mean(axis=0))
