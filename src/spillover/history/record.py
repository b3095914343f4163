"""A history: the decisions and outcomes of all rounds, checked, and what they say of ranges, baselines and context."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover.history.columns import TakenColumn
from spillover.kernels import NARROWEST_RANGE
from spillover.types import Array, BoolArray

MOST_ROUNDS = 2_000_000
MOST_ARMS = 100_000
UNIT = (0.0, 1.0)  # the range of z, if none is declared
WIDER = 0.1  # share of the range of rewards that is added to it
TAILS = (0.025, 0.975)  # quantiles between which an outcome varies
DEVIATIONS = 4.0  # standard deviations in the range of an outcome whose quantiles coincide
Range = tuple[float, float]
ROUNDS_FOR_EACH_ARM = 2  # rounds that are looked at, the last ones; at least FEWEST_ROUNDS
FEWEST_ROUNDS = 1_000
SURE = 5.0  # standard errors from which on an intercept is no chance
SINGULAR = 1e-5  # of the scaled design, from which on its columns count as dependent
EXACT = 1e-9  # share of the largest outcome below which an intercept is rounding
CONSTANT = 1e-12  # standard deviation, relative to the size of the values, of a column that does not vary


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Past decisions and their outcomes; rows are rounds in order, columns are arms in natural order.

    A table with own rewards z as `spillover next --example` writes it has complete rounds only: z is 0 for arms that
    were not chosen, and both are 0 in rounds that have not arrived. In other tables y (and z) are NaN where missing.

    >>> from spillover.history import read_history
    >>> table = {"week": [1, 2, 3], "promo_a": [1, 0, 1], "promo_b": [0, 1, 1]}
    >>> table |= {"sales_a": [9, 5, None], "sales_b": [3, 4, None]}
    >>> history = read_history(table)
    >>> history.arms, history.pending
    (('a', 'b'), ('3',))
    """

    arms: tuple[str, ...]
    rounds: tuple[str, ...]  # their labels
    x: BoolArray  # (rounds, arms)
    z: Any  # (rounds, arms); None: the table has no own rewards
    y: Array  # (rounds, arms); z if the table has no y; with observes="payoff" the sum is in the first column
    arrived: BoolArray  # (rounds,): whether outcomes of the round are known
    has_overall: bool = True  # whether the table has y: without it no spill-over can be learned
    following: str | None  # the label of the next round, if the rounds have a regular step
    notes: tuple[str, ...]  # what the owner of the table should know
    observes: str = "both"  # "both": z and y; "overall": y only; "payoff": one outcome for all arms
    dose: Any = None  # (rounds, arms): amounts relative to each arm's reference dose; None: yes or no
    reference_dose: Any = None  # (arms,): the average amount where it is positive, in the units of the table
    context: Any = None  # (rounds, k), as in the table; None: no context
    context_names: tuple[str, ...] = ()
    next_context: Any = None  # (k,): of the round to decide
    minimise: bool = False  # whether y and z are the negated outcomes of the table
    has_baseline: bool = False  # whether outcomes may differ from 0 where nothing is chosen
    outcome_names: tuple[str, ...] = ()  # the table's columns of y
    taken: tuple[TakenColumn, ...] = ()  # what each column of the table was taken for, and why
    columns_option: str = ""  # the options to paste for the same reading

    @property
    def pending(self) -> tuple[str, ...]:
        """Rounds whose outcomes have not arrived."""
        return tuple(self.rounds[k] for k in np.flatnonzero(~self.arrived))

    @cached_property
    def observed(self) -> BoolArray:
        """Which arms have outcomes, (arms,)."""
        known = np.isfinite(self.y) | (self.observes == "payoff")
        return np.asarray(np.any(self.x & known, axis=0, where=self.arrived[:, None]))

    @cached_property
    def extremes(self) -> Range:
        """The smallest and the largest z where arms were chosen, 0 included."""
        known = self.x & self.arrived[:, None] & np.isfinite(self.z)
        return float(self.z.min(where=known, initial=0.0)), float(self.z.max(where=known, initial=0.0))

    @property
    def nothing_chosen(self) -> bool:
        """Whether some rounds have outcomes, but no arm was chosen in any of them."""
        return bool(self.arrived.any() and not self.observed.any())


def natural_order(names: list[str]) -> list[int]:
    """Positions of names in natural order: arm 2 before arm 10.

    >>> natural_order(["arm 10", "arm 2", "Arm 1"])
    [2, 1, 0]
    """
    return sorted(range(len(names)), key=lambda k: natural(names[k]))


def natural(name: str) -> tuple[Any, ...]:
    parts = re.split(r"(\d+)", name.casefold())
    return [by_size(part) if k % 2 else part for k, part in enumerate(parts)], name


def by_size(digits: str) -> tuple[int, str]:
    """Sorts digits as the number that they are, however many there are."""
    plain = digits.lstrip("0")
    return len(plain), plain


