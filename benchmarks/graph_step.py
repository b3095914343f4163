"""A whole NDC-SEM run against the graph step alone of the same policy, written with scikit-learn's Lasso.

Same feedback, same decisions, one process. Ours: world, rewards, delays, graph, index, choice and regret of 5,000
rounds. Theirs: one Lasso a row on the full history received so far, timed at sampled rounds.
"""

import warnings
from time import perf_counter

import numpy as np
from sklearn.linear_model import Lasso

import spillover as sp
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
            start = perf_counter()
            lasso_graph(z[: t - DELAY], y[: t - DELAY])
            spent.append(perf_counter() - start)
    return float(np.trapezoid(spent, rounds))


def our_seconds(replications: int) -> float:
    start = perf_counter()
    sp.simulate(sp.NDCSEM(graph=sparse(SPARSITY)), sp.SyntheticSEM(), DELAY, replications=replications)
    return perf_counter() - start


def main() -> None:
    our_seconds(1)  # compiled and warm
    z, y = recorded_feedback()
    print("one NDC-SEM run of 5,000 rounds at N = 10, graph solved every round; interleaved, three times")
    for _ in range(3):
        theirs, single, batch = lasso_seconds(z, y), our_seconds(1), our_seconds(100) / 100
        print(
            f"scikit-learn, graph step alone {theirs:7.1f} s | ours, whole run: single {single * 1e3:6.0f} ms "
            f"({theirs / single:5.0f} x faster), in a batch of 100 {batch * 1e3:5.2f} ms a run "
            f"({theirs / batch:6.0f} x faster; {batch / 5000 * 1e6:.2f} us a decision)"
        )


if __name__ == "__main__":
    main()
