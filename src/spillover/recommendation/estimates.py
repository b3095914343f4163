"""The outcomes of a table with their assessment, and estimates of the effects of its arms for a decision."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spillover.assessment import Assessment, assess
from spillover.assessment.findings import FINE, WARNING, Finding, has_constant_sum
from spillover.formatting import count_of, join_names, short_number
from spillover.history import History
from spillover.history.record import standard_context
from spillover.regression import Effects, estimate_effects
from spillover.types import Array, BoolArray, Explanation

MOST_ARMS = 200  # with more, a regression takes longer than people wait
MOST_OUTCOMES = 60  # the same, where each arm has an outcome of its own
MOST_ROUNDS = 20_000  # the latest ones
FEWEST_ROUNDS = 4
PROBABLE = 0.5
SINGULAR = 1e6  # condition number from which on effects have no graph
MOST_PAIRED = 30  # arms
LIKELY = 0.02  # p-value of a pair, divided by the number of pairs
CERTAIN = 1e-3  # p-value, divided by the number of tests
SMALL = 1e-9  # of the largest effect
DIGITS = 10  # of effects, relative to the largest


def history_effects(history: History) -> Effects | None:
    """Estimate the effects of a table without own rewards; None where there is too little or too much of it."""
    n, arrived = len(history.arms), history.arrived
    most = MOST_ARMS if history.observes == "payoff" else MOST_OUTCOMES
    if history.observes == "both" or n > most or int(arrived.sum()) < FEWEST_ROUNDS or not history.observed.any():
        return None
    latest = slice(max(len(history.x) - MOST_ROUNDS, 0), None)
    y = np.where(arrived[latest, None], history.y[latest, : 1 if history.observes == "payoff" else None], np.nan)
    amounts = amounts_of(history)[latest]
    if has_constant_sum(y) or not sees_any_effect(amounts, y):
        return None
    known = standard_context(history)
    context, coming = (np.zeros((len(y), 0)), np.zeros(0)) if known is None else (known.values[latest], known.following)
    found = estimate_effects(amounts, y, context, coming)
    if is_relative(history):
        found = found.compared_with_average()
    return found if np.isfinite(found.covariance).all() and np.isfinite(found.total).all() else None


def sees_any_effect(amounts: Array, y: Array) -> bool:
    """Whether outcomes are known both with and without some arm: its own ones, where each arm has an outcome."""
    own = range(y.shape[1]) if y.shape[1] > 1 else [0] * amounts.shape[1]
    return any(len(np.unique(amounts[np.isfinite(y[:, i]), j])) > 1 for j, i in enumerate(own))


def amounts_of(history: History) -> Array:
    """What was chosen, (rounds, arms): 1 for the usual amount."""
    return history.x.astype(float) if history.dose is None else np.where(history.x, history.dose, 0.0)


def is_relative(history: History) -> bool:
    """Whether effects are known only relative to each other: one outcome, and the same amount chosen in all rounds.

    With an outcome for each arm, rounds without the arm show its level.
    """
    if history.observes != "payoff":
        return False
    total = amounts_of(history)[history.arrived].sum(axis=1)
    return bool(len(total) and np.ptp(total) <= SMALL * np.abs(total).max())


def with_effects(explanation: Explanation, found: Effects) -> Explanation:
    """The explanation of a learner with other estimates: those of a regression of the whole table."""
    from scipy.special import stdtrit  # imported here, because simulations do not need SciPy

    known = explanation.count > 0
    width = float(stdtrit(found.freedom, 0.975)) * np.array([-1.0, 1.0])
    largest = max(float(np.abs(found.total).max()), np.finfo(float).tiny)
    total = np.round(found.total / largest, DIGITS) * largest  # arms that are alike tie on every machine
    per_arm = len(found.effects) > 1
    direct, adjacency = graph_of(found.effects) if per_arm else (total, np.full((len(total),) * 2, np.nan))
    direct = np.where(np.abs(direct) > SMALL * largest, direct, SMALL * largest)  # a weight is a share of it
    own = np.diagonal(found.effects) if per_arm else total
    own_deviation = np.diagonal(found.deviations) if per_arm else np.sqrt(np.diag(found.covariance))
    intervals = {
        "direct_interval": own[:, None] + own_deviation[:, None] * width,
        "spill_interval": (total - own)[:, None] + found.spill_deviation[:, None] * width,
        "effects": found.effects,
        "effects_interval": found.effects[..., None] + found.deviations[..., None] * width,
        "edge_probability": np.where(np.eye(len(total), dtype=bool), 0.0, found.probability),
    }
    nothing = dict.fromkeys(intervals)
    return replace(
        explanation,
        mean=np.where(known, direct, np.nan),
        index=direct,
        gain=np.ones_like(total),
        weights=total / direct,
        score=total,
        adjacency=adjacency,
        baseline=found.baseline if per_arm else None,
        context_effect=found.moved if explanation.context_effect is not None else None,
        total_interval=total[:, None] + np.sqrt(np.diag(found.covariance))[:, None] * width,
        total_covariance=found.covariance,
        edge_interval=None,
        **(intervals if per_arm else nothing),
    )


def graph_of(effects: Array) -> tuple[Array, Array]:
    """The direct effects and the graph that give effects (n, n); a graph of NaN if there is none."""
    n = len(effects)
    scale = max(float(np.abs(effects).max()), np.finfo(float).tiny)
    if np.linalg.cond(effects / scale) < SINGULAR:
        inverse = np.linalg.inv(effects / scale)
        if (np.abs(np.diag(inverse)) > SMALL).all():
            graph = np.eye(n) - inverse / np.diag(inverse)[:, None]
            if np.abs(np.linalg.eigvals(graph)).max() < 1.0:
                return scale / np.diag(inverse), graph
    return np.diagonal(effects).copy(), np.full((n, n), np.nan)


def effect_findings(history: History, found: Effects | None) -> Iterator[Finding]:
    """What else moves the outcomes, and what was done about it."""
    if found is None:
        return
    if found.probability_of("trend", "level") > PROBABLE:
        sentence = "Outcomes rise or fall over time whatever is chosen: this is estimated along with the effects."
        yield Finding("trend", FINE, sentence)
    if found.later_rounds:
        sentence = (
            f"Choices have effects in later rounds, too: effects are sums over the round itself and the "
            f"{count_of(found.later_rounds, 'round')} after it."
        )
        yield Finding("later-effects", FINE, sentence)
    if found.probability_of("drift", "changes") > PROBABLE:
        sentence = "Effects have changed over time: later rounds count more than earlier ones."
        yield Finding("changes", WARNING, sentence)
    if history.dose is not None and found.power < 1.0 - PROBABLE / 2:
        sentence = "Larger amounts bring less than in proportion: effects grow with the square root of the amount."
        yield Finding("saturation", FINE, sentence)
    for pair in pairs_of(history):
        sentence = (
            f"Chosen together, {join_names(pair.arms)} bring {'less' if pair.beyond < 0 else 'more'} than the sum of "
            f"their effects ({short_number(abs(pair.beyond))}, standard error {short_number(pair.error)}): sets are "
            "chosen as if effects added up."
        )
        yield Finding("pair" if pair.beyond < 0 else "pair-together", WARNING, sentence, pair.arms)
    follow = follows_outcomes(history)
    if follow.any():
        arms = tuple(arm for arm, here in zip(history.arms, follow.tolist(), strict=True) if here)
        sentence = (
            f"Choices that follow earlier outcomes: {join_names(arms)}. If what moved those outcomes also moves the "
            "next ones, effects contain it: give it as context, or leave some choices to chance."
        )
        yield Finding("choices-follow-outcomes", WARNING, sentence, arms)


class Pair(NamedTuple):
    """Two arms that bring more, or less, together than the sum of their effects; beyond: by how much."""

    arms: tuple[str, str]
    beyond: float  # larger is better, also where outcomes are minimised
    error: float


def pairs_of(history: History) -> list[Pair]:
    """Pairs whose product explains what a regression on choices, context and a trend leaves of the sum of outcomes."""
    from scipy.special import stdtr

    n = len(history.arms)
    y = history.y[:, 0] if history.observes == "payoff" else history.y.sum(axis=1)
    rows = np.flatnonzero(history.arrived & np.isfinite(y))[-MOST_ROUNDS:]
    known = standard_context(history)
    context = np.zeros((len(history.x), 0)) if known is None else known.values
    amounts = amounts_of(history)
    controls = np.column_stack([np.ones(len(y)), np.arange(len(y)), context, amounts])[rows]
    freedom = len(rows) - controls.shape[1] - 1
    if n > MOST_PAIRED or freedom < 2 * n:
        return []
    first, second = np.triu_indices(n, 1)
    both = np.column_stack([y[rows], (amounts[:, first] * amounts[:, second])[rows]])
    rest = both - controls @ np.linalg.lstsq(controls, both, rcond=None)[0]
    outcome, products = rest[:, 0], rest[:, 1:]
    squares = (products**2).sum(axis=0)
    usable = squares > SMALL * np.maximum((both[:, 1:] ** 2).sum(axis=0), 1.0)
    slope = np.where(usable, outcome @ products / np.where(usable, squares, 1.0), 0.0)
    error = np.sqrt(np.maximum(outcome @ outcome - slope**2 * squares, 0.0) / freedom / np.where(usable, squares, 1.0))
    t = np.divide(slope, error, out=np.zeros_like(slope), where=error > 0)
    found = np.flatnonzero(usable & (2.0 * stdtr(freedom, -np.abs(t)) * len(t) < LIKELY))
    arms = history.arms
    return [Pair((arms[first[k]], arms[second[k]]), float(slope[k]), float(error[k])) for k in found]


def follows_outcomes(history: History) -> BoolArray:
    """Arms whose choice is predicted by the outcome of the round before.

    Given the choices of that round, the context of both rounds and a trend: what these explain is accounted for.
    """
    from scipy.special import stdtr

    n, x, y = len(history.arms), history.x, history.y
    found = np.zeros(n, np.bool_)
    before = np.flatnonzero(history.arrived[:-1] & history.arrived[1:])
    known = standard_context(history)
    context = np.zeros((len(x), 0)) if known is None else known.values
    controls = np.column_stack([np.ones(len(before)), before, x[before], context[before], context[before + 1]])
    freedom = len(before) - controls.shape[1] - 1
    if n > MOST_ARMS or freedom < n:
        return found
    for j in range(n):
        outcome = y[before, 0 if history.observes == "payoff" else j]
        both = np.column_stack([outcome, x[before + 1, j]])
        if not np.isfinite(both).all() or not np.ptp(both, axis=0).all():
            continue
        rest = both - controls @ np.linalg.lstsq(controls, both, rcond=None)[0]
        size = np.sqrt((rest**2).sum(axis=0))
        if (size <= SMALL * np.abs(both).max(axis=0) * np.sqrt(len(both))).any():
            continue
        r = float(rest[:, 0] @ rest[:, 1] / size.prod())
        t = r * np.sqrt(freedom / max(1.0 - r**2, SMALL))
        found[j] = 2.0 * float(stdtr(freedom, -abs(t))) * n < CERTAIN
    return found


MOST_AVERAGED = 200_000  # the latest ones, in averages: of more rounds, older ones would cost memory and say little


class Facts(NamedTuple):
    """The outcomes in the sign of the table, and the assessment of them.

    >>> from spillover.history import read_history
    >>> table = {"week": range(4), "tv": [1, 0, 1, 0], "radio": [0, 1, 1, 0], "revenue": [9, 5, 10, 4]}
    >>> facts_of(read_history(table)).per_arm  # one outcome for all arms
    False
    """

    y: Array  # (rounds, outcomes); NaN where not known; one column where there is one outcome for all arms
    per_arm: bool  # whether outcome j is that of arm j
    sees_rewards: bool  # whether the table has each arm's own reward z
    sign: float  # -1 where outcomes are minimised: the policy maximises their negatives
    assessment: Assessment
    effects: Effects | None  # by a regression of the table; None: it has own rewards, or is too small


def facts_of(history: History) -> Facts:
    """Assess a history.

    >>> from spillover.history import read_history
    >>> table = {"week": range(4), "promo_a": [1, 0, 1, 0], "promo_b": [0, 1, 1, 0]}
    >>> table |= {"sales_a": [9, 5, 9, 5], "sales_b": [3, 4, 4, 3]}
    >>> facts_of(read_history(table)).per_arm
    True
    """
    per_arm = history.observes != "payoff"
    sign = -1.0 if history.minimise else 1.0
    latest = slice(max(len(history.x) - MOST_AVERAGED, 0), None)
    outcomes = history.y[latest, : None if per_arm else 1]
    y = np.where(history.arrived[latest, None], sign * outcomes + 0.0, np.nan)
    found = assess(
        history.x[latest],
        y,
        dose=None if history.dose is None else history.dose[latest],
        context=None if history.context is None else history.context[latest],
        arms=history.arms,
        outcomes=None if per_arm else ("the outcome",),
        context_names=history.context_names,
        rounds=history.rounds[latest],
    )
    times = history.x.sum(axis=0).tolist()
    averages = tuple(arm._replace(times=count) for arm, count in zip(found.averages, times, strict=True))
    effects = history_effects(history)
    assessment = replace(
        found,
        averages=averages,
        rounds=len(history.x),
        known=int(history.arrived.sum()),
        findings=(*found.findings, *effect_findings(history, effects)),
    )
    return Facts(
        y=y,
        per_arm=per_arm,
        sees_rewards=history.observes == "both",
        sign=sign,
        assessment=assessment,
        effects=effects,
    )
