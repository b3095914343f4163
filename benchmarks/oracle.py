"""The best set under costs and groups: time for a decision, and how often it is proved to be the best."""

from time import process_time

import numpy as np
from numpy.typing import NDArray

import spillover as sp
from spillover.constraints import Constraint, Costs, Group
from spillover.constraints.search import best_answer

SCORES = ("independent", "correlated", "cost + noise", "cost + constant", "ties")
DRAWS = 50


def draw(
    scores: str, n: int, resources: int, generator: np.random.Generator
) -> tuple[NDArray[np.float64], int, list[Constraint]]:
    """Real-valued costs, half of what a full set costs on average to spend, and groups with at most two arms each."""
    budget, groups = max(2, n // 50), max(2, n // 50)
    costs = generator.uniform(0.1, 1.0, (resources, n))
    cost = costs.mean(axis=0)
    worth = {
        "independent": generator.uniform(0, 1, n),
        "correlated": cost * generator.uniform(0.5, 1.5, n),
        "cost + noise": cost + generator.uniform(-0.1, 0.1, n),
        "cost + constant": cost + 0.1,
        "ties": generator.integers(1, 4, n).astype(float),
    }[scores]
    member = generator.permutation(n) % groups
    limits: list[Constraint] = [Costs(line, limit=float(0.5 * budget * line.mean())) for line in costs]
    limits += [Group(np.flatnonzero(member == g).tolist(), at_most=2) for g in range(groups)]
    return worth, budget, limits


def main() -> None:
    best_answer(*draw("ties", 10, 1, np.random.default_rng(0)))
    print(
        f"{DRAWS} draws each; ms of processor time a decision; "
        "gap: how much better than the set that was found another one could still be, at most"
    )
    print(f"{'N':>5} {'resources':>9} {'scores':>16} {'median':>8} {'worst':>8} {'proved':>7} {'gap':>8}")
    for n in (10, 100, 1000):
        for resources in (1, 2):
            for scores in SCORES:
                times, gaps = [], []
                for k in range(DRAWS):
                    worth, budget, limits = draw(scores, n, resources, np.random.default_rng([n, resources, k]))
                    start = process_time()
                    answer = best_answer(worth, budget, limits, sp.Rng(k))
                    times.append(1e3 * (process_time() - start))
                    gaps.append((answer.bound - answer.value) / answer.value if answer.value else 0.0)
                proved = sum(gap == 0 for gap in gaps)
                shown = f"{np.median(times):8.1f} {max(times):8.1f} {proved:4}/{DRAWS} {max(gaps):8.1e}"
                print(f"{n:5} {resources:9} {scores:>16} {shown}", flush=True)


if __name__ == "__main__":
    main()
