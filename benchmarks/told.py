"""Measure the value of being told how means move: where they drift, and where three arms change, at a delay of 50.

`python -m benchmarks told [--instances 100] [--seed S]`

Policies that are told the weights of the arms, and more: how the means move and in which rounds they change, or which
arms change (as soon as the outcome of that round arrives). Some see the rewards of all arms, chosen or not: what they
have to guess, nobody can know. The others see what they chose, and explore as SwitchingSEM does, or more, over a
horizon of 80 rounds. Ratios of mean final pseudo-regrets to the delayed oracle's on the same worlds and rewards, with
95% intervals by the delta method.
"""

import argparse
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import spillover as sp
from benchmarks.told_filters import Drifting, Filter, KnownChanges, KnownCourse
from benchmarks.told_weights import ToldWeights
from spillover.contracts.world import drawn as drawn_course
from spillover.environments.world import SEMWorld
from spillover.metrics import mean_interval
from spillover.policies.reference import DelayedOracle
from spillover.policies.switching_state import HORIZON, HORIZON_OF_DELAY
from spillover.rng import Purpose, Rng
from spillover.types import Array

DELAY = 50
BLIND = DELAY + 1
LONGER = 80.0  # rounds that a better arm pays off, instead of SwitchingSEM's 32.5 at this delay
CROWDING = 1.5  # power of 1 + pulls in flight that divides the bonus, as in SwitchingSEM


class Worlds(NamedTuple):
    """Drawn worlds, with the rewards of all arms in all rounds."""

    world: SEMWorld
    weights: Array  # (worlds, n)
    means: Array  # (rounds, worlds, n)
    rewards: Array  # (rounds, worlds, n)


def drawn(environment: sp.SyntheticSEM, seed: int, instances: int) -> Worlds:
    """The worlds and rewards that `simulate` draws."""
    rng = Rng(seed, np.arange(instances))
    world = environment.draw(rng.at(Purpose.WORLD), (instances,))
    course = world.course(1, world.horizon, rng)
    assert course is not None
    course = drawn_course(course, 1, world.horizon, rng)
    means = np.moveaxis(world.means(np.arange(1, world.horizon + 1)), 1, 0)
    return Worlds(world, world.weights(1), means, np.moveaxis(course.rewards, 1, 0))


def regret(worlds: Worlds, known: Filter, sees_all: bool, horizon: float) -> Array:
    """Cumulative regret, (worlds, rounds), of the arms with the largest weight times mean plus bonus."""
    world, weights, means, rewards = worlds
    budget, shape = world.budget, weights.shape
    chosen, lost = np.zeros(means.shape, np.bool_), np.empty((shape[0], len(means)))
    in_flight = np.zeros(shape)
    for t in range(1, len(means) + 1):
        arrived = t - 1 - DELAY
        if arrived > 0:
            x = chosen[arrived - 1]
            known.learn(arrived, np.ones(shape, np.bool_) if sees_all else x, rewards[arrived - 1])
            in_flight -= x
        known.forecast(t)
        index = known.mean + bonus(known, weights, budget, horizon) / (1.0 + in_flight) ** CROWDING
        np.put_along_axis(chosen[t - 1], np.argsort(-weights * index, axis=-1)[:, :budget], True, axis=-1)
        in_flight += chosen[t - 1]
        value = weights * means[t - 1]
        lost[:, t - 1] = np.sort(value, axis=-1)[:, -budget:].sum(axis=-1) - (value * chosen[t - 1]).sum(axis=-1)
    return np.cumsum(lost, axis=-1)


def bonus(known: Filter, weights: Array, budget: int, horizon: float) -> Array:
    """The expected gain over so many rounds if an arm is better than it looks; of a chosen arm, the expected loss."""
    if horizon == 0.0:
        return np.zeros_like(weights)
    scores = weights * known.mean
    ordered = np.sort(scores, axis=-1)
    inside = scores >= ordered[:, -budget, None]
    level = np.where(inside, ordered[:, -budget - 1, None], ordered[:, -budget, None]) / weights
    excess = known.excess(level)
    within_reach = np.where(inside, excess - (known.mean - level), excess)
    return np.asarray(np.where(level < 1.0, horizon * np.maximum(within_reach, 0.0), 0.0))


