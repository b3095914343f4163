"""Pulls in flight from the whole history, pull by pull, with nothing of the package in it."""

import math

import numpy as np


class SlowPending:
    """Keeps every round that was played and what came of it, and counts anew each time."""

    def __init__(self, n, budget, discount, exploration, top=1.0):
        self.n, self.budget, self.top = n, budget, top
        self.discount, self.exploration = discount, exploration
        self.played = []  # x of rounds 1, 2, ...
        self.told = {}  # round of play -> z

    def play(self, x):
        self.played.append(np.array(x, bool))

    def tell(self, moment, z):
        self.told[moment] = np.array(z, float)

    def pulls(self, arm, heard):
        """(weight, round) of the arm's pulls whose outcomes have come, or have not."""
        now = len(self.played)
        rounds = [t for t, x in enumerate(self.played, 1) if x[arm] and (t in self.told) == heard]
        return [(self.discount ** (now - t), t) for t in rounds]

    def in_flight(self):
        return np.array([sum(weight for weight, _ in self.pulls(i, heard=False)) for i in range(self.n)])

    def index(self):
        now = len(self.played)
        log_clock = math.log(max(sum(self.discount ** (now - t) for t in range(1, now + 1)), 1.0))
        found = np.full(self.n, np.inf)
        for i in range(self.n):
            heard, flying = self.pulls(i, heard=True), self.pulls(i, heard=False)
            if not heard and not flying:
                continue
            count = sum(weight for weight, _ in heard)
            mean = sum(weight * self.told[t][i] for weight, t in heard) / count if heard else self.top
            count += sum(weight for weight, _ in flying)
            found[i] = mean + 2 * math.sqrt(self.exploration * (self.budget + 1) * log_clock / count)
        return found
