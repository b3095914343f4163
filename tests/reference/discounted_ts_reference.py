"""Several discounts side by side from the whole history, one observation at a time; nothing of the package is in it."""

import math

import numpy as np


class SlowDiscounts:
    """Keeps every round played and every outcome in the order of its arrival; rewards are in [0, 1]."""

    def __init__(self, n, discounts, evidence_discount):
        self.n, self.discounts, self.evidence_discount = n, discounts, evidence_discount
        self.played = []  # x of rounds 1, 2, ...
        self.outcomes = []  # (round of play, x, reward), in the order of arrival

    def play(self, x):
        self.played.append(np.array(x, bool))

    def observe(self, played_at, x, reward):
        self.outcomes.append((played_at, np.array(x, bool), np.array(reward, float)))

    def counts(self, arm, outcomes, at, discount):
        """(successes, observations) of an arm: discounted to its latest round, and from there to `at`."""
        seen = [(played_at, reward[arm]) for played_at, x, reward in outcomes if x[arm]]
        if not seen:
            return 0.0, 0.0
        latest = max(played_at for played_at, _ in seen)
        fade = discount ** abs(at - latest)
        weights = [fade * discount ** (latest - played_at) for played_at, _ in seen]
        return sum(w * z for w, (_, z) in zip(weights, seen, strict=True)), sum(weights)

    def evidence(self):
        """The logarithm of what each discount gave to each outcome as it arrived, discounted by its round of play."""
        latest_arrival = max((played_at for played_at, _, _ in self.outcomes), default=0)
        found = np.zeros(len(self.discounts))
        for k, discount in enumerate(self.discounts):
            for j, (played_at, x, reward) in enumerate(self.outcomes):
                for arm in np.flatnonzero(x):
                    good, seen = self.counts(arm, self.outcomes[:j], played_at, discount)
                    p, z = (good + 1) / (seen + 2), reward[arm]
                    worth = math.log(p if z else 1.0) * z + math.log(1 - p) * (1 - z)
                    found[k] += self.evidence_discount ** (latest_arrival - played_at) * worth
        return found

    def posterior(self, leader):
        """(mean, observations, pulls in flight) of every arm under one of the discounts."""
        discount, now = self.discounts[leader], len(self.played)
        latest_arrival = max((played_at for played_at, _, _ in self.outcomes), default=0)
        arrived = {played_at for played_at, _, _ in self.outcomes}
        mean, count, flying = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)
        for arm in range(self.n):
            good, count[arm] = self.counts(arm, self.outcomes, latest_arrival, discount)
            mean[arm] = (good + 1) / (count[arm] + 2)
            waiting = [t for t, x in enumerate(self.played, 1) if x[arm] and t not in arrived]
            flying[arm] = sum(discount ** (now - t) for t in waiting)
        return mean, count, flying
