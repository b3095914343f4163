"""Means that switch, straight from the model: hypotheses that keep all rewards, and Bayes' rule one by one.

Three parts, without any code of the package: a twin of the filter and of the index, and two exact answers for
problems so small that every way in which the world may have gone can be written down.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from scipy import special

HYPOTHESES, SAME_CHANGE, MOST_ALONE, MOST_STRENGTH, MOST_PRECISE = 20, 20, 0.4, 1e9, 20.0
OUTLYING, CROWDING = 4.0, 1.5


@dataclass
class Hypothesis:
    """The last change was at `change_round`; rewards: (arm, reward, the same cut off, whether since, precision)."""

    change_round: int
    mass: list[float]  # for each share of arms
    start: list[tuple[float, float]]  # Beta counts of the arms before it
    alone: list[float]  # prior probability of each arm, were it a change of one arm alone
    fresh: tuple[float, float] = (1.0, 1.0)  # Beta counts of an arm that has just changed
    changes: float = 0.0  # expected number of changes of many arms before
    observed: list[tuple[int, float, float, bool, float]] = field(default_factory=list)

    def counts(self, arm, fresh):
        ones, zeros = self.fresh if fresh else self.start[arm]
        rewards = [(reward, w) for i, reward, _, since, w in self.observed if i == arm and (since or not fresh)]
        return ones + sum(w * reward for reward, w in rewards), zeros + sum(w * (1.0 - reward) for reward, w in rewards)

    def ratio(self, arm):
        """How much better a changed arm explains its rewards since, each predicted from those before it."""
        found, kept, fresh = 1.0, list(self.start[arm]), list(self.fresh)
        for i, reward, cut, since, w in self.observed:
            if i != arm:
                continue
            if since:
                found = min(max(found * (chance(fresh, cut) / chance(kept, cut)) ** w, 1e-30), 1e30)
                fresh = [fresh[0] + w * reward, fresh[1] + w * (1.0 - reward)]
            kept = [kept[0] + w * reward, kept[1] + w * (1.0 - reward)]
        return found

    def changed(self, arm, prior):
        """Probability that the arm changed, for one kind of change or for all of them together."""
        if self.change_round == 0 or sum(self.mass) == 0.0:
            return 0.0
        odds = self.ratio(arm)
        return prior * odds / (prior * odds + 1.0 - prior)


def chance(counts, reward):
    p = counts[0] / sum(counts)
    return p**reward * (1.0 - p) ** (1.0 - reward)


class SlowSwitching:
    """The filter: hypotheses in a list of at most 20; hazards: changes and rounds as if observed in advance."""

    def __init__(self, n, shares, prior, hazards, idle_hazard):
        self.n, self.shares, self.prior, self.hazards, self.idle_hazard = n, shares, prior, hazards, idle_hazard
        nothing = [1.0] + [0.0] * (len(shares) - 1)
        self.hypotheses = [Hypothesis(0, nothing, [(1.0, 1.0)] * n, [0.0] * n)]
        self.seen, self.latest, self.redrawn = [0] * n, 0, (0.0, 1.0)
        self.met: list[tuple[float, float]] = []  # mean expected and reward, of every reward
        self.detected: list[int] = []  # rounds of changes

    def changed(self, hypothesis, arm):
        total = sum(hypothesis.mass)
        kinds = [hypothesis.alone[arm], *self.shares[1:]]
        parts = [m / total * hypothesis.changed(arm, p) for m, p in zip(hypothesis.mass, kinds, strict=True) if m > 0]
        return sum(parts)

    def laws(self, arm):
        """Every Beta law of an arm with its probability, two a hypothesis."""
        for h in self.hypotheses:
            if sum(h.mass) > 0:
                c = self.changed(h, arm)
                yield sum(h.mass) * (1.0 - c), h.counts(arm, False)
                yield sum(h.mass) * c, h.counts(arm, True)

    def mean(self, arm):
        return sum(p * beta_mean(counts) for p, counts in self.laws(arm))

    def square(self, arm):
        return sum(p * (beta_variance(counts) + beta_mean(counts) ** 2) for p, counts in self.laws(arm))

    def summary(self, arm):
        """The Beta law with the mean and the variance of the mixture."""
        mean = self.mean(arm)
        variance = max(self.square(arm) - mean**2, mean * (1.0 - mean) / MOST_STRENGTH)
        strength = max(mean * (1.0 - mean) / variance - 1.0, 2.0)
        return mean * strength, (1.0 - mean) * strength

    def redraw(self, summaries):
        """The part of [0, 1] in which means are after a change: all of it, unless they are near one end on average."""
        known = [beta_mean(summary) for summary, seen in zip(summaries, self.seen, strict=True) if seen > 0]
        if known:
            trust = self.latest / (self.latest + 50.0)
            average = (1.0 - trust) * 0.5 + trust * sum(known) / len(known)
            near_0, near_1 = max(average, 0.01), max(1.0 - average, 0.01)
            self.redrawn = (
                1.0 - 2.0 * (near_1 + 4.0 * near_1**2) if near_1 < 0.25 else 0.0,
                2.0 * (near_0 + 4.0 * near_0**2) if near_0 < 0.25 else 1.0,
            )

    def open(self, x, played_at):
        summaries = [self.summary(i) for i in range(self.n)]
        self.redraw(summaries)
        alone = [1.0 - (1.0 - self.idle_hazard) ** (played_at - self.seen[i]) if x[i] else 0.0 for i in range(self.n)]
        total = sum(sum(h.mass) for h in self.hypotheses)
        changes = sum(sum(h.mass) * h.changes + sum(h.mass[1:]) for h in self.hypotheses) / total
        hazard = (self.hazards[0] + changes) / (self.hazards[1] + self.latest)
        together = 1.0 - (1.0 - hazard) ** (played_at - self.latest)
        apart = min(sum(alone), MOST_ALONE * (1.0 - together))
        if len(self.hypotheses) == HYPOTHESES:
            self.hypotheses.remove(min(self.hypotheses, key=lambda h: sum(h.mass)))
        total = sum(sum(h.mass) for h in self.hypotheses)
        for h in self.hypotheses:
            h.mass = [m / total * (1.0 - together - apart) for m in h.mass]
        mass = [apart, *(together * p for p in self.prior[1:])]
        share = [p / sum(alone) if sum(alone) > 0 else 0.0 for p in alone]
        self.hypotheses.append(
            Hypothesis(played_at, mass, summaries, share, (sum(self.redrawn), 2.0 - sum(self.redrawn)), changes)
        )

    def precision(self):
        """Variance of Bernoulli draws over that of the rewards so far, ten Bernoulli draws of mean 1/2 before them."""
        bernoulli, within = 2.5 + sum(m * (1.0 - m) for m, _ in self.met), sum(z * (1.0 - z) for _, z in self.met)
        return min(bernoulli / max(bernoulli - within, bernoulli / MOST_PRECISE), MOST_PRECISE)

    def within_reach(self, arm, reward):
        """A continuous reward, cut off at four deviations of its prediction."""
        if self.reward_precision == 1.0:
            return reward
        mean = self.mean(arm)
        variance = max(self.square(arm) - mean**2, 0.0)
        most = OUTLYING * math.sqrt(mean * (1.0 - mean) / self.reward_precision + variance)
        return min(max(reward, mean - most), mean + most)

    def observe(self, x, reward, played_at):
        self.reward_precision = self.precision()
        cut = [self.within_reach(i, float(reward[i])) if x[i] else 0.0 for i in range(self.n)]
        self.met += [(self.mean(int(i)), float(reward[i])) for i in np.flatnonzero(x)]
        if played_at > self.latest:
            if self.latest > 0:
                self.open(x, played_at)
            self.latest = played_at
        for arm in np.flatnonzero(x):
            self.weigh(int(arm), float(reward[arm]), cut[arm], played_at)
            self.seen[arm] = max(self.seen[arm], played_at)
        self.detect()

    def detect(self):
        changes = {h.change_round: sum(h.mass) for h in self.hypotheses if h.change_round > 0}
        if not changes:
            return
        likeliest = max(changes, key=lambda r: changes[r])
        if sum(p for r, p in changes.items() if abs(r - likeliest) <= SAME_CHANGE) <= 0.99:
            return
        if not self.detected or likeliest > self.detected[-1] + SAME_CHANGE:
            self.detected.append(likeliest)
        elif likeliest >= self.detected[-1] - SAME_CHANGE:
            self.detected[-1] = likeliest

    def weigh(self, arm, reward, cut, played_at):
        there = [h for h in self.hypotheses if h.change_round <= played_at]
        before = sum(sum(h.mass) for h in there)
        for h in there:
            kept, fresh = (chance(h.counts(arm, side), cut) ** self.reward_precision for side in (False, True))
            for g, prior in enumerate([h.alone[arm], *self.shares[1:]]):
                c = h.changed(arm, prior)
                h.mass[g] *= c * fresh + (1.0 - c) * kept
        after = sum(sum(h.mass) for h in there)
        for h in self.hypotheses:
            if h.change_round > played_at and after > 0:
                h.mass = [m * after / before for m in h.mass]
            h.observed.append((arm, reward, cut, h.change_round <= played_at, self.reward_precision))
        total = sum(sum(h.mass) for h in self.hypotheses)
        for h in self.hypotheses:
            h.mass = [m / total for m in h.mass]

    def index(self, weights, pulled, flight, now, budget, offset, horizon):
        """Expected rewards in [0, 1], and these plus what finding out is worth."""
        changes = sum(sum(h.mass) * h.changes + sum(h.mass[1:]) for h in self.hypotheses)
        hazard = (self.hazards[0] + changes) / (self.hazards[1] + self.latest)
        stays = 1.0 - np.dot(self.shares, self.prior) * (1.0 - (1.0 - hazard) ** (now - self.latest))
        idle = [1.0 - stays * (1.0 - self.idle_hazard) ** (now - p) for p in pulled]
        mean = np.array([(1.0 - d) * self.mean(i) + np.mean(self.redrawn) * d for i, d in enumerate(idle)])
        score, index = weights * (mean + offset), mean.copy()
        threshold = max(sorted(score)[-budget], 0.0)
        next_best = max(sorted(score)[-budget - 1], 0.0) if budget < self.n else 0.0
        for i in range(self.n):
            chosen = score[i] >= threshold and score[i] > 0
            rival = next_best if chosen else threshold
            if weights[i] <= 0 or weights[i] * (1.0 + offset) <= rival:
                continue
            level = max(rival / weights[i] - offset, 0.0)
            if chosen and level == 0.0:
                continue
            worth = idle[i] * uniform_loss(*self.redrawn, level, chosen)
            for h in self.hypotheses:
                p, c = sum(h.mass), self.changed(h, i)
                for part, fresh in ((p * c, True), (p * (1.0 - c), False)):
                    ones, zeros = h.counts(i, fresh)
                    missed = improvement((zeros, ones), 1.0 - level) if chosen else improvement((ones, zeros), level)
                    worth += (1.0 - idle[i]) * part * missed
            index[i] += horizon * worth / (1.0 + flight[i]) ** CROWDING
        return mean, index


def uniform_loss(low, high, level, chosen):
    """E[(level - m)+] if chosen, E[(m - level)+] if not, for a mean that is uniform between low and high."""
    lost = (lambda m: level - m) if chosen else (lambda m: m - level)
    start, stop = (low, min(level, high)) if chosen else (max(level, low), high)
    return max(stop - start, 0.0) * lost((start + stop) / 2.0) / (high - low)


def beta_mean(counts):
    return counts[0] / (counts[0] + counts[1])


def beta_variance(counts):
    ones, zeros = counts
    return ones * zeros / ((ones + zeros) ** 2 * (ones + zeros + 1.0))


def improvement(counts, level):
    """E[(m - level)+] for a normal m with the mean and the deviation of the Beta law."""
    mean, deviation = beta_mean(counts), math.sqrt(beta_variance(counts))
    if mean < level - 6.0 * deviation:
        return 0.0
    above = (mean - level) / deviation
    return (mean - level) * special.ndtr(above) + deviation * math.exp(-0.5 * above**2) / math.sqrt(2.0 * math.pi)


def evidence(rewards):
    """Probability of 0/1 rewards of one arm with an unknown mean that is uniform."""
    ones = sum(rewards)
    return math.exp(special.betaln(1.0 + ones, 1.0 + len(rewards) - ones))


def last_changes(observed, n, hazard, shares, prior):
    """Exact probabilities of "the last change was at r" after 0/1 rewards observed in the order of play.

    observed: {round of play: [(arm, reward), ...]}. Every round each kind of change (share of arms) has its
    probability, and each arm changes with that share. All possible courses are enumerated, so keep the case tiny.
    Returns {first round observed at or after the last change: probability}, 0 for no change since the first one.
    """
    rounds = range(min(observed) + 1, max(observed) + 1)
    subsets = list(itertools.product([False, True], repeat=n))
    steps: list[tuple[tuple[bool, ...] | None, float]] = [(None, 1.0 - hazard)]
    for subset in subsets:
        p = sum(q * math.prod(s if c else 1 - s for c in subset) for q, s in zip(prior, shares, strict=True))
        steps.append((subset, hazard * p))
    steps = [step for step in steps if step[1] > 0]
    found: dict[int, float] = {}
    for way in itertools.product(steps, repeat=len(rounds)):
        happened = dict(zip(rounds, (subset for subset, _ in way), strict=True))
        p = math.prod(q for _, q in way)
        for arm in range(n):
            cuts = [t for t, subset in happened.items() if subset is not None and subset[arm]]
            pieces: dict[int, list[float]] = {}
            for t, rewards in observed.items():
                pieces.setdefault(sum(cut <= t for cut in cuts), []).extend(r for i, r in rewards if i == arm)
            p *= math.prod(evidence(piece) for piece in pieces.values())
        last = max((t for t, subset in happened.items() if subset is not None), default=0)
        r = min(t for t in observed if t >= last) if last else 0
        found[r] = found.get(r, 0.0) + p
    total = sum(found.values())
    return {r: p / total for r, p in sorted(found.items())}


def one_change(before, after, chance_of_change, shares, prior):
    """Exact joint probabilities of one possible change between two spells of 0/1 rewards, arm by arm.

    before, after: lists of rewards for each arm. Returns p(no change), p(change and share), p(arm changed | change).
    """
    n = len(before)
    stayed = math.prod(evidence(b + a) for b, a in zip(before, after, strict=True))
    joint, arms = np.zeros(len(shares)), np.zeros((len(shares), n))
    for g, share in enumerate(shares):
        for subset in itertools.product([False, True], repeat=n):
            p = chance_of_change * prior[g] * math.prod(share if c else 1.0 - share for c in subset)
            for c, b, a in zip(subset, before, after, strict=True):
                p *= evidence(b) * evidence(a) if c else evidence(b + a)
            joint[g] += p
            arms[g] += p * np.array(subset)
    total = (1.0 - chance_of_change) * stayed + joint.sum()
    return (1.0 - chance_of_change) * stayed / total, joint / total, arms.sum(axis=0) / joint.sum()