class Simulated(NamedTuple):
    """Cumulative regret, (worlds, rounds), of policies of the package."""

    ours: Array  # SwitchingSEM, which is told nothing
    told_weights: Array
    oracle: Array  # the delayed one


def simulated(environment: sp.SyntheticSEM, seed: int, instances: int) -> Simulated:
    runs = [
        sp.simulate(policy, environment, DELAY, replications=instances, seed=seed, record=environment.horizon)
        for policy in (sp.SwitchingSEM(), ToldWeights(), DelayedOracle())
    ]
    return Simulated(*(run.regret for run in runs))


def show(label: str, own: Array, oracle: Array) -> None:
    """A row of the table: final regret, its ratio to the oracle's, and the regret of the blind rounds."""
    final, base = own[:, -1], oracle[:, -1]
    ratio = final.mean() / base.mean()
    _, low, high = mean_interval((final - ratio * base) / base.mean())
    print(
        f"| {label} | {final.mean():.0f} | {ratio:.2f} [{ratio + low:.2f}, {ratio + high:.2f}] "
        f"| {own[:, BLIND - 1].mean():.0f} |",
        flush=True,
    )


def drifting_means(seed: int, instances: int, horizon: float) -> None:
    environment = sp.SyntheticSEM(smooth=True)
    worlds, (ours, told_weights, oracle) = drawn(environment, seed, instances), simulated(environment, seed, instances)
    n, ends = environment.n_arms, worlds.world.ends
    course, process = "drift: weights, course and change rounds", "drift: weights, SwitchingSEM's process"
    show("drift: nothing (SwitchingSEM)", ours, oracle)
    show("drift: weights (SwitchingSEM)", told_weights, oracle)
    show(f"{process}", regret(worlds, Drifting(instances, n), False, horizon), oracle)
    show(f"{process}; all rewards", regret(worlds, Drifting(instances, n), True, 0.0), oracle)
    show(f"{process}; horizon 80", regret(worlds, Drifting(instances, n), False, LONGER), oracle)
    show(f"{course}", regret(worlds, KnownCourse(instances, n, ends), False, horizon), oracle)
    show(f"{course}; horizon 80", regret(worlds, KnownCourse(instances, n, ends), False, LONGER), oracle)
    show(f"{course}; all rewards", regret(worlds, KnownCourse(instances, n, ends), True, 0.0), oracle)


def three_arms(seed: int, instances: int, horizon: float) -> None:
    environment = sp.SyntheticSEM(changed=3)
    worlds, (ours, told_weights, oracle) = drawn(environment, seed, instances), simulated(environment, seed, instances)
    n, changes, levels = environment.n_arms, environment.changes, np.moveaxis(worlds.world.levels, 1, 0)
    told = (levels[1:] != levels[:-1]).astype(float)
    share = np.full_like(told, 3 / n)
    show("three arms: nothing (SwitchingSEM)", ours, oracle)
    show("three arms: weights (SwitchingSEM)", told_weights, oracle)
    for label, touched, sees_all, rounds in (
        ("three arms: weights, change rounds", share, False, horizon),
        ("three arms: weights, change rounds; horizon 80", share, False, LONGER),
        ("three arms: weights, change rounds, arms", told, False, horizon),
        ("three arms: weights, change rounds; all rewards", share, True, 0.0),
    ):
        known = KnownChanges(instances, n, changes, touched)
        show(label, regret(worlds, known, sees_all, rounds), oracle)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks told", description="What being told is worth.")
    parser.add_argument("--instances", type=int, default=100, help="fresh instances of each family")
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one")
    given = parser.parse_args(arguments)
    seed = secrets.randbits(32) if given.seed is None else given.seed
    horizon = HORIZON + HORIZON_OF_DELAY * DELAY
    print("| what is told | regret | over the delayed oracle's | of which blind |\n|---|---|---|---|")
    drifting_means(seed, given.instances, horizon)
    three_arms(seed, given.instances, horizon)


if __name__ == "__main__":
    main()
