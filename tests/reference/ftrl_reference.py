"""FTRL the slow and obvious way: the optimisation by nested bisection, and the whole algorithm in a few plain lines."""

import numpy as np


def height(logit, mixture):
    """h = 1 / (2 sqrt(x)) + mixture log(1 - x): minus the regulariser's derivative, up to a constant."""
    log_x, log_rest = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
    return 0.5 * np.exp(-0.5 * log_x) + mixture * log_rest


def bisect(function, low, high):
    """Where increasing functions change sign, element by element."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        below = function(middle) < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def marginals(losses, rate, budget, mixture):
    """The minimiser x of <x, losses> + sum(-sqrt(x) + mixture (1 - x) log(1 - x)) / rate over sum(x) = budget.

    h(x_i) = rate losses_i - multiplier for every arm; the multiplier is the one at which the x_i sum to the budget.
    """
    gaps = rate * (np.asarray(losses, float) - np.sort(losses)[budget - 1])

    def logits(multiplier):
        wanted = gaps - multiplier
        highest = 1.0 + (1.0 + np.abs(wanted)) / mixture
        return bisect(lambda u: wanted - height(u, mixture), np.full(len(gaps), -80.0), highest)

    def excess(multiplier):
        return np.sum(1.0 / (1.0 + np.exp(-logits(multiplier)))) - budget

    multiplier = bisect(excess, -1.0 - np.sqrt(len(gaps)), 60.0)
    return 1.0 / (1.0 + np.exp(-logits(float(multiplier))))


class PlainFTRL:
    """Zimmert, Luo and Wei's algorithm, `runs` games at once, in x itself; losses in [-1, 1], no delay, s <= n / 2."""

    def __init__(self, n, budget, runs, seed):
        self.budget = budget
        self.losses = np.zeros((runs, n))
        self.x = np.full((runs, n), budget / n)
        self.bias = np.zeros((runs, 1))
        self.t = 0
        self.rng = np.random.default_rng(seed)

    def play(self):
        """The next decision of every run, (runs, n)."""
        self.t += 1
        self.solve(1.0 / np.sqrt(self.t))
        return np.array([pivotal_sample(x, self.budget, self.rng) for x in self.x])

    def learn(self, played, loss):
        self.losses += np.where(played, (loss + 1.0) / self.x, 0.0)

    def solve(self, rate):
        """Newton's method for the multiplier, in steps of at most 1."""
        for _ in range(200):
            self.invert(rate * self.losses + self.bias)
            excess = self.x.sum(axis=-1, keepdims=True) - self.budget
            if np.abs(excess).max() < 1e-12:
                return
            slope = (1.0 / (0.25 * self.x**-1.5 + 1.0 / (1.0 - self.x))).sum(axis=-1, keepdims=True)
            self.bias = self.bias + np.clip(excess / slope, -1.0, 1.0)
        raise AssertionError("the reference did not converge")

    def invert(self, loss):
        """Solve loss - 1 / (2 sqrt(x)) - log(1 - x) = 0 by Newton's method that stays inside (0, 1)."""
        for _ in range(200):
            slope = 0.25 * self.x**-1.5 + 1.0 / (1.0 - self.x)
            step = (loss - 0.5 / np.sqrt(self.x) - np.log(1.0 - self.x)) / slope
            moved = np.clip(self.x - step, 0.5 * self.x, 0.5 * (1.0 + self.x))
            done = np.abs(moved - self.x).max() < 1e-13
            self.x = moved
            if done:
                return
        raise AssertionError("the reference did not converge")


def pivotal_sample(marginals, budget, rng):
    """A set with these marginals by Deville and Tillé's pivotal method: two arms at a time fight for their mass."""
    mass = list(marginals)
    order = rng.permutation(len(mass))
    holder = order[0]
    for other in order[1:]:
        a, b = mass[holder], mass[other]
        total = a + b
        if total <= 1.0:
            wins = rng.random() * total < a
            mass[holder], mass[other] = (total, 0.0) if wins else (0.0, total)
            holder = holder if wins else other
        else:
            wins = rng.random() * (2.0 - total) < 1.0 - b
            mass[holder], mass[other] = (1.0, total - 1.0) if wins else (total - 1.0, 1.0)
            holder = other if wins else holder
    chosen = np.zeros(len(mass), bool)
    chosen[np.argsort(mass)[-budget:]] = True
    return chosen
