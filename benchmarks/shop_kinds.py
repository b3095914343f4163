"""Simulated shops with a known truth: promotions and advertisements whose outcomes are noisy, late, or drift."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spillover.types import Array, BoolArray

Rng = np.random.Generator


@dataclass
class Shop:
    """A table of past rounds, and what nobody in the shop knows."""

    x: BoolArray  # (rounds, n)
    y: Array  # (rounds, 1 or n)
    truth: Array  # (n,): total effects of choosing each arm now, on the sum of the outcomes
    budget: int
    amounts: Array | None = None  # (rounds, n), where they vary
    level: float = 0.0  # of every arm alike: what no table with a constant number of arms can tell from a baseline
    pairs: Array | None = None  # (n, n): what pairs of arms bring beyond their sum
    following: Callable[[BoolArray], Array] | None = None  # plays one more round

    @property
    def relative(self) -> bool:
        """Whether the same number of arms was chosen in all rounds, with one outcome for all."""
        return self.y.shape[1] == 1 and self.amounts is None and bool((self.x.sum(axis=1) == self.x[0].sum()).all())

    def brings(self, chosen: Array) -> float:
        """What a set of arms, given by their positions, brings."""
        beyond = 0.0 if self.pairs is None else float(self.pairs[np.ix_(chosen, chosen)].sum())
        base = self.truth if self.pairs is None else self.truth - self.usual_pairs
        return float(base[chosen].sum()) + beyond

    @property
    def usual_pairs(self) -> Array:
        """What pairs add to the effect of each arm on average, other arms being chosen as they were."""
        assert self.pairs is not None
        return np.asarray((self.pairs + self.pairs.T) @ self.x.mean(axis=0))

    def share(self, chosen: Array) -> float:
        """What a set brings as a share of what the best set brings."""
        n, sizes = len(self.truth), range(self.budget + 1)
        if self.pairs is None:
            first = np.sort(self.truth)[::-1][: self.budget]
            best = float(first.sum() if self.relative else first[first > 0].sum())
        else:
            best = max(self.brings(np.array(some, int)) for size in sizes for some in combinations(range(n), size))
        return self.brings(np.asarray(chosen, int)) / best


def drawn_effects(rng: Rng, n: int, edges: int) -> Array:
    """effects[i, j]: of arm j on outcome i, by a sparse graph with halo and cannibalisation."""
    graph = np.zeros((n, n))
    for _ in range(edges):
        i, j = rng.choice(n, 2, replace=False)
        graph[i, j] = rng.uniform(0.1, 0.6) * rng.choice([-1, 1], p=[0.4, 0.6])
    while np.abs(np.linalg.eigvals(graph)).max() > 0.8:
        graph *= 0.8
    return np.asarray(np.linalg.inv(np.eye(n) - graph) * rng.uniform(0.2, 1.0, n))


def promotions(
    rng: Rng,
    *,
    rounds: int = 104,
    n: int = 8,
    budget: int = 3,
    noise: float = 0.5,
    per_arm: bool = True,
    subset: bool = False,
    tails: float = np.inf,
    carried: float = 0.0,
    trend: float = 0.0,
    season: float = 0.0,
    shared: float = 0.5,
    follows_demand: bool = False,
    switch: int = 0,
) -> Shop:
    """Promotions with effects on other products.

    subset: whether always as many arms as the budget allows were promoted. tails: degrees of freedom of the noise.
    carried: its autocorrelation. shared: its correlation between products, as a deviation. follows_demand: whether
    choices follow last week's noise. switch: all effects are drawn anew every so many rounds.
    """
    effects, base = drawn_effects(rng, n, n), rng.uniform(2, 6, n)
    x = rng.random((rounds, n)) < budget / n
    if subset:
        x = rng.permuted(np.arange(n) < budget + np.zeros((rounds, 1)), axis=1)
    error, played = np.zeros(n), 0

    def draw(size: int) -> Array:
        fat: Array = rng.standard_t(tails, size) if np.isfinite(tails) else rng.normal(size=size)
        return np.asarray(noise * fat / (np.sqrt(tails / (tails - 2)) if 2 < tails < np.inf else 1.0))

    def play(chosen: BoolArray) -> Array:
        nonlocal error, played, effects
        if switch and played and played % switch == 0:
            effects = drawn_effects(rng, n, n)
        fresh = np.sqrt(1 - shared**2) * draw(n) + shared * draw(1)
        error = carried * error + np.sqrt(1 - carried**2) * fresh
        level = base * (1.0 + trend * played + season * np.sin(2 * np.pi * played / 52))
        played += 1
        y = level + effects @ chosen + error
        return np.asarray(y if per_arm else y.sum(keepdims=True))

    y = np.zeros((rounds, n if per_arm else 1))
    for t in range(rounds):
        if follows_demand and t and rng.random() < 0.7:
            wanted = np.argsort(-(error + 0.3 * noise * rng.normal(size=n)))[:budget]
            x[t] = np.isin(np.arange(n), wanted)
        y[t] = play(x[t])
    shop = Shop(x, y, effects.sum(axis=0), budget)

    def following(chosen: BoolArray) -> Array:
        outcome = play(chosen)
        shop.truth = effects.sum(axis=0)
        return outcome

    shop.following = following
    return shop


def growing(rng: Rng, *, rounds: int = 104, n: int = 6) -> Shop:
    """A growing shop that promotes some products more and more, others less and less."""
    effects = drawn_effects(rng, n, 4).sum(axis=0)
    chance = np.clip(1 / 3 + np.outer(np.linspace(-1, 1, rounds), rng.uniform(-0.35, 0.35, n)), 0.05, 0.95)
    x = rng.random((rounds, n)) < chance
    y = 10 + rng.uniform(0.02, 0.06) * np.arange(rounds) + x @ effects + rng.normal(0, 0.5, rounds)
    return Shop(x, y[:, None], effects, 2)


def later(rng: Rng, *, rounds: int, dips: bool, n: int = 6) -> Shop:
    """Orders that come up to four days after the advertisement, or promotions that borrow from the next two weeks."""
    size, x = rng.uniform(0.2, 1.5, n), rng.random((rounds, n)) < 1 / 3
    borrowed = rng.uniform(0, 0.9, n)
    when = np.stack([np.ones(n), -0.6 * borrowed, -0.4 * borrowed]).T
    if not dips:
        when = np.stack([rng.dirichlet(rng.uniform(0.5, 3, 5)) for _ in range(n)])
    weights = when * size[:, None]
    y = 10 + rng.normal(0, 0.5, rounds)
    for lag in range(weights.shape[1]):
        y[lag:] += x[: rounds - lag] @ weights[:, lag]
    return Shop(x, y[:, None], weights.sum(axis=1), 2)


def dips_of_each(rng: Rng, *, rounds: int = 104, n: int = 8) -> Shop:
    """Promotions that borrow from the next two weeks, with an outcome for each product."""
    effects, borrowed, base = drawn_effects(rng, n, n), rng.uniform(0, 0.9, n), rng.uniform(2, 6, n)
    x, own = rng.random((rounds, n)) < 3 / n, np.diagonal(effects)
    y = base + x @ effects.T + rng.normal(0, 0.5, (rounds, n))
    y[1:] -= 0.6 * x[:-1] * borrowed * own
    y[2:] -= 0.4 * x[:-2] * borrowed * own
    return Shop(x, y, effects.sum(axis=0) - borrowed * own, 3)


def spend(rng: Rng, *, rounds: int = 156, n: int = 6) -> Shop:
    """Advertising budgets with carry-over and saturation; the truth is what the usual amount adds in one more week."""
    size, half, carry = rng.uniform(0.5, 2, n), rng.uniform(0.3, 1.5, n), rng.uniform(0, 0.6, n)
    scale, x = rng.lognormal(0, 0.5, n), rng.random((rounds, n)) < 0.5
    amounts = x * rng.gamma(3, 1 / 3, (rounds, n)) * scale
    stock = np.zeros((rounds, n))
    for t in range(rounds):
        stock[t] = amounts[t] + (carry * stock[t - 1] if t else 0.0)

    def response(present: Array) -> Array:
        return size * present / (half * scale + present)

    y = 8 + response(stock).sum(axis=1) + rng.normal(0, 0.4, rounds)
    usual = np.array([amounts[x[:, j], j].mean() for j in range(n)])
    truth, lags = np.zeros(n), 12
    for lag in range(lags):
        added = response(stock[lag:] + usual * carry**lag) - response(stock[lag:])
        truth += np.where(x[: rounds - lag], 0.0, added).sum(axis=0) / (~x[: rounds - lag]).sum(axis=0)
    return Shop(x, y[:, None], truth, 2, amounts=amounts)


def one_of_several(rng: Rng, *, rounds: int = 200, n: int = 8) -> Shop:
    """One arm in each round."""
    effects = rng.uniform(0, 1, n)
    x = np.eye(n, dtype=bool)[rng.integers(0, n, rounds)]
    y = 3 + x @ effects + rng.normal(0, 0.5, rounds)
    return Shop(x, y[:, None], effects - effects.mean(), 1)


def in_pairs(rng: Rng, *, rounds: int = 156, n: int = 6) -> Shop:
    """Arms of which some pairs bring more, or less, than their sum."""
    effects = rng.uniform(0.3, 1, n)
    pairs = np.triu(rng.normal(0, 0.5, (n, n)) * (rng.random((n, n)) < 0.25), 1)
    x = rng.random((rounds, n)) < 1 / 3
    y = 8 + x @ effects + np.einsum("ti,ij,tj->t", x, pairs, x) + rng.normal(0, 0.4, rounds)
    shop = Shop(x, y[:, None], effects, 2, pairs=pairs)
    shop.truth = effects + shop.usual_pairs
    return shop


KINDS: dict[str, Callable[[Rng], Shop]] = {
    "promotions, 104 weeks": promotions,
    "promotions, 52 weeks": lambda rng: promotions(rng, rounds=52),
    "promotions, 416 weeks": lambda rng: promotions(rng, rounds=416),
    "promotions, little noise": lambda rng: promotions(rng, noise=0.05),
    "promotions, much noise": lambda rng: promotions(rng, rounds=52, noise=1.5),
    "always three of eight": lambda rng: promotions(rng, subset=True),
    "one outcome, 104 weeks": lambda rng: promotions(rng, per_arm=False),
    "one outcome, 52 weeks": lambda rng: promotions(rng, rounds=52, per_arm=False),
    "one of eight": one_of_several,
    "fat tails": lambda rng: promotions(rng, tails=1.5),
    "autocorrelated noise": lambda rng: promotions(rng, carried=0.8, per_arm=False),
    "a season": lambda rng: promotions(rng, season=0.2),
    "a growing shop": growing,
    "growth of each product": lambda rng: promotions(rng, trend=0.01),
    "orders 0-4 days later": lambda rng: later(rng, rounds=200, dips=False),
    "dips after promotions": lambda rng: later(rng, rounds=104, dips=True),
    "dips of each product": dips_of_each,
    "spend": spend,
    "pairs of arms": in_pairs,
    "choices follow demand": lambda rng: promotions(rng, follows_demand=True, carried=0.7),
    "effects switched": lambda rng: promotions(rng, rounds=130, switch=52),
}
FOLLOWED: dict[str, Callable[[Rng], Shop]] = {
    "noise 0.1": lambda rng: promotions(rng, rounds=52, noise=0.05),
    "noise 1": lambda rng: promotions(rng, rounds=52),
    "noise 3": lambda rng: promotions(rng, rounds=52, noise=1.5),
    "noise 1, 416 weeks": lambda rng: promotions(rng, rounds=416),
    "noise 1, one outcome": lambda rng: promotions(rng, rounds=52, per_arm=False),
    "noise 3, one outcome": lambda rng: promotions(rng, rounds=52, noise=1.5, per_arm=False),
    "effects switch": lambda rng: promotions(rng, rounds=52, switch=52),
    "effects switch, one outcome": lambda rng: promotions(rng, rounds=52, switch=52, per_arm=False),
}
