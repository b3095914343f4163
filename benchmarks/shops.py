"""How good answers are in simulated shops, next to what an analyst would do in ten minutes.

`python -m benchmarks shops [--shops 100] [--seed S] [--kind WORDS] [--follow | --parts]`

For each kind of shop: what the recommended set brings as a share of what the best set brings, by the default answer of
`next`, by the same policy's graph (greedy), by least squares on the choices, by least squares with a trend and three
lags, and by a discounted linear Thompson sampler; the share of 95% intervals that contain the total effect; how often
the answer was clear; and how often a clear answer lost more than a quarter. With --follow: what 52 more rounds bring,
in which each rule's set is chosen and its outcome added to the table. With --parts: what the answer brings, and which
share of its intervals contains the truth, without one part of the regression, and by a regression of the sum alone.
"""

import argparse
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.shop_kinds import FOLLOWED, KINDS, Shop
from spillover.types import Array

LAGS = 3
KEPT = 0.97  # weight of a round relative to the next one, for the discounted sampler
FOLLOWING = 52  # rounds
WRONG = 0.75  # share of the best below which a clear answer is wrong


class Answer(NamedTuple):
    """What was found in one shop."""

    shares: dict[str, float]  # by rule
    covered: float  # share of the intervals that contain the truth; NaN: effects are relative
    clear: bool


def amounts_of(shop: Shop) -> Array:
    """What was chosen, 1 for the usual amount."""
    if shop.amounts is None:
        return shop.x.astype(float)
    usual = np.array([shop.amounts[shop.x[:, j], j].mean() for j in range(shop.x.shape[1])])
    return np.asarray(shop.amounts / usual)


def least_squares(shop: Shop) -> Array:
    """The effects by one line of least squares."""
    amounts = amounts_of(shop)
    return solved(np.column_stack([amounts, np.ones(len(amounts))]), shop.y.sum(axis=1))[: amounts.shape[1]]


def with_lags_and_trend(shop: Shop) -> Array:
    """The sums of the coefficients of the choices of a round and of those before it."""
    amounts = amounts_of(shop)
    rounds, n = amounts.shape
    columns = [np.vstack([np.zeros((lag, n)), amounts[: rounds - lag]]) for lag in range(LAGS + 1)]
    design = np.column_stack([*columns, np.arange(rounds), np.ones(rounds)])
    found = solved(design[LAGS:], shop.y.sum(axis=1)[LAGS:])
    return np.asarray(found[: n * (LAGS + 1)].reshape(LAGS + 1, n).sum(axis=0))


def solved(design: Array, outcome: Array) -> Array:
    return np.asarray(np.linalg.lstsq(design, outcome, rcond=None)[0])


def discounted_sampler(shop: Shop, rng: np.random.Generator) -> Array:
    """A draw of the effects from a Bayesian regression that forgets."""
    amounts, outcome = amounts_of(shop), shop.y.sum(axis=1)
    design = np.column_stack([amounts, np.ones(len(amounts))])
    weight = KEPT ** np.arange(len(outcome))[::-1]
    around = outcome - np.average(outcome, weights=weight)
    noise = max(float(np.var(outcome - design @ solved(design, outcome))), 1e-12)
    prior = np.diag([1.0] * amounts.shape[1] + [1e-4]) / max(float(np.var(outcome)), 1e-12)
    precision = (design * weight[:, None]).T @ design / noise + prior
    mean = np.linalg.solve(precision, (design * weight[:, None]).T @ around / noise)
    return np.asarray(rng.multivariate_normal(mean, np.linalg.inv(precision))[: amounts.shape[1]])


def chosen_by(effects: Array, shop: Shop) -> Array:
    """The positions of the arms to choose; none that is expected to do harm, where that can be known."""
    first = np.argsort(-effects)[: shop.budget]
    return np.asarray(first if shop.relative else first[effects[first] > 0])


