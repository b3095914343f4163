"""Candidate edges against all edges, and learners with many thousand arms."""

import resource
from time import process_time
from typing import Any

import numpy as np

import spillover as sp
from benchmarks.sparse_world import SparseWorld, session
from spillover.metrics import mean_interval
from spillover.state import leaves

FRESH = 52_000  # the first seed: no parameter was chosen on these worlds


def against_dense() -> None:
    """Regret and processor time of candidate edges relative to all edges, played side by side in the same worlds."""
    print("| N | s | rounds | worlds | regret, candidates / dense | time, dense / candidates | MB, dense | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for n, s, rounds, worlds in ((200, 20, 1_500, 16), (1_000, 20, 1_500, 6)):
        ratios, spent = [], np.zeros(2)
        for seed in range(FRESH, FRESH + worlds):
            totals, sizes = [0.0, 0.0], [0, 0]
            policies = [sp.NDCSEM(graph=graph, start="sweep") for graph in ("dense", "candidates")]
            games = [session(policy, SparseWorld(n, s, rounds, seed), seed) for policy in policies]
            for _ in range(rounds):
                for k, game in enumerate(games):
                    begin = process_time()
                    totals[k], state = next(game)
                    spent[k] += process_time() - begin
                    sizes[k] = state_bytes(state)
            ratios.append(totals[1] / totals[0])
        found = mean_interval(np.array(ratios), axis=-1)
        low, high = float(found.low), float(found.high)
        memory = " | ".join(f"{size / 1e6:.1f}" for size in sizes)
        print(
            f"| {n:,} | {s} | {rounds:,} | {worlds} | {float(found.mean):.3f} [{low:.3f}, {high:.3f}] "
            f"| {spent[0] / spent[1]:.1f} | {memory} |"
        )


def many_arms() -> None:
    """Milliseconds a round (the world included), memory, and regret of a learner at N = 10,000 and 100,000."""
    print("| N | s | rounds | ms a round, last third | state MB | process MB | regret / that without a graph |")
    print("|---|---|---|---|---|---|---|")
    for n, s, rounds in ((10_000, 100, 900), (100_000, 100, 1_500)):
        totals = {}
        for graph in ("candidates", "none"):
            world, spent = SparseWorld(n, s, rounds, FRESH), []
            game = session(sp.NDCSEM(graph=graph), world, FRESH)
            for _ in range(rounds):
                begin = process_time()
                totals[graph], state = next(game)
                spent.append(process_time() - begin)
            if graph == "candidates":
                pace, size = np.median(spent[-rounds // 3 :]) * 1e3, state_bytes(state) / 1e6
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        part = totals["candidates"] / totals["none"]
        print(f"| {n:,} | {s} | {rounds:,} | {pace:.2f} | {size:.0f} | {peak:.0f} | {part:.2f} |")


def state_bytes(state: Any) -> int:
    return sum(leaf.nbytes for leaf in leaves(state).values())


def main() -> None:
    against_dense()
    print()
    many_arms()


if __name__ == "__main__":
    main()
