"""Microseconds a decision of every policy, world and regret included, in a batch of 256 at N = 10; and as ratios.

Of processor time, and by the clock, where compiled policies are divided among the cores.
"""

import numpy as np

import spillover as sp
from benchmarks.graph_step import Seconds, timed
from spillover.policies import POLICIES

BATCH = 256
ROUNDS = 500


def microseconds(name: str) -> Seconds:
    world = sp.SyntheticSEM(horizon=ROUNDS, changes=(250,))
    spent = timed(lambda: sp.simulate(POLICIES[name](), world, 50, replications=BATCH), times=3)
    return Seconds(*(np.array(spent) / ROUNDS / BATCH * 1e6))


def main() -> None:
    sp.simulate(POLICIES["random"](), sp.SyntheticSEM(horizon=100, changes=()), 5, replications=BATCH)
    best = {name: microseconds(name) for name in POLICIES if name != "instrumental-sem"}
    for name, value in best.items():
        print(
            f"{name:28} {value.processor:6.2f} us of processor time a decision, {value.elapsed:6.2f} by the clock, "
            f"{value.processor / best['random'].processor:5.1f} x the random policy's"
        )


if __name__ == "__main__":
    main()
