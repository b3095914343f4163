"""Several discounts side by side from the whole history, one observation at a time; nothing of the package is in it."""

import math

import numpy as np


class SlowDiscounts:
    """Keeps every round played and every outcome in the order of its arrival; rewards are in [0, 1]."""

    def __init__(self, n, discounts, evidence_discount):
        self.n, self.discounts, self.evidence_discount = n, discounts, evidence_discount
        self.played = []  # x of rounds 1, 2, ...
        self.told = []  # (round of play, x, reward), in the order of arrival

    def play(self, x):
        self.played.append(np.array(x, bool))

    def tell(self, moment, x, reward):
        self.told.append((moment, np.array(x, bool), np.array(reward, float)))

    def counts(self, arm, told, at, discount):
        """(successes, observations) of an arm: discounted to its latest round, and from there to `at`."""
        seen = [(moment, reward[arm]) for moment, x, reward in told if x[arm]]
        if not seen:
            return 0.0, 0.0
        latest = max(moment for moment, _ in seen)
        fade = discount ** abs(at - latest)
        weights = [fade * discount ** (latest - moment) for moment, _ in seen]
        return sum(w * z for w, (_, z) in zip(weights, seen, strict=True)), sum(weights)

    def evidence(self):
        """The logarithm of what each discount gave to each outcome as it arrived, discounted by its round of play."""
        heard = max((moment for moment, _, _ in self.told), default=0)
        found = np.zeros(len(self.discounts))
        for k, discount in enumerate(self.discounts):
            for j, (moment, x, reward) in enumerate(self.told):
                for arm in np.flatnonzero(x):
                    good, seen = self.counts(arm, self.told[:j], moment, discount)
                    p, z = (good + 1) / (seen + 2), reward[arm]
                    worth = math.log(p if z else 1.0) * z + math.log(1 - p) * (1 - z)
                    found[k] += self.evidence_discount ** (heard - moment) * worth
        return found

    def posterior(self, leader):
        """(mean, observations, pulls in flight) of every arm under one of the discounts."""
        discount, now = self.discounts[leader], len(self.played)
        heard = max((moment for moment, _, _ in self.told), default=0)
        arrived = {moment for moment, _, _ in self.told}
        mean, count, flying = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)
        for arm in range(self.n):
            good, count[arm] = self.counts(arm, self.told, heard, discount)
            mean[arm] = (good + 1) / (count[arm] + 2)
            waiting = [t for t, x in enumerate(self.played, 1) if x[arm] and t not in arrived]
            flying[arm] = sum(discount ** (now - t) for t in waiting)
        return mean, count, flying
