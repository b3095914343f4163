"""The learners of the graph beside each other: the cost of a round, and (`graph-regret`) the regret of NDC-SEM."""

from time import perf_counter
from typing import Any

import numpy as np

import spillover as sp
from spillover.graph import AdaptiveGraph, InstrumentGraph, NoGraph, PayoffWeights, SparseGraph

LEARNERS = {
    "sparse": SparseGraph,
    "payoff": PayoffWeights,
    "instrument": InstrumentGraph,
    "adaptive": AdaptiveGraph,
}
REDRAWN = tuple(range(50, 5000, 50))
SEED, REPLICATIONS = 20, 100


def fixed(edges: list[tuple[int, int, float]], order: Any = None) -> sp.FixedSEM:
    """Ten arms with these edges, of an order that nobody knows."""
    a = np.zeros((10, 10))
    for i, j, weight in edges:
        a[i, j] = weight
    a = a if order is None else a[np.ix_(order, order)]
    means = np.random.default_rng(1).uniform(size=(4, 10))
    return sp.FixedSEM(adjacency=a, means=means, changes=(1000, 2500, 4000), budget=4, acyclic=False)


def worlds() -> dict[str, tuple[Any, int]]:
    ring = [(k, (k + 1) % 10, 0.5) for k in range(10)] + [(0, 5, 0.4), (5, 2, 0.4)]
    heavy = [(0, 7, 0.6), (0, 8, 0.6), (0, 9, 0.6), (1, 8, 0.6), (3, 9, 0.5), (4, 6, 0.5), (2, 9, 0.6), (5, 7, 0.6)]
    return {
        "the paper's": (sp.SyntheticSEM(), 50),
        "no edges": (sp.SyntheticSEM(edge_density=0.0), 50),
        "a new graph every 50 rounds, D = 0": (sp.SyntheticSEM(graph_changes=REDRAWN), 0),
        "the same, D = 10": (sp.SyntheticSEM(graph_changes=REDRAWN), 10),
        "the same, D = 50": (sp.SyntheticSEM(graph_changes=REDRAWN), 50),
        "two changes of the graph": (sp.SyntheticSEM(graph_changes=(1500, 3000)), 50),
        "gains U[0.5, 2]": (sp.SyntheticSEM(gain_range=(0.5, 2.0)), 50),
        "noise 0.1": (sp.SyntheticSEM(noise=0.1), 50),
        "noise 0.5": (sp.SyntheticSEM(noise=0.5), 50),
        "a cycle": (fixed(ring), 50),
        "order unknown": (fixed(heavy, np.random.default_rng(0).permutation(10)), 50),
        "half of the edges harmful (signed)": (sp.SyntheticSEM(harmful=0.5), 50),
    }


def microseconds(learner: Any, n: int, batch: tuple[int, ...], rounds: int) -> float:
    """Cost of a learner and a round, after as many rounds to warm up."""
    rng = np.random.default_rng(0)
    a = np.triu(rng.uniform(0.3, 0.6, (n, n)) * (rng.uniform(size=(n, n)) < 1.8 / n), 1)
    z = (rng.uniform(size=(2 * rounds, *batch, n)) < 0.2).astype(float)
    y = z @ np.linalg.inv(np.eye(n) - a).T
    graph, heard = learner.init(sp.Problem(n, 4, acyclic=True), batch), np.ones(batch, bool)
    start = 0.0
    for t in range(2 * rounds):
        start = perf_counter() if t == rounds else start
        graph = learner.solve(learner.absorb(graph, z[t], y[t], heard, np.full(batch, t + 1)))
    return (perf_counter() - start) / rounds / max(int(np.prod(batch)), 1) * 1e6


def main() -> None:
    for n, batch, rounds in ((10, (256,), 300), (100, (), 100)):
        for learner in (SparseGraph(), PayoffWeights(), InstrumentGraph(), AdaptiveGraph()):
            cost = microseconds(learner, n, batch, rounds)
            print(f"N = {n}, batch {batch}: {type(learner).__name__:16s} {cost:10.2f} us a learner and round")


def regrets() -> None:
    """Mean final regret of NDC-SEM with each learner (standard error), as a table for the documents."""
    print(f"| world | {' | '.join(LEARNERS)} | none |")
    print(f"|{'---|' * (len(LEARNERS) + 2)}")
    for name, (world, delay) in worlds().items():
        cells = []
        for graph in (*(learner(signed="signed" in name) for learner in LEARNERS.values()), NoGraph()):
            run = sp.simulate(sp.NDCSEM(graph=graph), world, delay, replications=REPLICATIONS, seed=SEED, record=5000)
            error = run.final_regret.std(ddof=1) / np.sqrt(REPLICATIONS)
            cells.append(f"{run.final_regret.mean():,.0f} ({error:,.0f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
