"""The trial of a policy in an environment, and the record of a run."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import Delay, Environment, Policy, ScoredWorld, as_policy, suited
from spillover.delays import LossyDelay, UniformDelay
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds, simulate
from spillover.testing.shared import Arrays, demand, demand_equal, rows_of, snapshot
from spillover.testing.wrappers import Wrapper
from spillover.types import Batch, IntArray

SCATTERED = LossyDelay(UniformDelay(0, 6), 0.3)  # outcomes are late, out of order, several at once, or lost


class Trial(NamedTuple):
    """An environment and a seed to test a policy with."""

    environment: Environment
    seed: int


def start_trial(policy: Any, trial: Trial, replication: Any) -> tuple[Policy, ScoredWorld, Rng]:
    """The policy (with access to the world, if it needs it), the world and the streams of these replications."""
    rng = Rng(trial.seed, replication)
    world = trial.environment.draw(rng.at(Purpose.WORLD), np.shape(replication))
    return suited(as_policy(policy).with_world(world), world.problem), world, rng


def steps(policy: Any, trial: Trial, delay: Delay, replication: Any, lead: Batch = ()) -> Iterator[Arrays]:
    """Copies of decision, outcome and state after each round."""
    player, world, rng = start_trial(policy, trial, replication)
    for played in rounds(player, world, delay, rng, (*lead, *np.shape(replication))):
        shown = {"x": played.x, "z": played.outcome.z, "y": played.outcome.y}
        yield {name: np.array(value) for name, value in shown.items()} | snapshot(played.state, "state.")


def demand_same_run(ours: list[Arrays], theirs: list[Arrays], broken: str, remedy: str) -> None:
    demand(len(ours) == len(theirs), f"{broken}: {len(ours)} rounds against {len(theirs)}", remedy)
    for t, (one, other) in enumerate(zip(ours, theirs, strict=True), 1):
        demand_equal(one, other, f"{broken}: in round {t}", remedy)


def run_around(
    wrapper: Callable[[Policy], Wrapper], policy: Any, trial: Trial, delay: Delay = SCATTERED, batch: Batch = (3,)
) -> Wrapper:
    """Play to the horizon with a wrapper around the policy."""
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    wrapped = wrapper(player)
    for _ in rounds(wrapped, world, delay, rng, batch):
        pass
    return wrapped


def run_arrays(policy: Any, trial: Trial, first: int, count: int) -> Arrays:
    """The results of a simulation."""
    run = simulate(policy, trial.environment, SCATTERED, replications=count, first=first, seed=trial.seed, record=5)
    names = ("regret", "payoff", "optimality_ratio", "graph_error", "adjacency")
    return {name: getattr(run, name) for name in names if getattr(run, name) is not None}


class LoggedDelay(Delay):
    """A delay that keeps a log of its draws."""

    def __init__(self, delay: Delay) -> None:
        self.delay = delay
        self.log: list[IntArray] = []

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        self.log.append(self.delay.draw(t, rng, batch))
        return self.log[-1]
