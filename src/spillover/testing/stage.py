"""Where a policy is tried, and what shows of a run."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spillover.delays import LossyDelay, UniformDelay
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds, simulate
from spillover.testing.around import Around
from spillover.testing.shared import Arrays, demand, demand_equal, rows_of, snapshot
from spillover.types import Batch, Delay, Environment, Informed, IntArray, World

SCATTERED = LossyDelay(UniformDelay(0, 6), 0.3)  # late, out of order, several at once, some never


class Stage(NamedTuple):
    """Where a policy is tried."""

    environment: Environment
    seed: int


def enter(policy: Any, stage: Stage, replication: Any) -> tuple[Any, World, Rng]:
    """The policy (told the world, if it is a reference point), the world and the streams of these replications."""
    rng = Rng(stage.seed, replication)
    world = stage.environment.draw(rng.at(Purpose.WORLD), np.shape(replication))
    return (policy.told(world) if isinstance(policy, Informed) else policy), world, rng


def steps(policy: Any, stage: Stage, delay: Delay, replication: Any, lead: Batch = ()) -> Iterator[Arrays]:
    """All that shows after each round: decision, outcome and state, as copies."""
    player, world, rng = enter(policy, stage, replication)
    for played in rounds(player, world, delay, rng, (*lead, *np.shape(replication))):
        shown = {"x": played.x, "z": played.outcome.z, "y": played.outcome.y}
        yield {name: np.array(value) for name, value in shown.items()} | snapshot(played.state, "state.")


def demand_same_run(ours: list[Arrays], theirs: list[Arrays], broken: str, remedy: str) -> None:
    demand(len(ours) == len(theirs), f"{broken}: {len(ours)} rounds against {len(theirs)}", remedy)
    for t, (one, other) in enumerate(zip(ours, theirs, strict=True), 1):
        demand_equal(one, other, f"{broken}: in round {t}", remedy)


def run_around(
    around: Callable[[Any], Around], policy: Any, stage: Stage, delay: Delay = SCATTERED, batch: Batch = (3,)
) -> Around:
    """Play to the horizon with something around the policy."""
    player, world, rng = enter(policy, stage, rows_of(batch))
    watched = around(player)
    for _ in rounds(watched, world, delay, rng, batch):
        pass
    return watched


def run_arrays(policy: Any, stage: Stage, first: int, count: int) -> Arrays:
    """The results of a simulation."""
    run = simulate(policy, stage.environment, SCATTERED, replications=count, first=first, seed=stage.seed, record=5)
    names = ("regret", "payoff", "optimality_ratio", "graph_error", "adjacency")
    return {name: getattr(run, name) for name in names if getattr(run, name) is not None}


class Noted:
    """A delay that notes what it drew."""

    def __init__(self, delay: Delay) -> None:
        self.delay = delay
        self.notes: list[IntArray] = []

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        self.notes.append(self.delay.draw(t, rng, batch))
        return self.notes[-1]
