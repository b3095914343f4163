"""NDC-SEM in one file: the paper's model, Algorithm 1 and regret, in its notation and order.

    python examples/ndc_sem.py          # about ten seconds; prints regrets, and draws them into ndc_sem.png

The paper is Saeed Ghoorchian and Setareh Maghsudi, "Non-stationary Delayed Combinatorial Semi-Bandit with Causally
Related Rewards", arXiv:2307.09093 (2023); numbers in brackets are those of its equations. You need NumPy and SciPy, and
matplotlib for the figure. The package makes the same decisions, for thousands of worlds at a time, and a test compares
the two (tests/test_one_file.py).

There are N base arms; vectors have the shape (N,), matrices (N, N). A[i, j] is the effect of arm j on arm i. Rounds t
count from 1.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Array: TypeAlias = NDArray[np.float64]

# --- Section II: the model --------------------------------------------------------------------------------------------


@dataclass
class World:
    """Instantaneous rewards b_t with means beta_t that change, and a stationary graph A between overall rewards y_t."""

    A: Array  # strictly upper triangular, as the vertices are indexed properly
    beta: Array  # (periods, N): the means between the change points
    changes: tuple[int, ...]  # the first rounds with new means
    s: int  # the agent selects at most s base arms

    def means(self, t: int) -> Array:
        """beta_t."""
        period = np.searchsorted(self.changes, t, side="right")
        return np.asarray(self.beta[period])

    def play(self, t: int, x: Array, rng: Generator) -> tuple[Array, Array]:
        """Draw the feedback z_t and y_t of a decision vector x; the agent gets it D rounds later."""
        b = (rng.random(len(x)) < self.means(t)).astype(float)  # Bernoulli
        z = b * x  # (1) exogenous input: rewards of arms that were not selected stay hidden
        y = solve_triangular(np.eye(len(x)) - self.A, z)  # (4), which solves y = A y + z (3), with F = I
        return z, y

    def regret(self, t: int, x: Array) -> float:
        """mu_t(x*) - mu_t(x), one term of the expected regret (7)."""
        value = total_effects(self.A) * self.means(t)  # what each arm adds to the expected payoff (6)
        return float(np.sort(value)[-self.s :].sum() - value @ x)


def total_effects(A: Array) -> Array:
    """w with w' = 1' (I - A)^-1: what a unit of each arm's own reward adds to the payoff 1'y (5)."""
    return solve_triangular(np.eye(len(A)) - A, np.ones(len(A)), trans="T")


# --- Section III-A: online graph learning under delayed feedback ------------------------------------------------------


def learn_graph(A: Array, G: Array, C: Array, lam: float, tolerance: float = 1e-12, most: int = 10_000) -> Array:
    """Minimise |Y - A Y - Z|^2 + lam |A|_1 over A[i, j] >= 0, with A[i, j] = 0 for i >= j (9).

    Y and Z hold the feedback received so far, a column for each round: Y = A Y + Z (8). It enters only through
    G = Y Y' and C = (Y - Z) Y'. Each row of A is a problem of its own: a quadratic in the entries A[i, j], j > i, with
    the slope 2 (A G - C)[i, j] + lam. Coordinate descent sets one entry after the other to its best value, for all rows
    at once; the problem is convex, so this leads to the minimum. A: where to start, such as the previous estimate.
    """
    A = A.copy()
    Q = C - A @ G  # minus half the slope, without lam
    for _ in range(most):
        largest = 0.0
        for j in range(1, len(A)):
            if G[j, j] > 0:  # otherwise arm j has not had any reward yet, and nothing is known of its effects
                best = np.maximum(A[:j, j] + (Q[:j, j] - lam / 2) / G[j, j], 0.0)
                step = best - A[:j, j]
                A[:j, j] = best
                Q[:j] -= np.outer(step, G[j])
                largest = max(largest, np.abs(step).max())
        if largest <= tolerance:
            return A
    raise RuntimeError(f"the graph has not converged after {most} sweeps: the last one moved an entry by {largest:g}")


# --- Section III-B: adaptive decision vector selection ----------------------------------------------------------------


def initialization_matrix(N: int, s: int, rng: Generator) -> Array:
    """H: ones on the diagonal; above it all ones in the first s columns, s - 1 random ones in the others."""
    H = np.eye(N)
    for i in range(1, N):
        above = np.arange(i) if i < s else rng.permutation(i)[: s - 1]
        H[above, i] = 1
    return H


class NDCSEM:
    """Algorithm 1. Where the paper is silent: an arm without any feedback goes first, and ties are broken at random."""

    def __init__(self, N: int, s: int, gamma: float, xi: float, lam: float, rng: Generator) -> None:
        self.s, self.gamma, self.xi, self.lam, self.rng = s, gamma, xi, lam, rng
        self.H = initialization_matrix(N, s, rng)
        self.t = 0  # rounds played
        self.m = 0.0  # m_t: the discounted number of rounds
        self.M = np.zeros(N)  # M_t: the discounted number of observations of each arm, as far as they have arrived
        self.S = np.zeros(N)  # the discounted sum of its rewards, the numerator of (10)
        self.seen = np.zeros(N, bool)  # arms with feedback
        self.G, self.C, self.A = np.zeros((3, N, N))  # see learn_graph; A is the estimate

    def indices(self) -> Array:
        """E_t, upper confidence bounds of the means (11), where the paper's M[j] must be M[i]."""
        E = np.full(len(self.M), np.inf)
        M, S = self.M[self.seen], self.S[self.seen]
        E[self.seen] = S / M + 2 * np.sqrt(self.xi * (self.s + 1) * np.log(max(self.m, 1.0)) / M)
        return E

    def decide(self) -> Array:
        """x_{t+1}: a column of H at first, then the decision vector that solves (12)."""
        if self.t < len(self.H):
            return self.H[:, self.t]
        score = total_effects(self.A) * self.indices()  # (12) is linear in x: the s arms with the largest scores
        mixed = self.rng.permutation(len(score))  # so that ties are broken at random
        first = mixed[np.argsort(-score[mixed], kind="stable")][: self.s]
        x = np.zeros(len(score))
        x[first] = 1
        return x * (score > 0)  # "at most s": what cannot help is left out

    def advance(self) -> None:
        """Count the round that was played, and discount the past by it."""
        self.t += 1
        self.m = self.gamma * self.m + 1
        self.M *= self.gamma
        self.S *= self.gamma

    def receive(self, tau: int, x: Array, z: Array, y: Array) -> None:
        """Learn from the feedback of round tau: the means by (10), the graph by (9)."""
        weight = self.gamma ** (self.t - tau)  # by the time of the decision, not of the feedback
        self.M += weight * x
        self.S += weight * z
        self.seen |= x > 0
        self.G += np.outer(y, y)
        self.C += np.outer(y - z, y)
        self.A = learn_graph(self.A, self.G, self.C, self.lam)


