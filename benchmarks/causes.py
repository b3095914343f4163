"""Take SwitchingSEM's regret apart where means drift smoothly and where three arms change, at a delay of 50.

`python -m benchmarks causes [--instances 100] [--seed S]`

The regret of a round is split in two: *exploring* is what the decision loses to the set that looks best, *misjudged*
what the set that looks best loses to the optimal one. The latter is also computed as if the policy knew the true means
of the idle arms, or of those in play: an arm is idle with fewer than ten pulls in flight.
"""

import argparse
import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import spillover as sp
from benchmarks.told import BLIND, DELAY, Worlds, drawn
from spillover.rng import Purpose, Rng
from spillover.types import Array, BoolArray, Feedback

IDLE = 10  # an arm with fewer pulls in flight is idle


class Split(NamedTuple):
    """The regret of a round by its cause, mean of the worlds."""

    exploring: float
    misjudged: float
    idle_known: float  # misjudged, if the means of idle arms were known
    in_play_known: float


def best_sets(scores: Array, budget: int) -> BoolArray:
    """The arms with the largest scores, in each world."""
    chosen = np.zeros(scores.shape, np.bool_)
    np.put_along_axis(chosen, np.argsort(-scores, axis=-1, kind="stable")[:, :budget], True, axis=-1)
    return chosen


def played(environment: sp.SyntheticSEM, seed: int, instances: int) -> Iterator[Split]:
    """Play SwitchingSEM round by round, as `simulate` does."""
    worlds, rng = drawn(environment, seed, instances), Rng(seed, np.arange(instances))
    policy = sp.SwitchingSEM().for_problem(worlds.world.problem)
    assert isinstance(policy, sp.SwitchingSEM)
    state = policy.init(worlds.world.problem, rng.at(Purpose.START), (instances,))
    spread, flying = worlds.world.total[:, 0], []
    for t in range(1, environment.horizon + 1):
        lines = policy.indices(state, rng.at(Purpose.CHOICE, t), (5, state.prior.shape[-1]))
        weights, mean, *_ = np.moveaxis(lines, -2, 0)
        choice = policy.select(state, rng.at(Purpose.CHOICE, t))
        yield split(worlds, t, weights, mean, choice.x, state.in_flight < IDLE)
        state = policy.played(state, choice.x)
        z = np.where(choice.x, worlds.rewards[t - 1], 0.0)
        y = (spread @ z[..., None])[..., 0]
        age, arrived = np.full(instances, DELAY), np.ones(instances, np.bool_)
        flying.append(Feedback(choice.x, z, y, age, arrived, memo=choice.memo))
        if len(flying) > DELAY:
            state = policy.update(state, flying.pop(0), rng.at(Purpose.LEARNING, t - DELAY))


def split(worlds: Worlds, t: int, weights: Array, mean: Array, x: BoolArray, idle: BoolArray) -> Split:
    budget, true = worlds.world.budget, worlds.means[t - 1]
    value = worlds.weights * true
    best = (value * best_sets(value, budget)).sum(axis=-1)

    def lost(means: Array) -> float:
        return float((best - (value * best_sets(weights * means, budget)).sum(axis=-1)).mean())

    misjudged = lost(mean)
    regret = float((best - (value * x).sum(axis=-1)).mean())
    return Split(regret - misjudged, misjudged, lost(np.where(idle, true, mean)), lost(np.where(idle, mean, true)))


def show(label: str, environment: sp.SyntheticSEM, seed: int, instances: int, jumps: Sequence[int]) -> None:
    """A row of the table for the blind rounds, the rounds after each change, and all others."""
    costs = np.array(list(played(environment, seed, instances)))
    rounds = np.arange(1, len(costs) + 1)
    blind = rounds <= BLIND
    unseen = np.any([(rounds >= t) & (rounds < t + BLIND) for t in (environment.horizon + 1, *jumps)], axis=0)
    parts = {"before any outcome": blind, "before the outcomes of a change": unseen, "others": ~blind & ~unseen}
    for name, which in parts.items():
        if which.any():
            exploring, misjudged, *known = costs[which].sum(axis=0)
            cells = (exploring + misjudged, exploring, misjudged, *known)
            print(f"| {label} | {name} | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks causes", description="Where the regret arises.")
    parser.add_argument("--instances", type=int, default=100, help="fresh instances of each family")
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one")
    given = parser.parse_args(arguments)
    seed = secrets.randbits(32) if given.seed is None else given.seed
    print("| world | rounds | regret | exploring | misjudged | if idle arms were known | if those in play were |")
    print("|---|---|---|---|---|---|---|")
    show("drift", sp.SyntheticSEM(smooth=True), seed, given.instances, ())
    three = sp.SyntheticSEM(changed=3)
    show("three arms", three, seed, given.instances, three.changes)


if __name__ == "__main__":
    main()
