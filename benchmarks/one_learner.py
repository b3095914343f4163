"""Microseconds of a round for each part of one's own that docs/write-your-own.md shows, at N = 10.

Of a live learner (choose, play, report) for the policies, and in a simulation, world and regret included: of 256
replications, or 4 if Python runs them. The built-in part is beside each.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import spillover as sp
from benchmarks.graph_step import timed
from benchmarks.live import one_learner
from spillover.interop.agents import AgentPolicy
from tests.own_parts import load

BATCH, FEW = 256, 4
ROUNDS = 500
WORLD = sp.SyntheticSEM(horizon=ROUNDS, changes=())


class Favourite:
    """An object that knows nothing of Spillover: it plays the arms that have earned most so far."""

    def __init__(self, n: int) -> None:
        self.earned = np.ones(n)

    def act(self, observation: Any) -> Any:
        self.earned += observation["z"]
        return self.earned / self.earned.max()


def simulated(policy: Any, replications: int, world: Any = WORLD, delay: Any = 5) -> float:
    """Microseconds of processor time a round of a learner."""
    spent = timed(lambda: sp.simulate(policy, world, delay, replications=replications, threads=1), times=3)
    return float(spent.processor / world.horizon / replications * 1e6)


def parts() -> Iterator[tuple[str, Any, int, Any, Any]]:
    """The name of each part, with the policy, replications, world and delay that it is played with."""
    greedy, weekly = load("my_greedy"), load("my_delay").WeeklyReports()
    fast, own = greedy.FastGreedy(), load("my_world").Chain(n_arms=10, budget=4, horizon=ROUNDS)
    agent = AgentPolicy(make=lambda problem, seed: Favourite(problem.n_arms), actions="top")
    yield "a policy, plain", greedy.Greedy(), FEW, WORLD, 5
    yield "a policy, compiled", fast, BATCH, WORLD, 5
    yield "a policy with a graph, batches", load("my_policy").EpsilonGreedy(), BATCH, WORLD, 5
    yield "a graph learner, batches", sp.NDCSEM(graph=load("my_graph").RidgeGraph()), BATCH, WORLD, 5
    yield "built-in: NDC-SEM", sp.NDCSEM(), BATCH, WORLD, 5
    yield "a world, compiled policy", fast, BATCH, own, 5
    yield "a delay, compiled policy", fast, BATCH, WORLD, weekly
    yield "an object with act()", agent, FEW, WORLD, 5


def main() -> None:
    for name, policy, replications, world, delay in parts():
        live = f", {one_learner(policy, rounds=1000):6.1f} us live" if name.startswith("a policy,") else ""
        print(f"{name:31} {simulated(policy, replications, world, delay):8.2f} us in a simulation{live}")


if __name__ == "__main__":
    main()
