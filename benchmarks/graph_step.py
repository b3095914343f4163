"""A whole NDC-SEM run against the graph step alone of the same policy, written with scikit-learn's Lasso.

Same feedback, same decisions, one process and one thread; seconds of processor time. Ours: world, rewards, delays,
graph, index, choice and regret of 5,000 rounds. Theirs: one Lasso a row on the full history received so far, timed at
sampled rounds.
"""

import warnings
from time import process_time
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits

import spillover as sp
from spillover import delays
from spillover.graph import SparseGraph
from spillover.policies import AblatedNDCSEM
from spillover.rng import Purpose
from tests.support import sparse

SPARSITY = 1e-3
DELAY = 50
SAMPLED = 25


def recorded_feedback() -> tuple[np.ndarray, np.ndarray]:
    """z and y of one run of NDC-SEM, (rounds, n) each."""
    rng = sp.Rng(0, np.arange(1))
    world = sp.SyntheticSEM().draw(rng.at(Purpose.WORLD), (1,))
    policy = sp.NDCSEM(graph=sparse(SPARSITY))
    outcomes = [played.outcome for played in sp.rounds(policy, world, DELAY, rng, (1,))]
    return np.stack([o.z[0] for o in outcomes]), np.stack([o.y[0] for o in outcomes])


def lasso_graph(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The graph step by scikit-learn: row i regresses y_i - z_i on the arms after it."""
    n = y.shape[1]
    adjacency = np.zeros((n, n))
    model = Lasso(alpha=SPARSITY / (2 * len(y)), positive=True, fit_intercept=False, tol=1e-8)
    for i in range(n - 1):
        adjacency[i, i + 1 :] = model.fit(y[:, i + 1 :], y[:, i] - z[:, i]).coef_
    return adjacency


def lasso_seconds(z: np.ndarray, y: np.ndarray) -> float:
    """Seconds of the graph step for all rounds, from the ones that were timed."""
    rounds = np.linspace(DELAY + 20, len(y), SAMPLED).astype(int)
    spent = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # while the data is poor it does not converge, and says so each time
        lasso_graph(z[:100], y[:100])
        for t in rounds:
            start = process_time()
            lasso_graph(z[: t - DELAY], y[: t - DELAY])
            spent.append(process_time() - start)
    return float(np.trapezoid(spent, rounds))


NDCSEM, WORLD = sp.NDCSEM(graph=sparse(SPARSITY)), sp.SyntheticSEM()
OTHERS: dict[str, tuple[Any, Any, Any]] = {
    "beta rewards": (NDCSEM, sp.SyntheticSEM(law="beta"), DELAY),
    "heavy-tailed rewards": (NDCSEM, sp.SyntheticSEM(law="pareto"), DELAY),
    "smooth changes": (NDCSEM, sp.SyntheticSEM(smooth=True), DELAY),
    "noise": (NDCSEM, sp.SyntheticSEM(noise=0.1), DELAY),
    "context and baseline": (NDCSEM, sp.SyntheticSEM(context=2, baseline=True), DELAY),
    "geometric delays": (NDCSEM, WORLD, delays.GeometricDelay(50.0)),
    "heavy-tailed delays": (NDCSEM, WORLD, delays.ParetoDelay(10.0)),
    "lost outcomes": (NDCSEM, WORLD, delays.LossyDelay(delays.UniformDelay(0, 100), 0.1)),
    "bad news come late": (NDCSEM, WORLD, delays.BadNewsDelay(10, 90)),
    "pending=True": (sp.NDCSEM(pending=True, exploration=1e-3), WORLD, DELAY),
    "signed edges": (sp.NDCSEM(graph=SparseGraph(signed=True)), WORLD, DELAY),
    "no graph": (sp.NDCSEM(graph="none"), WORLD, DELAY),
    "SEM-UCB": (sp.SEMUCB(), WORLD, DELAY),
    "ablated": (AblatedNDCSEM(delay_aware=False), WORLD, DELAY),
}


def our_seconds(replications: int, policy: Any = NDCSEM, world: Any = WORLD, delay: Any = DELAY) -> float:
    start = process_time()
    sp.simulate(policy, world, delay, replications=replications)
    return process_time() - start


def main() -> None:
    with threadpool_limits(1):
        compare()


def compare() -> None:
    our_seconds(1)  # compiled and warm
    z, y = recorded_feedback()
    print("one NDC-SEM run of 5,000 rounds at N = 10, graph solved every round; interleaved, three times")
    measured = []
    for _ in range(3):
        theirs = lasso_seconds(z, y)
        single, batch = min(our_seconds(1) for _ in range(3)), min(our_seconds(100) for _ in range(2)) / 100
        measured.append(theirs)
        print(
            f"scikit-learn, graph step alone {theirs:7.1f} s | ours, whole run: single {single * 1e3:6.1f} ms "
            f"({theirs / single:5.0f} x faster), in a batch of 100 {batch * 1e3:5.2f} ms a run "
            f"({theirs / batch:6.0f} x faster; {batch / 5000 * 1e6:.2f} us a decision)"
        )
    theirs = float(np.median(measured))
    print("other worlds, delays and options, against the median of these")
    for name, case in OTHERS.items():
        our_seconds(1, *case)
        single, batch = min(our_seconds(1, *case) for _ in range(2)), our_seconds(100, *case) / 100
        print(f"{name:22} single {theirs / single:6.0f} x faster, in a batch of 100 {theirs / batch:6.0f} x faster")


if __name__ == "__main__":
    main()
