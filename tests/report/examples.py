"""Records and figures that the tests of this folder share; the numbers are made up, so that no policy can move them."""

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from spillover import figures
from spillover.experiments import Record

LABELS = {
    "ndc-sem": "NDC-SEM",
    "sem-ucb": "SEM-UCB",
    "cucb": "CUCB",
    "cts": "CTS",
    "ftrl": "FTRL",
    "random": "random",
    "delayed-oracle": "delayed oracle",
    "oracle": "oracle",
}
CHANGES = (1000, 2500, 4000)


def made_up(policy: str, delay: str = "50", *, replications: int = 6, label: str | None = None) -> Record:
    """A record whose regret grows at a pace of its own, the slower the earlier in the list."""
    rank = list(LABELS).index(policy) if policy in LABELS else 4
    rng = np.random.default_rng([rank, len(delay), replications])
    rounds = np.arange(50, 5001, 50)
    pace = 0.0 if policy == "oracle" else (0.3 + 0.25 * rank) * (1 + 0.2 * rng.random((replications, 1)))
    regret = pace * rounds**0.98 * np.ones((replications, 1))
    error = 10.0 ** -(1 + 3 * rounds / 5000) * (0.5 + rng.random((replications, 1)))
    learns = policy in ("ndc-sem", "sem-ucb")
    return Record(
        world="fresh",
        delay=delay,
        policy=policy,
        label=label or LABELS.get(policy, policy),
        rounds=rounds,
        regret=regret,
        payoff=2.0 * rounds * np.ones((replications, 1)),
        optimality_ratio=np.clip(0.95 - 0.08 * rank + 0.05 * rng.standard_normal((replications, 4)), 0, 1),
        graph_error=error if learns else np.full_like(error, np.nan),
        blind_regret=regret[:, 0],
        adjacency=np.full((replications, 4, 4), np.nan),
        changes=CHANGES,
        horizon=5000,
        replications=np.arange(replications),
        seconds=1.0,
    )


def study(policies: Iterable[str] = LABELS, delay: str = "50") -> list[Record]:
    return [made_up(policy, delay) for policy in policies]


def studies(policies: Iterable[str] = LABELS) -> dict[str, list[Record]]:
    kept = list(policies)
    return {f"outcomes {delay} rounds late": study(kept, delay) for delay in ("50", "200", "400")}


def graph(n: int, edges: int, seed: int = 0) -> np.ndarray:
    """An acyclic graph: strictly upper triangular."""
    rng = np.random.default_rng(seed)
    rows, columns = np.triu_indices(n, 1)
    chosen = rng.choice(len(rows), edges, replace=False)
    adjacency = np.zeros((n, n))
    adjacency[rows[chosen], columns[chosen]] = rng.uniform(0.4, 0.7, edges)
    return adjacency


def learned(truth: np.ndarray) -> np.ndarray:
    """The same with one edge missed and one that is not there."""
    found = 0.95 * truth
    found[tuple(np.argwhere(truth > 0)[0])] = 0.0
    rows, columns = np.triu_indices(len(truth), 1)
    empty = np.flatnonzero(truth[rows, columns] == 0)[0]
    found[rows[empty], columns[empty]] = 0.2
    return found


def steps(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Means (5000, n) with three changes, and the four largest of them."""
    levels = np.random.default_rng(n).random((4, n))
    means = levels[np.searchsorted(CHANGES, np.arange(1, 5001), side="right")]
    return means, means >= np.sort(means, axis=1)[:, -4:-3]


def differences() -> list[figures.Difference]:
    return [
        figures.Difference("NDC-SEM − SEM-UCB", -312.0, -400.0, -220.0),
        figures.Difference("without the graph, all else as in NDC-SEM with the settings of the paper", 120.0, -30, 270),
        figures.Difference("one replication only", 50.0, np.nan, np.nan),
    ]


def ratios() -> list[figures.Ratio]:
    """Two policies in three settings; the last interval reaches below 0, where no logarithm is."""
    made = [
        ("a short one", 2.0, 0.2),
        ("a setting with a name that goes over more than a line", 8.0, 3.0),
        ("x", 1.5, 4.0),
    ]
    return [
        figures.Ratio(row, policy, LABELS[policy], mean * pace, mean * pace - half, mean * pace + half)
        for row, mean, half in made
        for policy, pace in (("ndc-sem", 1.0), ("sem-ucb", 1.6))
    ]


def all_figures() -> dict[str, Figure]:
    """Every figure of the package on these numbers."""
    rng = np.random.default_rng(0)
    means, best = steps(10)
    four = np.zeros((4, 4))  # the paper's example, which is not in a topological order
    four[[1, 1, 2, 1, 3], [0, 2, 0, 3, 2]] = (0.5, 0.4, 0.7, 0.45, 0.6)
    by_delay = [r for records in studies(("ndc-sem", "cucb")).values() for r in records]
    by_delay += [made_up("ndc-sem", "uniform-200")]
    days = {"50": 50.0, "200": 200.0, "400": 400.0, "uniform-200": 200.0}
    drawn = {
        "regret": figures.regret_panels(studies())[0],
        "means": figures.means_figure(means, best=best, changes=CHANGES),
        "ratio": figures.ratio_panels(studies(("ndc-sem", "sem-ucb")))[0],
        "error": figures.graph_error_figure([made_up("ndc-sem", d) for d in ("50", "200", "400")], title="NDC-SEM"),
        "example": figures.graph_figure(four),
        "graph": figures.graph_pair(graph(10, 8), learned(graph(10, 8)))[0],
        "grid": figures.grid_figure(
            1000 + 500 * rng.random((4, 6)), [0.9, 0.95, 0.985, 0.999], 10.0 ** np.arange(-10, 2, 2)
        ),
        "delay": figures.delay_figure(by_delay, days, random=["uniform-200"]),
        "forest": figures.forest_figure(differences()),
        "ratios": figures.ratios_figure(ratios()),
    }
    return {name: figures.figure_of(ax) for name, ax in drawn.items()}
