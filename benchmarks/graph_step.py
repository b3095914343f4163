"""A whole NDC-SEM run against the graph step alone of the same policy, written with scikit-learn's Lasso.

Same feedback, same decisions. Ours: world, rewards, delays, graph, index, choice and regret of 5,000 rounds; a batch is
divided among all cores, so its ratio by the clock depends on their number, and that of the processor times does not.
Theirs: one Lasso a row on the full history received so far, timed at sampled rounds, in one thread.
"""

import os
import warnings
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits

import spillover as sp
from spillover import delays
from spillover.graph import SparseGraph
from spillover.policies import AblatedNDCSEM
from spillover.rng import Purpose
from spillover.simulation.replications import cores
from tests.support import sparse

SPARSITY = 1e-3
DELAY = 50
SAMPLED = 25
SINGLE, BATCH, LASSO = 5, 5, 2  # times that each is measured in a turn; the shortest counts, as machines are noisy
TURNS = 3


class Seconds(NamedTuple):
    """By the clock, and of processor time."""

    elapsed: float
    processor: float

    def times_faster(self, theirs: "Seconds") -> str:
        return f"{theirs.elapsed / self.elapsed:6.0f} ({theirs.processor / self.processor:6.0f})"


def timed(work: Any, times: int = 1) -> Seconds:
    """The shortest of some runs, by either measure."""
    spent = []
    for _ in range(times):
        start = perf_counter(), process_time()
        work()
        spent.append((perf_counter() - start[0], process_time() - start[1]))
    return Seconds(*np.min(spent, axis=0))


def recorded_feedback(environment: Any = None, delay: Any = 50) -> tuple[np.ndarray, np.ndarray]:
    """z and y of one run of NDC-SEM, (rounds, n) each."""
    rng = sp.Rng(0, np.arange(1))
    world = (environment or sp.SyntheticSEM()).draw(rng.at(Purpose.WORLD), (1,))
    policy = sp.NDCSEM(graph=sparse(SPARSITY))
    outcomes = [played.outcome for played in sp.rounds(policy, world, delay, rng, (1,))]
    return np.stack([o.z[0] for o in outcomes]), np.stack([o.y[0] for o in outcomes])


def lasso_graph(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The graph step by scikit-learn: row i regresses y_i - z_i on the arms after it."""
    n = y.shape[1]
    adjacency = np.zeros((n, n))
    model = Lasso(alpha=SPARSITY / (2 * len(y)), positive=True, fit_intercept=False, tol=1e-8)
    for i in range(n - 1):
        adjacency[i, i + 1 :] = model.fit(y[:, i + 1 :], y[:, i] - z[:, i]).coef_
    return adjacency


def lasso_seconds(z: np.ndarray, y: np.ndarray) -> Seconds:
    """The graph step of all rounds, from the ones that were timed."""
    rounds = np.linspace(DELAY + 20, len(y), SAMPLED).astype(int)
    spent = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # while the data is poor it does not converge, and says so each time
        lasso_graph(z[:100], y[:100])
        for t in rounds:
            spent.append(timed(lambda t=t: lasso_graph(z[: t - DELAY], y[: t - DELAY]), LASSO))
    return Seconds(*np.trapezoid(spent, rounds, axis=0))


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


def our_seconds(replications: int, times: int, policy: Any = NDCSEM, world: Any = WORLD, delay: Any = DELAY) -> Seconds:
    """Seconds of one run in a batch."""
    spent = timed(lambda: sp.simulate(policy, world, delay, replications=replications), times)
    return Seconds(spent.elapsed / replications, spent.processor / replications)


def main() -> None:
    with threadpool_limits(1):
        compare()


def compare() -> None:
    our_seconds(1, 1)  # compiled and warm
    z, y = recorded_feedback()
    print("one NDC-SEM run of 5,000 rounds at N = 10, graph solved every round; interleaved, three times")
    load = f"load {os.getloadavg()[0]:.1f}: by the clock only a quiet machine tells"
    print(f"times faster by the clock on {cores()} cores ({load}), in brackets by processor time")
    measured = []
    for _ in range(3):
        theirs = lasso_seconds(z, y)
        single, batch = our_seconds(1, SINGLE), our_seconds(100, BATCH)
        measured.append(theirs)
        print(
            f"scikit-learn, graph step alone {theirs.processor:5.1f} s | ours, whole run: single "
            f"{single.processor * 1e3:5.1f} ms, {single.times_faster(theirs)}; in a batch of 100 "
            f"{batch.processor * 1e3:4.2f} ms a run, {batch.times_faster(theirs)}, "
            f"{batch.processor / 5000 * 1e6:.2f} us of processor time a decision"
        )
    usual = Seconds(*np.median(measured, axis=0))
    print("other worlds, delays and options: against scikit-learn with the same feedback, and with that from above")
    for name, (policy, world, delay) in OTHERS.items():
        our_seconds(1, 1, policy, world, delay)
        feedback, turns = recorded_feedback(world, delay), []
        for _ in range(TURNS):  # a machine may be slower for seconds, so the three take turns
            ours = (our_seconds(*many, policy, world, delay) for many in ((1, SINGLE), (100, BATCH)))
            turns.append((*ours, lasso_seconds(*feedback)))
        single, batch, own = (Seconds(*least) for least in np.min(turns, axis=0))
        print(
            f"{name:21} single {single.times_faster(own)}, in a batch {batch.times_faster(own)}; against the above "
            f"{single.times_faster(usual)}, {batch.times_faster(usual)} | {own.processor:5.1f} s, "
            f"{single.processor * 1e3:5.1f} ms, {batch.processor * 1e3:5.2f} ms a run"
        )


if __name__ == "__main__":
    main()
