"""The other policies from their whole history, slowly, with nothing of the package's computing in them.

A twin observes (round of play, x, z, y) as it arrives, keeps everything, and recomputes from it each time. Only
`play_beside` at the end knows the package: it plays a game with
its public API and gives policy and twin the same feedback.
"""

import math
from typing import NamedTuple

import numpy as np

import spillover as sp
from tests.reference import graph_reference


class PlayedRound(NamedTuple):
    """A played round and its outcome."""

    played_at: int
    x: np.ndarray
    z: np.ndarray
    y: np.ndarray


class History:
    """All outcomes so far, and their rewards on one scale to [0, 1]: y on the range declared, or on the largest so far.

    With weights (the graph is known) z on the range of z.
    """

    def __init__(self, n, budget, overall_range=None, weights=None, reward_range=(0.0, 1.0)):
        self.n, self.budget = n, budget
        self.weights = np.ones(n) if weights is None else np.array(weights, float)
        self.uses_z = weights is not None
        self.range = reward_range if self.uses_z else overall_range
        self.outcomes = []

    def observe(self, played_at, x, z, y):
        self.outcomes.append(PlayedRound(played_at, np.array(x, bool), np.array(z, float), np.array(y, float)))

    def observed(self):
        """(round of play, arm, reward in [0, 1]) in the order of arrival."""
        raw = [
            (k.played_at, i, k.z[i] if self.uses_z else k.y[i]) for k in self.outcomes for i in range(self.n) if k.x[i]
        ]
        if self.range is not None:
            low, high = self.range
        else:
            low, high = 0.0, max((value for _, _, value in raw), default=0.0)
        if high <= low:
            return [(played_at, i, 0.0) for played_at, i, _ in raw]
        return [(played_at, i, min(max((value - low) / (high - low), 0.0), 1.0)) for played_at, i, value in raw]

    def scores(self, index):
        """What arms are ranked by: the index, or weight times the reward that it stands for."""
        if not self.uses_z:
            return index
        low, high = self.range
        return self.weights * (low + (high - low) * index)

    def observe_at(self, now, played_at, x, z, y):
        """An arrival after `now` rounds, which is all the same to who takes feedback by its round of play."""
        self.observe(played_at, x, z, y)


class SlowCUCB(History):
    """min(1, mean + sqrt(3 ln t / (2 T_i))), t the round that is decided."""

    def index(self, t):
        index, observed = np.ones(self.n), self.observed()
        for i in range(self.n):
            rewards = [r for _, arm, r in observed if arm == i]
            if rewards:
                bonus = math.sqrt(3 * math.log(t) / (2 * len(rewards)))
                index[i] = min(1.0, sum(rewards) / len(rewards) + bonus)
        return index


class SlowDiscountedCUCB(History):
    """The same with every observation at discount^(rounds since its play), and every round likewise."""

    def __init__(self, n, budget, discount, **settings):
        super().__init__(n, budget, **settings)
        self.discount = discount

    def index(self, t):
        index, observed = np.ones(self.n), self.observed()
        clock = sum(self.discount**k for k in range(t))
        for i in range(self.n):
            pulls = [(self.discount ** (t - 1 - tau), r) for tau, arm, r in observed if arm == i]
            if pulls:
                count = sum(weight for weight, _ in pulls)
                mean = sum(weight * r for weight, r in pulls) / count
                index[i] = min(1.0, mean + math.sqrt(3 * math.log(clock) / (2 * count)))
        return index


class SlowWindowCUCB(History):
    """The same from what was played in the rounds t - window to t - 1."""

    def __init__(self, n, budget, window, **settings):
        super().__init__(n, budget, **settings)
        self.window = window

    def inside(self, t):
        """Sums of rewards and counts of the window."""
        sums, counts = np.zeros(self.n), np.zeros(self.n)
        for tau, i, r in self.observed():
            if t - self.window <= tau <= t - 1:
                sums[i] += r
                counts[i] += 1
        return sums, counts

    def index(self, t):
        index = np.ones(self.n)
        sums, counts = self.inside(t)
        for i in np.flatnonzero(counts):
            bonus = math.sqrt(3 * math.log(min(t, self.window)) / (2 * counts[i]))
            index[i] = min(1.0, sums[i] / counts[i] + bonus)
        return index


class SlowCTS(History):
    """Beta posteriors; the uniform draw that turns an outcome into 0 or 1 is given with it."""

    def __init__(self, n, budget, **settings):
        super().__init__(n, budget, **settings)
        self.draws = []

    def observe_draw(self, u):
        self.draws.append(u)

    def posterior(self):
        """(a, b) of every arm's Beta(a, b)."""
        a, b = np.ones(self.n), np.ones(self.n)
        rewards = {(tau, i): r for tau, i, r in self.observed()}
        for outcome, u in zip(self.outcomes, self.draws, strict=True):
            for i in np.flatnonzero(outcome.x):
                if u[i] < rewards[outcome.played_at, i]:
                    a[i] += 1
                else:
                    b[i] += 1
        return a, b


# --- a change --------------------------------------------------------------------------------------------------------


