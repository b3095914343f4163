"""Simulated logs, and what decisions are truly worth in their worlds: many worlds at a time."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import spillover as sp
from spillover.environments.surroundings import for_rounds
from spillover.history import History
from spillover.rng import Purpose


class Counts(NamedTuple):
    sums: np.ndarray
    counts: np.ndarray
    budget: int


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(sp.Policy):
    """Greedy by the arms' own outcomes, and random in a fifth of the rounds: how many logs come about."""

    share: float = 0.2

    traits = sp.Traits(needs_rewards=False)

    def init(self, problem, rng, batch=()):
        return Counts(np.zeros((*batch, problem.n_arms)), np.zeros((*batch, problem.n_arms)), problem.budget)

    def select(self, state, rng):
        draws = rng.uniform(state.sums.shape[-1] + 1)
        score = np.where(state.counts > 0, state.sums / np.maximum(state.counts, 1), np.inf)
        score = np.where(draws[..., :1] < self.share, draws[..., 1:], score)
        order = np.lexsort((draws[..., 1:], -score))
        x = np.zeros(score.shape, np.bool_)
        np.put_along_axis(x, order[..., : state.budget], True, axis=-1)
        return sp.Choice(x)

    def played(self, state, x):
        return state

    def update(self, state, feedback, rng):
        here = feedback.x & feedback.arrived[..., None]
        return state._replace(sums=state.sums + np.where(here, feedback.y, 0.0), counts=state.counts + here)


class Logs(NamedTuple):
    """Logs of many worlds."""

    world: object
    histories: list
    effects: np.ndarray  # (worlds, rounds, arms): what choosing an arm adds to the payoff, in expectation
    still: np.ndarray  # (worlds,): the payoff of all rounds if nothing is chosen, in expectation


def draw_logs(environment, policy, delay, worlds, seed):
    """Draw worlds, and let a policy play in them."""
    rng = sp.Rng(seed, np.arange(worlds))
    world = environment.draw(rng.at(Purpose.WORLD), (worlds,))
    played = [(r.x, r.outcome.z, r.outcome.y) for r in sp.rounds(policy, world, delay, rng, (worlds,))]
    x, z, y = (np.stack(values, axis=1) for values in zip(*played, strict=True))
    rounds = np.arange(1, world.horizon + 1)
    if world.problem.context:
        context = list(np.stack([world.context(t) for t in rounds], axis=1))
    else:
        context = [None] * worlds
    baseline = bool(world.problem.baseline) or environment.observes != "both"
    histories = [
        history_of(x[k], z[k] if environment.observes == "both" else None, y[k], context[k], baseline)
        for k in range(worlds)
    ]
    effects = np.broadcast_to(world.scores(rounds, rounds), (worlds, world.horizon, x.shape[-1]))
    return Logs(world, histories, effects, without_decisions(world, worlds))


def history_of(x, z, y, context=None, baseline=True):
    """A history of arrays."""
    payoff = z is None and not y[:, 1:].any()
    return History(
        arms=tuple(f"arm {j + 1}" for j in range(x.shape[1])),
        rounds=tuple(str(t + 1) for t in range(len(x))),
        x=x,
        z=z,
        y=y,
        arrived=np.ones(len(x), np.bool_),
        following=None,
        notes=(),
        observes="payoff" if payoff else "overall" if z is None else "both",
        context=context,
        context_names=() if context is None else tuple(f"c{k}" for k in range(context.shape[1])),
        has_baseline=baseline,
    )


def without_decisions(world, worlds):
    if world.surroundings is None:
        return np.zeros(worlds)
    rounds = np.arange(1, world.horizon + 1)
    spread = for_rounds(rounds, world.spread[..., 0, :, :], 2)
    return (spread @ world.surroundings.without_decision(rounds)[..., None]).sum(axis=(-3, -2, -1))


def true_effects(logs, problems, policy, delay, replays, seed):
    """What the decisions of a policy add to the payoff of all rounds, in expectation, in each world."""
    worlds = len(logs.histories)
    batch = (replays, worlds)
    world = logs.world.repeated((replays,))
    ranges = np.array([np.asarray(problem.reward_range, float) for problem in problems])
    world.__dict__["problem"] = problems[0]._replace(reward_range=np.broadcast_to(ranges, (*batch, 2)))
    rng = sp.Rng(seed, np.arange(replays * worlds).reshape(batch))
    total = np.zeros(batch)
    for played in sp.rounds(policy, world, delay, rng, batch):
        total += np.vecdot(logs.effects[:, played.t - 1], played.x)
    return total.mean(axis=0)
