"""Microseconds a decision and its outcome for the policy of docs/write-your-own.md, compiled and not, at N = 10.

Of a live learner, and in a simulation, world and regret included: of 256 replications, or 4 if Python runs them.
"""

from typing import Any

import spillover as sp
from benchmarks.graph_step import timed
from benchmarks.live import one_learner
from tests.own_parts import load

BATCH = 256
ROUNDS = 500


def simulated(policy: Any, replications: int) -> float:
    """Microseconds of processor time a round."""
    world = sp.SyntheticSEM(horizon=ROUNDS, changes=())
    spent = timed(lambda: sp.simulate(policy, world, 5, replications=replications), times=3)
    return spent.processor / ROUNDS / replications * 1e6


def main() -> None:
    greedy = load("my_greedy")
    for name, policy, replications in (("plain", greedy.Greedy(), 4), ("compiled", greedy.FastGreedy(), BATCH)):
        live, many = one_learner(policy, rounds=1000), simulated(policy, replications)
        print(f"{name:9} {live:6.1f} us live (choose, play, report), {many:7.2f} us in a simulation")


if __name__ == "__main__":
    main()
