"""Cost of a round against the round number and against the number of arms; memory of a learner."""

from time import perf_counter

import numpy as np

import spillover as sp
from spillover.rng import Purpose
from spillover.state import leaves

LONG = 500_000


def flat_in_time() -> None:
    """Microseconds a round over half a million rounds, one block of ten learners."""
    world = sp.SyntheticSEM(horizon=LONG, changes=())
    rng = sp.Rng(0, np.arange(10))
    marks = {5_000, 10_000, 250_000, 255_000, LONG - 5_000, LONG}
    start, times = perf_counter(), {}
    for played in sp.rounds(sp.NDCSEM(), world.draw(rng.at(Purpose.WORLD), (10,)), 50, rng, (10,)):
        if played.t in marks:
            times[played.t] = perf_counter() - start
            size = sum(leaf.nbytes for leaf in leaves(played.state).values()) / 10
    early, middle, late = (
        (times[b] - times[a]) / 5_000 * 1e6 for a, b in ((5_000, 10_000), (250_000, 255_000), (LONG - 5_000, LONG))
    )
    print(f"us a round of 10 learners: {early:.0f} at round 5,000, {middle:.0f} at 250,000, {late:.0f} at {LONG:,}")
    print(f"state of a learner, at any round: {size:,.0f} bytes")


def by_arms() -> None:
    """Milliseconds a round of one learner at N = 10, 100, 1,000 (s = 2N/5, 0.8 edges an arm), and the exponent."""
    spent = {}
    for n, rounds in ((10, 2000), (100, 1000), (1000, 300)):
        world = sp.SyntheticSEM(n_arms=n, budget=2 * n // 5, edge_density=0.8 / (n - 1), horizon=rounds, changes=())
        start = perf_counter()
        sp.simulate(sp.NDCSEM(), world, 0, replications=1, record=rounds)
        spent[n] = (perf_counter() - start) / rounds
        print(f"N = {n:5}: {spent[n] * 1e3:8.3f} ms a round, the world included ({rounds} rounds)")
    for a, b in ((10, 100), (100, 1000)):
        print(f"exponent from N = {a} to {b}: {np.log10(spent[b] / spent[a]):.2f}")


def main() -> None:
    flat_in_time()
    by_arms()


if __name__ == "__main__":
    main()