def table_of(shop: Shop) -> dict[str, object]:
    """The shop as a table that `next` reads."""
    names = arm_names(shop)
    found: dict[str, object] = {"round": np.arange(1, len(shop.x) + 1)}
    if shop.amounts is not None:
        return found | {f"spend_{name}": shop.amounts[:, j] for j, name in enumerate(names)} | {"sales": shop.y[:, 0]}
    found |= {f"x:{name}": shop.x[:, j].astype(int) for j, name in enumerate(names)}
    if shop.y.shape[1] == 1:
        return found | {"payoff": shop.y[:, 0]}
    return found | {f"y:{name}": shop.y[:, j] for j, name in enumerate(names)}


def arm_names(shop: Shop) -> list[str]:
    return [f"arm {j + 1}" for j in range(shop.x.shape[1])]


def answer(kind: str, seed: int, which: int) -> Answer:
    """Ask all rules in one shop."""
    import spillover as sp

    rng = np.random.default_rng([seed, sorted(KINDS).index(kind), which])
    shop = KINDS[kind](rng)
    names = arm_names(shop)
    asked: dict[str, Any] = {"budget": shop.budget, "doses": shop.amounts is not None}
    found = sp.next_decision(table_of(shop), **asked)
    graph = "payoff-regression" if shop.y.shape[1] == 1 else "instrumental-sem"
    greedy = sp.next_decision(table_of(shop), policy=graph, **asked)
    shares = {
        "default": shop.share(positions(found.choose, names)),
        "greedy": shop.share(positions(greedy.choose, names)),
        "least squares": shop.share(chosen_by(least_squares(shop), shop)),
        "with lags": shop.share(chosen_by(with_lags_and_trend(shop), shop)),
        "sampler": shop.share(chosen_by(discounted_sampler(shop, rng), shop)),
    }
    known = [(shop.truth[names.index(arm.arm)], arm.total_interval) for arm in found.arms]
    inside = [between[0] <= truth <= between[1] for truth, between in known if between is not None]
    return Answer(shares, float(np.mean(inside)), not found.not_yet)


def in_parts(kind: str, seed: int, which: int) -> dict[str, tuple[float, float]]:
    """The share of the best, and that of intervals that contain the truth, without one part at a time."""
    from scipy.special import stdtrit

    import spillover as sp
    from spillover.regression import PARTS, estimate_effects

    shop = KINDS[kind](np.random.default_rng([seed, sorted(KINDS).index(kind), which]))
    amounts, nothing = amounts_of(shop), np.zeros((len(shop.y), 0))
    found = {}
    ways: list[tuple[str, Array, tuple[str, ...]]] = [("everything", shop.y, ())]
    ways += [(f"no {part}", shop.y, (part,)) for part in PARTS]
    ways += [("the sum alone", shop.y.sum(axis=1, keepdims=True), ())]
    for name, y, without in ways:
        effects = estimate_effects(amounts, y, nothing, np.zeros(0), without=without)
        if shop.relative:
            effects = effects.compared_with_average()
        width = stdtrit(effects.freedom, 0.975) * np.sqrt(np.diag(effects.covariance))
        inside = float((np.abs(effects.total - shop.truth) <= width).mean())
        found[name] = shop.share(chosen_by(effects.total, shop)), inside
    graph = "payoff-regression" if shop.y.shape[1] == 1 else "instrumental-sem"
    greedy = sp.next_decision(table_of(shop), policy=graph, budget=shop.budget, doses=shop.amounts is not None)
    names = arm_names(shop)
    known = [(shop.truth[names.index(arm.arm)], arm.total_interval or (np.nan, np.nan)) for arm in greedy.arms]
    inside = float(np.mean([low <= truth <= high for truth, (low, high) in known]))
    return found | {"greedy": (shop.share(positions(greedy.choose, names)), inside)}


def positions(chosen: Sequence[str], names: Sequence[str]) -> Array:
    return np.array([names.index(arm) for arm in chosen], int)


