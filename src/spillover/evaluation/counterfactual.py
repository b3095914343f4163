"""What decisions would have brought in the worlds that a log leaves possible."""

from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import AnyPolicy
from spillover.evaluation.worlds import LoggedRounds, LoggedWorld, Worlds
from spillover.simulation import simulate
from spillover.types import Array, BoolArray

TAILS = (0.025, 0.975)
# Noise differs between rounds and means move otherwise than assumed: on the worlds that the model was developed on,
# intervals of the draws alone contained the truth in 85% to 100% of the cases.
WIDER = 1.25
AGAIN = 3  # one world in so many is played twice
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
