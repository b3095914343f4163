"""Microseconds a decision of every policy, world and regret included, in a batch of 256 at N = 10; and as ratios."""

from time import perf_counter

import spillover as sp
from spillover.policies import POLICIES

BATCH = 256
ROUNDS = 500


def microseconds(name: str) -> float:
    world = sp.SyntheticSEM(horizon=ROUNDS, changes=(250,))
    start = perf_counter()
    sp.simulate(POLICIES[name](), world, 50, replications=BATCH)
    return (perf_counter() - start) / ROUNDS / BATCH * 1e6


def main() -> None:
    sp.simulate(POLICIES["random"](), sp.SyntheticSEM(horizon=100, changes=()), 5, replications=BATCH)
    best = {name: min(microseconds(name) for _ in range(3)) for name in POLICIES if name != "instrumental-sem"}
    for name, value in best.items():
        print(f"{name:28} {value:6.2f} us a decision, {value / best['random']:5.1f} x the random policy's")


if __name__ == "__main__":
    main()