def divergence(p, q):
    """kl(p, q) of two Bernoulli laws."""
    total = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            if b <= 0:
                return math.inf
            total += a * math.log(a / b)
    return total


def change_statistic(rewards):
    """max over k of k kl(mean of the first k, mean) + (n - k) kl(mean of the others, mean)."""
    n = len(rewards)
    mean = sum(rewards) / n
    best = 0.0
    for k in range(1, n):
        before, after = sum(rewards[:k]) / k, sum(rewards[k:]) / (n - k)
        best = max(best, k * divergence(before, mean) + (n - k) * divergence(after, mean))
    return best


def change_threshold(n, level):
    return math.log(3 * n**1.5 / level)


class SlowGLRCUCB(History):
    """CUCB on what arrived since the last alarm; an alarm in any arm forgets them all."""

    def __init__(self, n, budget, level, **settings):
        super().__init__(n, budget, **settings)
        self.level = level
        self.restart = 0  # rounds played when it last forgot
        self.forgotten = 0  # observations that do not count any more
        self.alarms = []
        self.closest = math.inf  # how near a statistic ever was to its threshold
        self.longest = 0

    def kept(self):
        return self.observed()[self.forgotten :]

    def scores(self, index):
        """What arms are ranked by: the index, or weight times the reward that it stands for."""
        if not self.uses_z:
            return index
        low, high = self.range
        return self.weights * (low + (high - low) * index)

    def observe_at(self, now, played_at, x, z, y):
        """An arrival after `now` rounds."""
        self.observe(played_at, x, z, y)
        kept = self.kept()
        changed = False
        for i in np.flatnonzero(x):
            rewards = [r for _, arm, r in kept if arm == i]
            gap = change_statistic(rewards) - change_threshold(len(rewards), self.level)
            self.closest = min(self.closest, abs(gap))
            self.longest = max(self.longest, len(rewards))
            changed |= gap > 0
        if changed:
            self.restart, self.forgotten = now, len(self.observed())
            self.alarms.append(now)

    def index(self, t):
        index, kept = np.ones(self.n), self.kept()
        for i in range(self.n):
            rewards = [r for _, arm, r in kept if arm == i]
            if rewards:
                bonus = math.sqrt(3 * math.log(t - self.restart) / (2 * len(rewards)))
                index[i] = min(1.0, sum(rewards) / len(rewards) + bonus)
        return index


# --- a learned graph -------------------------------------------------------------------------------------------------


class SlowSEMUCB:
    """Plain means of z plus sqrt((s + 1) ln t / M_i) after t rounds, and the graph of all that has arrived.

    The bonus is in widths of the range, the sparsity in squares of its largest value.
    `level`: with the restarts of GLR-SEM-UCB, which forget the means and not the graph.
    """

    def __init__(self, n, budget, sparsity, level=None, reward_range=(0.0, 1.0)):
        self.n, self.budget, self.level, self.range = n, budget, level, reward_range
        self.penalty = graph_reference.penalties(n, sparsity * max(abs(value) for value in reward_range) ** 2)
        self.allowed = graph_reference.allowed_edges(n, acyclic=True)
        self.outcomes = []
        self.since = 0  # position in `outcomes` after the last alarm
        self.restart = 0
        self.alarms = []
        self.closest = math.inf

    def rewards(self, i):
        return [k.z[i] for k in self.outcomes[self.since :] if k.x[i]]

    def observe_at(self, now, played_at, x, z, y):
        self.outcomes.append(PlayedRound(played_at, np.array(x, bool), np.array(z, float), np.array(y, float)))
        if self.level is None:
            return
        low, high = self.range
        changed = False
        for i in np.flatnonzero(x):
            scaled = [(value - low) / (high - low) for value in self.rewards(i)]
            gap = change_statistic(scaled) - change_threshold(len(scaled), self.level)
            self.closest = min(self.closest, abs(gap))
            changed |= gap > 0
        if changed:
            self.restart, self.since = now, len(self.outcomes)
            self.alarms.append(now)

    def index(self, t):
        """As it decides round t: t - 1 rounds have been played."""
        index = np.full(self.n, np.inf)
        log_time = math.log(max(t - 1 - self.restart, 1))
        for i in range(self.n):
            rewards = self.rewards(i)
            if rewards:
                bonus = math.sqrt((self.budget + 1) * log_time / len(rewards))
                index[i] = sum(rewards) / len(rewards) + (self.range[1] - self.range[0]) * bonus
        return index

    def stacked_outcomes(self):
        """Z and Y of all outcomes, (rounds, n)."""
        Z, Y = ([getattr(k, name) for k in self.outcomes] for name in ("z", "y"))
        return np.array(Z).reshape(-1, self.n), np.array(Y).reshape(-1, self.n)

    def graph(self):
        """(adjacency, weights), or None while several graphs are as good."""
        Z, Y = self.stacked_outcomes()
        if not graph_reference.unique_minimiser(Y, self.allowed):
            return None
        A = graph_reference.solve_by_enumeration(Z, Y, self.penalty, self.allowed)
        return A, graph_reference.total_effects(A)


