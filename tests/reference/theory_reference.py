"""The theory once more, slowly: decisions enumerated, sums written out, the bound in 60 decimal digits."""

from decimal import ROUND_CEILING, Decimal, getcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np

getcontext().prec = 60


def gaps(scores, budget):
    """(smallest, largest) shortfall over all decisions that fall short of the best; None if there is none."""
    exact = [Fraction(float(score)) for score in scores]
    arms = range(len(exact))
    payoffs = [sum(exact[i] for i in chosen) for size in range(budget + 1) for chosen in combinations(arms, size)]
    short = [max(payoffs) - payoff for payoff in payoffs if payoff < max(payoffs)]
    return (min(short), max(short)) if short else None


def longest_path(adjacency):
    """Edges on the longest path of an acyclic graph, by walking all of them."""

    def walk(arm):
        return max((1 + walk(effect) for effect in np.flatnonzero(adjacency[:, arm])), default=0)

    return max(walk(arm) for arm in range(len(adjacency)))


def up(value):
    return value.to_integral_value(rounding=ROUND_CEILING)


def bound(constants, discount, exploration, delay):
    """Theorem 1 as it is printed, a dictionary of its terms; the tail for a given power and for p = 1."""
    n, s, horizon, changes, path = (Decimal(int(v)) for v in constants[:5])
    weight, least, most = (Decimal(v) for v in constants[5:])
    gamma, xi = Decimal(repr(discount)), Decimal(repr(exploration))
    one = Decimal(1)
    rounds_of_n = sum((gamma**k for k in range(int(n))), Decimal(0))
    rounds_of_horizon = (1 - gamma**horizon) / (1 - gamma)
    forgetting = ((1 - gamma) * xi * (s + 1) * rounds_of_n.ln()).ln() / gamma.ln()
    level = up(16 * xi * s**2 * weight**2 * (s + 1) * rounds_of_horizon.ln() / least**2)
    windows = up(horizon * (1 - gamma))
    eta = 4 * (1 - 1 / (2 * xi * (s + 1))).sqrt()
    pieces = up((1 / (1 - gamma)).ln() / (1 + eta).ln())

    def tail(p):
        fade = (1 - gamma ** (1 / (1 - gamma))) ** p
        inner = 1 / (1 - gamma) + pieces**p * horizon * (1 - gamma) ** p / fade
        return 2 * s**p * up(1 / (1 - gamma)) ** (2 * s) * inner

    terms = {
        "change_term": forgetting * changes,
        "exploration_term": windows * level * gamma ** (-1 / (1 - gamma)),
        "delay_term": windows * delay,
    }
    head = 1 + sum(terms.values())
    return {
        **terms,
        "tail_printed": tail(path),
        "tail_corrected": tail(one),
        "tail_lean": tail(one) / up(1 / (1 - gamma)) ** (2 * s),
        "printed": (head + tail(path)) * n * most,
        "corrected": (head + tail(one)) * n * most,
    }


def counts(decisions, discount, delays):
    """What round t knows of round tau: its decision, if tau + delay <= t - 1, discounted as gamma^(t - 1 - tau)."""
    horizon, n = np.shape(decisions)
    known = np.zeros((horizon, n))
    for t, i, tau in product(range(1, horizon + 1), range(n), range(1, horizon + 1)):
        if tau + delays[tau - 1] <= t - 1:
            known[t - 1, i] += discount ** (t - 1 - tau) * decisions[tau - 1][i]
    return known


def counts_of_corollary(decisions, discount, delays):
    """The paper's other reading of a random delay: round t knows all rounds up to t - 1 - D_(t-1)."""
    horizon, n = np.shape(decisions)
    known = np.zeros((horizon, n))
    for t in range(2, horizon + 1):
        for tau in range(1, t - 1 - delays[t - 2] + 1):
            known[t - 1] += discount ** (t - 1 - tau) * np.asarray(decisions[tau - 1], float)
    return known


def lemma_left(decisions, suboptimal, known, level):
    """Rounds after the first n that are charged to each arm while it is known less than `level`."""
    horizon, n = np.shape(decisions)
    left = [0] * n
    for t in range(n, horizon):
        chosen = [i for i in range(n) if decisions[t][i]]
        if suboptimal[t] and chosen:
            arm = min(chosen, key=lambda i: known[t][i])
            left[arm] += bool(known[t][arm] < level)
    return left


def worst_left(horizon, discount, level, delay, first_played):
    """The largest left side of Lemma 1 over all plays of one arm that is charged whenever it is played, and such plays.

    All 2^horizon sequences; the first round is initialisation, in which the arm is played or not.
    """
    plays = np.array(list(product([0, 1], repeat=horizon)))
    plays = plays[plays[:, 0] == first_played]
    known = np.zeros(plays.shape)
    for t in range(1, horizon + 1):
        for tau in range(1, t - delay):
            known[:, t - 1] += discount ** (t - 1 - tau) * plays[:, tau - 1]
    left = ((plays > 0) & (known < level))[:, 1:].sum(axis=1)
    return int(left.max()), plays[left.argmax()]