def reward_range_of(history: History, declared: Range | None) -> Range:
    """The range of own rewards, from the data: what a policy takes as the scale of effects.

    With own rewards z: from the smallest to the largest reward, 0 included, widened by a tenth. If all of them lie
    between 0 and 1, that range counts as declared.
    Without z: effects are assumed to be no larger than outcomes vary. An outcome varies between its 2.5% and 97.5%
    quantiles (four standard deviations where these coincide, as for rare events); the arm that varies most counts, and
    the range is as wide in both directions: effects may be negative. A policy has one range for all arms.

    A declared range only matters where it is narrower: outside of what the data show it says nothing. So the decision
    does not depend on a range that was declared generously, and scaling all outcomes scales the range.
    """
    declared = default_range(history) if declared is None else declared
    if history.minimise and declared is not None:
        declared = flipped(declared)
    from_data = range_of_rewards(history) if history.observes == "both" else range_of_effects(history)
    if declared is None:
        return from_data
    low, high = max(from_data[0], declared[0]), min(from_data[1], declared[1])
    return (low, high) if high - low >= NARROWEST_RANGE else declared


def default_range(history: History) -> Range | None:
    """The range that counts as declared if none is: 0 to 1 where the rewards of the table allow it."""
    if history.observes != "both":
        return None
    low, high = flipped(history.extremes) if history.minimise else history.extremes
    return UNIT if UNIT[0] <= low and high <= UNIT[1] else None


def flipped(pair: Range) -> Range:
    """The range of negated values."""
    return -pair[1], -pair[0]


def range_of_rewards(history: History) -> Range:
    """The range of z where arms were chosen, and 0."""
    low, high = history.extremes
    if high - low < NARROWEST_RANGE:
        return UNIT
    more = WIDER * (high - low)
    return low - more if low < 0 else 0.0, high + more if high > 0 else 0.0


def range_of_effects(history: History) -> Range:
    """As far in both directions as the outcomes of an arm vary."""
    outcomes = history.y[:, :1] if history.observes == "payoff" else history.y
    widths = [width(column[np.isfinite(column)]) for column in outcomes[history.arrived].T]
    most = max(widths, default=0.0)
    return (-most, most) if most >= NARROWEST_RANGE else (-1.0, 1.0)


def width(values: Array) -> float:
    """How far an outcome varies; its size if it does not vary at all."""
    if not len(values):
        return 0.0
    low, high = np.quantile(values, TAILS)
    return float(high - low) or DEVIATIONS * float(values.std()) or float(np.abs(values).max())


def shows_baseline(x: BoolArray, z: Array, y: Array, arrived: BoolArray) -> bool:
    """Whether outcomes differ from 0 where nothing is chosen, or would by extrapolation.

    Without a baseline y is a linear function of z: the intercept of a regression of y on z is 0 for every arm.
    """
    known = np.flatnonzero(arrived)[-max(FEWEST_ROUNDS, ROUNDS_FOR_EACH_ARM * x.shape[1]) :]
    if bool(y[known[~x[known].any(axis=1)]].any()):
        return True
    z, y, count = z[known], y[known], len(known)
    used = z[:, (z != 0.0).any(axis=0)]
    if count <= used.shape[1] + 1 or not used.shape[1]:
        return False
    design = np.concatenate([np.ones((count, 1)), used], axis=1)
    design /= np.sqrt((design**2).sum(axis=0))
    gram = design.T @ design
    try:
        root = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    if root.diagonal().min() < SINGULAR:  # such as rewards of constant sum: the intercept cannot be told
        return False
    factors = np.linalg.solve(gram, np.eye(len(gram), 1)[:, 0])
    intercepts = np.abs(design @ factors @ y) / np.sqrt(count)
    doubtful = intercepts > EXACT * np.abs(y).max(axis=0)
    if not doubtful.any():
        return False
    outcomes = y[:, doubtful]
    residual = outcomes - design @ np.linalg.solve(gram, design.T @ outcomes)
    variance = (residual**2).sum(axis=0) / max(count - used.shape[1] - 1, 1)
    return bool((intercepts[doubtful] > SURE * np.sqrt(factors[0] / count * variance)).any())


class StandardContext(NamedTuple):
    """Context that a policy learns from, and what to decide with."""

    names: tuple[str, ...]
    values: Array  # (rounds, k)
    following: Array  # (k,): of the round to decide
    dropped: tuple[str, ...]  # columns that do not vary


def standard_context(history: History) -> StandardContext | None:
    """The context of a history, standardised; None if there is none, or none that varies."""
    if history.context is None or not len(history.context):
        return None
    values = np.asarray(history.context, float)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    varies = deviation > CONSTANT * np.maximum(np.abs(values).max(axis=0, initial=0.0), CONSTANT)
    names = np.array(history.context_names, object)
    if not varies.any():
        return None
    following = mean if history.next_context is None else np.asarray(history.next_context, float)
    scaled = (values[:, varies] - mean[varies]) / deviation[varies]
    next_scaled = (following[varies] - mean[varies]) / deviation[varies]
    return StandardContext(tuple(names[varies]), scaled, next_scaled, tuple(names[~varies]))