class Random:
    """The paper's random policy: s arms, uniformly at random."""

    def __init__(self, N: int, s: int, rng: Generator) -> None:
        self.N, self.s, self.rng = N, s, rng

    def decide(self) -> Array:
        x = np.zeros(self.N)
        x[self.rng.permutation(self.N)[: self.s]] = 1
        return x

    def advance(self) -> None:
        pass

    def receive(self, tau: int, x: Array, z: Array, y: Array) -> None:
        pass


# --- Section V-A: cumulative regret -----------------------------------------------------------------------------------


def synthetic_world(
    rng: Generator, N: int = 10, s: int = 4, edges: int = 8, changes: tuple[int, ...] = (1000, 2500, 4000)
) -> World:
    """A random graph with edge density 0.09 and weights in [0.4, 0.7]; means drawn uniformly, anew at each change."""
    above = np.argwhere(np.triu(np.ones((N, N)), 1))
    rows, columns = rng.permutation(above)[:edges].T
    A = np.zeros((N, N))
    A[rows, columns] = rng.uniform(0.4, 0.7, edges)
    return World(A, rng.random((len(changes) + 1, N)), changes, s)


def cumulative_regret(agent: NDCSEM | Random, world: World, D: int, T: int, rng: Generator) -> Array:
    """Play T rounds; the feedback of round t arrives at the end of round t + D. Returns the regret up to each round."""
    waiting: dict[int, tuple[Array, Array, Array]] = {}
    regret = np.zeros(T)
    for t in range(1, T + 1):
        x = agent.decide()
        waiting[t] = (x, *world.play(t, x, rng))
        regret[t - 1] = world.regret(t, x)
        agent.advance()
        if t > D:
            agent.receive(t - D, *waiting.pop(t - D))
    return regret.cumsum()


def main() -> None:
    N, s, T, D = 10, 4, 5000, 50
    world = synthetic_world(np.random.default_rng(1), N, s)
    # gamma and xi are the paper's for D = 50 (Table I); it does not print its lambda
    agent = NDCSEM(N, s, gamma=0.985, xi=1e-10, lam=1e-3, rng=np.random.default_rng(2))
    curves = {
        "NDC-SEM": cumulative_regret(agent, world, D, T, np.random.default_rng(3)),
        "random": cumulative_regret(Random(N, s, np.random.default_rng(2)), world, D, T, np.random.default_rng(3)),
    }
    for name, curve in curves.items():
        print(f"{name}: regret {curve[-1]:,.0f} after {T:,} rounds with a delay of {D}")
    error = np.square(agent.A - world.A).mean()
    print(f"mean squared error of the learned graph: {error:.1e}")
    draw(curves, world.changes)


def draw(curves: dict[str, Array], changes: tuple[int, ...], path: str = "ndc_sem.png") -> None:
    """Fig. 2, for one delay."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(6.2, 4.0), layout="constrained")
    for (name, curve), line in zip(curves.items(), ("-", ":"), strict=True):
        ax.plot(np.arange(1, len(curve) + 1), curve, line, label=name)
    for change in changes:
        label = "change points" if change == changes[0] else None
        ax.axvline(change, color="grey", linewidth=0.8, linestyle="--", label=label)
    ax.set(xlabel="round t", ylabel="cumulative expected regret")
    ax.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