# --- decisions -------------------------------------------------------------------------------------------------------


def top_sets_fault(x, score, budget, near=1e-9):
    """What is wrong with a decision, given the scores; scores nearer to each other than `near` may change places."""
    x, score = np.asarray(x, bool), np.asarray(score, float)
    if x.sum() != min(budget, int((score > 0).sum())):
        return f"{x.sum()} arms"
    if (score[x] <= 0).any():
        return "an arm without a positive score"
    if x.any() and (~x).any():
        last, following = score[x].min(), score[~x].max()
        if last < following and not following - last <= near * max(1.0, abs(following)):
            return f"an arm with {last} before one with {following}"
    return ""


def is_clear(score, budget, near=1e-9):
    """Whether only one decision is right."""
    ranked = np.sort(score)[::-1]
    return budget < len(score) and bool(ranked[budget - 1] > ranked[budget] + near)


# --- regret without delay, graph or drift: all runs at once ----------------------------------------------------------


def plain_regret(draw_scores, means, budget, horizon, runs, seed):
    """Final regret of `runs` games with Bernoulli rewards; draw_scores(t, successes, counts, rng) ranks the arms."""
    rng = np.random.default_rng(seed)
    successes, counts = np.zeros((2, runs, len(means)))
    regret = np.zeros(runs)
    best = np.sort(means)[::-1][:budget].sum()
    for t in range(1, horizon + 1):
        scores = draw_scores(t, successes, counts, rng)
        shuffled = rng.permuted(np.tile(np.arange(len(means)), (runs, 1)), axis=1)  # ties at random
        order = np.argsort(-np.take_along_axis(scores, shuffled, axis=1), axis=1, kind="stable")
        chosen = np.take_along_axis(shuffled, order[:, :budget], axis=1)
        x = np.zeros(scores.shape)
        np.put_along_axis(x, chosen, 1.0, axis=1)
        successes += x * (rng.random(x.shape) < means)
        counts += x
        regret += best - x @ means
    return regret


def cucb_scores(t, successes, counts, rng):
    pulls = np.maximum(counts, 1)
    bound = np.minimum(1.0, successes / pulls + np.sqrt(3 * math.log(t) / (2 * pulls)))
    return np.where(counts > 0, bound, 1.0)


def cts_scores(t, successes, counts, rng):
    return rng.beta(1 + successes, 1 + counts - successes)


# --- a game that policy and twin both observe ------------------------------------------------------------------------


class Met(NamedTuple):
    """A round as it is about to be played."""

    t: int
    state: object
    x: np.ndarray


def play_beside(policy, problem, delay, outcome, rounds, observe, seed=0):
    """Play live for some rounds; yields each as decided, gives policy and twin what arrives at its end.

    delay(t): rounds, or None for a lost outcome; outcome(t, x) gives (z, y); observe(now, played_at, x, z, y).
    What arrives in one round comes in the order of play.
    """
    rng = sp.Rng(seed)
    state = policy.init(problem, rng.at(sp.rng.Purpose.START))
    under_way = []
    for t in range(1, rounds + 1):
        x = policy.select(state, rng.at(sp.rng.Purpose.CHOICE, t)).x
        yield Met(t, state, x)
        state = policy.played(state, x)
        late = delay(t)
        if late is not None:
            under_way.append((t + late, t, x, *outcome(t, x)))
        for arrival, played_at, decision, z, y in under_way:
            if arrival == t:
                piece = sp.Feedback(decision, z, y, np.array(t - played_at), np.array(True))
                state = policy.update(state, piece, rng.at(sp.rng.Purpose.LEARNING, played_at))
                observe(t, played_at, decision, z, y)
    yield Met(rounds + 1, state, policy.select(state, rng.at(sp.rng.Purpose.CHOICE, rounds + 1)).x)


def delays(seed):
    """The ways in which feedback can come, as functions of the round."""
    rng = np.random.default_rng(seed)
    scattered, rare = rng.geometric(1 / 6, 5000) - 1, rng.random(5000)
    return {
        "none": lambda t: 0,
        "constant": lambda t: 7,
        "geometric": lambda t: int(scattered[t]),
        "lost": lambda t: None if rare[t] < 0.4 else int(scattered[t]),
    }


WAYS = tuple(delays(0))


def spilling(n, seed, low=0.0, high=1.0, change=None):
    """An outcome function: z skewed, with small means that grow from arm to arm, y spilled over along an acyclic graph.

    Small, because an index that is cut off at 1 would decide nothing. From round `change` on the order is reversed.
    """
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(0.2, 0.8, (n, n)) * (rng.random((n, n)) < 0.4), 1)
    spread = np.linalg.inv(np.eye(n) - A)
    means = np.linspace(0.02, 0.3, n)

    def outcome(t, x):
        now = means[::-1] if change is not None and t >= change else means
        share = np.where(rng.random(n) < 0.02, 1.0, now * rng.uniform(0.5, 1.5, n))
        z = np.where(x, low + (high - low) * share, 0.0)
        return z, spread @ z

    return outcome