def followed(kind: str, seed: int, which: int) -> dict[str, float]:
    """What following each rule brings, as a share of what the best sets bring."""
    found = {}
    for name, rule in RULES.items():
        rng = np.random.default_rng([seed, sorted(FOLLOWED).index(kind), which])
        draws = np.random.default_rng([seed, 1, which])
        shop = FOLLOWED[kind](rng)
        brought = possible = 0.0
        for _ in range(FOLLOWING):
            chosen = rule(shop, draws)
            x = np.isin(np.arange(shop.x.shape[1]), chosen)
            assert shop.following is not None
            outcome = shop.following(x)
            brought += shop.brings(chosen)
            best = np.sort(shop.truth)[::-1][: shop.budget]
            possible += float(best[best > 0].sum())
            shop.x, shop.y = np.vstack([shop.x, x]), np.vstack([shop.y, outcome])
        found[name] = brought / possible
    return found


def by_regression(shop: Shop, *, explore: bool) -> Array:
    """The positions of the arms that `next` chooses; explore: with the trial that it suggests, if any."""
    from spillover.recommendation.clarity import best_trial
    from spillover.regression import estimate_effects

    found, n = estimate_effects(amounts_of(shop), shop.y, np.zeros((len(shop.y), 0)), np.zeros(0)), shop.x.shape[1]
    best = np.isin(np.arange(n), chosen_by(found.total, shop))
    trial = best_trial(found.total, best, shop.budget, found, lambda x: True) if explore else None
    if trial is not None:
        into, out, _ = trial
        best[[into, out] if out >= 0 else into] = [True, False] if out >= 0 else True
    return np.asarray(np.flatnonzero(best))


RULES: dict[str, Callable[[Shop, np.random.Generator], Array]] = {
    "default": lambda shop, draws: by_regression(shop, explore=False),
    "with trials": lambda shop, draws: by_regression(shop, explore=True),
    "least squares": lambda shop, draws: chosen_by(least_squares(shop), shop),
    "with lags": lambda shop, draws: chosen_by(with_lags_and_trend(shop), shop),
    "sampler": lambda shop, draws: chosen_by(discounted_sampler(shop, draws), shop),
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks shops")
    parser.add_argument("--shops", type=int, default=100)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--kind", default="", help="only kinds whose names contain these words")
    parser.add_argument("--follow", action="store_true", help="follow each rule for 52 rounds")
    parser.add_argument("--parts", action="store_true", help="leave out one part of the regression at a time")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] = ()) -> None:
    given = parse(arguments)
    print(f"{given.shops} shops of each kind, seed {given.seed}\n")
    with ProcessPoolExecutor(given.jobs) as pool:
        kinds = [kind for kind in (FOLLOWED if given.follow else KINDS) if given.kind in kind]
        for place, kind in enumerate(kinds):
            rule = followed if given.follow else in_parts if given.parts else answer
            ask: Callable[[int], Any] = partial(rule, kind, given.seed)
            found = list(pool.map(ask, range(given.shops), chunksize=4))
            print_kind(kind, found, first=place == 0)


def print_kind(kind: str, found: Sequence[Answer] | Sequence[dict[str, Any]], *, first: bool) -> None:
    """One line of the table, below the titles if it is the first."""
    shares = [one.shares if isinstance(one, Answer) else one for one in found]
    means = {name: np.atleast_1d(np.mean([one[name] for one in shares], axis=0)) for name in shares[0]}
    cells = {name: ", ".join(f"{value:.3f}" for value in values) for name, values in means.items()}
    answers = [one for one in found if isinstance(one, Answer)]
    if answers:
        cells["covered"] = f"{np.mean([one.covered for one in answers]):.3f}"
        cells["clear"] = f"{np.mean([one.clear for one in answers]):.2f}"
        clear = [one for one in answers if one.clear]
        cells["clear but wrong"] = f"{sum(one.shares['default'] < WRONG for one in clear)} of {len(clear)}"
    if first:
        print(f"| kind of shop | {' | '.join(cells)} |")
        print(f"|---|{'---|' * len(cells)}")
    print(f"| {kind} | {' | '.join(cells.values())} |", flush=True)
