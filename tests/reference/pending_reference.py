"""Pulls in flight from the whole history, pull by pull, with nothing of the package in it."""

import math

import numpy as np


class SlowPending:
    """Keeps every round that was played and its outcome, and recomputes everything each time."""

    def __init__(self, n, budget, discount, exploration, top=1.0):
        self.n, self.budget, self.top = n, budget, top
        self.discount, self.exploration = discount, exploration
        self.played = []  # x of rounds 1, 2, ...
        self.outcomes = {}  # round of play -> z

    def play(self, x):
        self.played.append(np.array(x, bool))

    def observe(self, played_at, z):
        self.outcomes[played_at] = np.array(z, float)

    def pulls(self, arm, arrived):
        """(weight, round) of the arm's pulls whose outcomes have arrived, or have not."""
        now = len(self.played)
        rounds = [t for t, x in enumerate(self.played, 1) if x[arm] and (t in self.outcomes) == arrived]
        return [(self.discount ** (now - t), t) for t in rounds]

    def in_flight(self):
        return np.array([sum(weight for weight, _ in self.pulls(i, arrived=False)) for i in range(self.n)])

    def index(self):
        now = len(self.played)
        log_clock = math.log(max(sum(self.discount ** (now - t) for t in range(1, now + 1)), 1.0))
        found = np.full(self.n, np.inf)
        for i in range(self.n):
            arrived, flying = self.pulls(i, arrived=True), self.pulls(i, arrived=False)
            if not arrived and not flying:
                continue
            count = sum(weight for weight, _ in arrived)
            mean = sum(weight * self.outcomes[t][i] for weight, t in arrived) / count if arrived else self.top
            count += sum(weight for weight, _ in flying)
            found[i] = mean + 2 * math.sqrt(self.exploration * (self.budget + 1) * log_clock / count)
        return found
