"""A history: the checked decisions and outcomes of all rounds; and the problems of a file, reported all at once."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover.history.columns import TakenColumn
from spillover.kernels import NARROWEST_RANGE
from spillover.types import Array, BoolArray

SHOWN = 5  # places of each kind of problem; all are counted


class Problem(NamedTuple):
    """One problem; `row` counts the rows of data from 0, None for a problem of the whole file."""

    row: int | None
    text: str
    line: int | None = None  # where it is known already


class HistoryError(ValueError):
    """A table with problems; `lines` has one line for each cause, with the number of cells and where the first are."""

    def __init__(self, name: str, lines: list[str], count: int, kinds: Sequence[str] = ()) -> None:
        self.summary = f"{name}: {count:,} problem{'s' if count > 1 else ''}; no decision was made"
        super().__init__("\n".join([self.summary, *lines]))
        self.name, self.lines, self.count, self.kinds = name, lines, count, tuple(kinds)

    def renamed(self, old: str, new: str) -> "HistoryError":
        """The same error under another name of the file."""
        lines = [line.replace(old, new) for line in self.lines]
        return HistoryError(self.name.replace(old, new), lines, self.count, self.kinds)


class Problems:
    """Collects problems by kind while a file is read; a kind is one cause, and becomes one line.

    >>> problems = Problems()
    >>> problems.add("number", [4, 9], lambda k: f"z of row {k}: must be a number")
    >>> problems.count, [problem.row for problem in problems.of_kind("number")]
    (2, [4, 9])
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.found: dict[str, list[Problem]] = {}

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def of_kind(self, kind: str) -> list[Problem]:
        return self.found.get(kind, [])

    def add(self, kind: str, items: Any, describe: Callable[[int], str], *, rows: bool = True) -> None:
        """Add problems of one kind; `items` are rows of data (unless rows=False), described only if they are shown."""
        room = max(SHOWN - len(self.of_kind(kind)), 0)
        if len(items):
            self.counts[kind] = self.counts.get(kind, 0) + len(items)
            described = [Problem(int(k) if rows else None, describe(int(k))) for k in items[:room]]
            self.found.setdefault(kind, []).extend(described)

    def add_text(self, kind: str, text: str, line: int | None = None) -> None:
        """Add a problem of the whole file, or of a line that is not a row."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.of_kind(kind)) < SHOWN:
            self.found.setdefault(kind, []).append(Problem(None, text, line))

    def add_hint(self, start: str, pattern: re.Pattern[str], hint: str) -> None:
        """Add a hint to the problems of the kinds with this start whose text contains the pattern."""
        for kind in [kind for kind in self.found if kind.startswith(start)]:
            for k, problem in enumerate(self.of_kind(kind)):
                if pattern.search(problem.text):
                    self.found[kind][k] = problem._replace(text=f"{problem.text}; {hint}")

    def error(self, name: str, places: Callable[[list[int]], Sequence[int | None]], word: str = "") -> HistoryError:
        """The error with all problems; `places` gives the lines of some rows of data."""
        rows = sorted({problem.row for kind in self.found.values() for problem in kind if problem.row is not None})
        where = dict(zip(rows, places(rows), strict=True)) if rows else {}
        lines = []
        for kind, found in self.found.items():
            places_of_kind = [line if row is None else where[row] for row, _, line in found]
            place, count = places_of_kind[0], self.counts[kind]
            text = found[0].text + also(places_of_kind, count, word, [problem.text for problem in found])
            lines.append(f"{name}: {text}" if place is None else f"{name}:{word}{place}: {text}")
        return HistoryError(name, lines, self.count, [kind.partition(" ")[0] for kind in self.found])


def also(places: Sequence[int | None], count: int, word: str, texts: Sequence[str] = ()) -> str:
    """Count the problems of a kind; say where the first are, and what was found there if it differs.

    >>> also([2, 3, 4, 5, 6], 50, "")
    ' (50 like this: lines 2, 3, 4, 5, 6, ...)'
    >>> also([2, 9], 2, "", ["y = 'x': must be a number", "y = '1o': must be a number"])
    " (2 like this: lines 2, 9 with y = '1o')"
    """
    if count == 1:
        return ""
    cells = [text.partition(": must")[0] for text in texts] if count == len(texts) else [""] * len(places)
    found = zip(places, cells, strict=True)
    some = [f"{place}{f' with {cell}' if cell != cells[0] else ''}" for place, cell in found if place is not None]
    more = ", ..." if count > len(some) else ""
    where = f": {word.strip() or 'line'}s {', '.join(some)}{more}" if some else ""
    return f" ({count:,} like this{where})"


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
        known = self.z[self.x & self.arrived[:, None] & np.isfinite(self.z)]
        return float(known.min(initial=0.0)), float(known.max(initial=0.0))

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
    """The spread of an outcome; its size if it does not vary."""
    if not len(values):
        return 0.0
    low, high = np.quantile(values, TAILS)
    return float(high - low) or DEVIATIONS * float(values.std()) or float(np.abs(values).max())


def shows_baseline(x: BoolArray, z: Array, y: Array, arrived: BoolArray) -> bool:
    """Whether outcomes differ from 0 where nothing is chosen, or would by extrapolation.

    Without a baseline y is a linear function of z: the intercept of a regression of y on z is 0 for every arm.
    """
    most = max(FEWEST_ROUNDS, ROUNDS_FOR_EACH_ARM * x.shape[1])
    known: Any = slice(-most, None) if arrived.all() else np.flatnonzero(arrived)[-most:]
    x, z, y = x[known], z[known], y[known]
    count = len(y)
    if bool(y[~x.any(axis=1)].any()):
        return True
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
