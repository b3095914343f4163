"""The arrays of a table, averages and seasons of its outcomes, and their reduced form.

The reduced form is least squares of each outcome on (1, context, choices), with robust standard errors. It needs no
graph and no model of the policy, so it is an independent reference for what a policy says: choices were made before the
outcomes, and E[outcome | choices, context] is what a decision changes. The same design tells which arms cannot be told
apart, and whether the context moves their effects.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.formatting import plain_values
from spillover.tabular import in_columns, shared_names
from spillover.types import Array, BoolArray, IntArray

MOST_ROUNDS = 50_000  # the latest ones are enough for a regression, and cost no time
MOST_ARMS = 400  # with more, only counts and averages: the regression would take longer than the decision


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """Rounds in order along the first axis."""

    arms: tuple[str, ...]
    x: BoolArray  # (rounds, arms)
    amounts: Array  # (rounds, arms): x times the dose
    y: Array  # (rounds, outcomes); NaN where it is not known
    own: bool  # whether outcome j is that of arm j; otherwise outcomes are not those of arms
    outcomes: tuple[str, ...]
    context: Array  # (rounds, k)
    context_names: tuple[str, ...]
    rounds: tuple[str, ...]  # labels

    @cached_property
    def known(self) -> BoolArray:
        """Rounds with at least one outcome."""
        return np.asarray(np.isfinite(self.y).any(axis=1))

    @cached_property
    def complete(self) -> BoolArray:
        """Rounds with all outcomes and all of the context."""
        return np.asarray(np.isfinite(self.y).all(axis=1) & np.isfinite(self.context).all(axis=1))

    def names(self, mask: BoolArray) -> tuple[str, ...]:
        return tuple(name for name, here in zip(self.arms, mask.tolist(), strict=True) if here)

    def latest(self, most: int = MOST_ROUNDS) -> "Data":
        """The same with only the latest rounds that have outcomes."""
        rows = np.flatnonzero(self.known)[-most:]
        if len(rows) == len(self.x):
            return self
        parts = {name: getattr(self, name)[rows] for name in ("x", "amounts", "y", "context")}
        return replace(self, rounds=tuple(self.rounds[row] for row in rows), **parts)


def checked_data(
    x: Any,
    y: Any,
    *,
    dose: Any = None,
    context: Any = None,
    arms: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    context_names: Sequence[str] | None = None,
    rounds: Sequence[str] | None = None,
) -> Data:
    """The arrays as `Data`; see `assess` for the arguments."""
    arms = shared_names(x) if arms is None else arms
    context_names = shared_names(context) if context_names is None else context_names
    x, dose = in_columns("x", x, arms), in_columns("dose", dose, arms)
    y, context = (
        in_columns("y", y, arms if outcomes is None else outcomes),
        in_columns("context", context, context_names),
    )
    chosen = np.asarray(x, np.bool_)
    validate.require(chosen.ndim == 2, "shape of x", chosen.shape, "(rounds, arms)")
    count, n = chosen.shape
    values = np.asarray(y, float)
    m = n if outcomes is None else len(outcomes)
    validate.require(values.shape == (count, m), "shape of y", values.shape, f"({count}, {m}): (rounds, outcomes)")
    amounts = chosen.astype(float)
    if dose is not None:
        given = np.asarray(dose, float)
        validate.require(given.shape == chosen.shape, "shape of dose", given.shape, f"{chosen.shape}, as x")
        amounts = np.where(chosen, given, 0.0)
    added = np.zeros((count, 0)) if context is None else np.asarray(context, float)
    validate.require(
        added.ndim == 2 and len(added) == count, "shape of context", added.shape, f"({count}, k): (rounds, columns)"
    )
    return Data(
        arms=labels("arms", arms, n, "arm"),
        x=chosen,
        amounts=amounts,
        y=values,
        own=outcomes is None,
        outcomes=labels("arms", arms, n, "arm") if outcomes is None else tuple(outcomes),
        context=added,
        context_names=labels("context_names", context_names, added.shape[1], "context"),
        rounds=labels("rounds", rounds, count, ""),
    )


def labels(name: str, given: Sequence[str] | None, count: int, noun: str) -> tuple[str, ...]:
    """The names given, or numbers."""
    if given is None:
        return tuple(f"{noun} {k + 1}".strip() for k in range(count))
    validate.require(len(given) == count, f"length of {name}", len(given), str(count))
    return tuple(given)


class Comparison(NamedTuple):
    """The average outcome of the rounds with an arm and of those without it.

    >>> Comparison(chosen=3.0, others=1.0, difference=2.0, error=0.1).difference
    2.0
    """

    chosen: float
    others: float  # in the rounds without it
    difference: float
    error: float  # standard error of the difference, of two samples with variances of their own

    def to_dict(self) -> dict[str, Any]:
        names = ("when_chosen", "when_not", "difference", "standard_error")
        return dict(zip(names, plain_values(tuple(self)), strict=True))


class ArmAverages(NamedTuple):
    """Averages of one arm.

    >>> from spillover.assessment import assess
    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 5, [[3, 2], [1, 4], [3, 5], [1, 1]] * 5, arms=["web", "shop"])
    >>> found.averages[0].times, found.averages[0].own.difference
    (10, 2.0)
    """

    times: int  # how often it was chosen
    times_known: int  # and in how many of these rounds there is an outcome
    own: Comparison  # its own outcome; NaN where outcomes are not those of arms
    rest: Comparison  # the sum of all other outcomes; NaN likewise
    total: Comparison  # the sum of all outcomes


UNKNOWN = Comparison(np.nan, np.nan, np.nan, np.nan)


def arm_averages(data: Data) -> tuple[ArmAverages, ...]:
    """The averages of each arm."""
    total = data.y.sum(axis=1)  # NaN where an outcome of the round is not known
    found = []
    for j in range(len(data.arms)):
        with_arm = data.x[:, j]
        own = data.y[:, j] if data.own else None
        found.append(
            ArmAverages(
                times=int(with_arm.sum()),
                times_known=int((with_arm & (data.known if own is None else np.isfinite(own))).sum()),
                own=UNKNOWN if own is None else compare(own, with_arm),
                rest=UNKNOWN if own is None else compare(total - own, with_arm),
                total=compare(total, with_arm),
            )
        )
    return tuple(found)


def compare(values: Array, with_arm: Any) -> Comparison:
    """The averages of the known values with and without an arm."""
    known = np.isfinite(values)
    inside, outside = values[known & with_arm], values[known & ~with_arm]
    means = [float(part.mean()) if len(part) else np.nan for part in (inside, outside)]
    variances = [float(part.var(ddof=1)) / len(part) if len(part) > 1 else np.nan for part in (inside, outside)]
    return Comparison(means[0], means[1], means[0] - means[1], float(np.sqrt(sum(variances))))


QUARTER = re.compile(r"(\d{4})-?Q([1-4])")
MONTH = re.compile(r"(\d{4})-(\d{2})")
FEWEST_CYCLES = 2  # a season that was seen once is a trend
SEASON_FREEDOM = 5  # degrees of freedom that are left to judge a season by


class Season(NamedTuple):
    """A season: each round is in a phase (March) of a cycle (2025)."""

    name: str
    phase: IntArray  # (rounds,), from 0
    cycle: IntArray  # (rounds,), from 0


def parse_label(label: str) -> datetime | None:
    """The time of a round's label, if it is one.

    >>> parse_label("2026-Q2"), parse_label("2026-03"), parse_label("17")
    (datetime.datetime(2026, 4, 1, 0, 0), datetime.datetime(2026, 3, 1, 0, 0), None)
    """
    if quarter := QUARTER.fullmatch(label):
        return datetime(int(quarter[1]), 3 * int(quarter[2]) - 2, 1)
    if MONTH.fullmatch(label):
        label = f"{label}-01"
    try:
        return datetime.fromisoformat(label) if "-" in label else None
    except ValueError:
        return None


def seasons(labels: Sequence[str]) -> tuple[Season, ...]:
    """The seasons that the rounds may have: those with more than one phase, each seen in several cycles."""
    if not labels or parse_label(labels[0]) is None:
        return ()
    times = [parse_label(label) for label in labels]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return ()
    weeks = [time.isocalendar() for time in known]
    candidates = (
        ("month of the year", [time.month for time in known], [time.year for time in known]),
        ("weekday", [week.weekday for week in weeks], [100 * week.year + week.week for week in weeks]),
        ("hour of the day", [time.hour for time in known], [date.toordinal(time) for time in known]),
    )
    found = []
    for name, phases, cycles in candidates:
        phase, cycle = (np.unique(part, return_inverse=True)[1].astype(np.int64) for part in (phases, cycles))
        cells = len(np.unique(cycle * (phase.max() + 1) + phase))
        freedom = cells - cycle.max() - phase.max() - 1
        if phase.max() > 0 and cycle.max() + 1 >= FEWEST_CYCLES and freedom >= SEASON_FREEDOM:
            found.append(Season(name, phase, cycle))
    return tuple(found)


class SeasonTest(NamedTuple):
    """Whether values follow a season."""

    share: float  # of the variance within cycles, adjusted for the number of phases; at most 1
    p_value: float


NO_TEST = SeasonTest(0.0, 1.0)


def follows(values: Array, season: Season) -> SeasonTest:
    """Test values (one for each round, NaN: not known) for a season.

    The values are averaged in each phase of each cycle, and phases are compared with how much the same phase differs
    from cycle to cycle. Drifts and changes that last are no season: they differ between cycles.
    """
    from scipy.special import fdtrc  # imported here, because simulations do not need SciPy

    known = np.isfinite(values)
    phases = int(season.phase.max()) + 1
    key, cell = np.unique(season.cycle[known] * phases + season.phase[known], return_inverse=True)
    if not len(key):
        return NO_TEST
    means = np.bincount(cell, values[known]) / np.bincount(cell)
    cycles = np.unique(key // phases, return_inverse=True)[1]
    rest, columns = (without_cycles(part, cycles) for part in (means[:, None], np.eye(phases)[key % phases]))
    left = rest - columns @ np.linalg.lstsq(columns, rest, rcond=1e-10)[0]
    added = int(np.linalg.matrix_rank(columns, tol=1e-8))
    freedom = len(key) - int(cycles.max()) - 1 - added
    before, after = float((rest**2).sum()), float((left**2).sum())
    if added < 1 or freedom < SEASON_FREEDOM or before <= 1e-12 * max(float(means @ means), 1e-12):
        return NO_TEST
    noise = after / freedom
    share = 1.0 - noise / (before / (freedom + added))
    ratio = (before - after) / added / noise if noise > 1e-12 * before else np.inf
    return SeasonTest(max(share, 0.0), float(fdtrc(added, freedom, ratio)) if np.isfinite(ratio) else 0.0)


def without_cycles(values: Array, cycles: IntArray) -> Array:
    """Columns of values as deviations from their averages in each cycle."""
    sums = np.zeros((int(cycles.max()) + 1, values.shape[1]))
    np.add.at(sums, cycles, values)
    return np.asarray(values - (sums / np.bincount(cycles)[:, None])[cycles])


DIMENSION = 1e-9  # eigenvalues below this share of the largest add no dimension
IDENTIFIED = 1e-6  # an effect is identified if its direction is in the row space up to this
FEWEST_FREEDOM = 3  # rounds beyond the unknowns, without which there are no standard errors
ROUNDING = 1e-12  # of the largest outcome: a smaller effect is rounding
MOST_LEVERAGE = 0.99  # a round that alone decides an effect has no residual to judge it by


class ReducedForm(NamedTuple):
    """Effects of choices on outcomes. Where the design is singular they are the part that the data determine.

    >>> from spillover.assessment import assess
    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 5, [[3, 2], [1, 4], [3, 5], [1, 1]] * 5, arms=["web", "shop"])
    >>> found.reduced.effects.round(2)
    array([[2., 0.],
           [1., 3.]])
    """

    effects: Array  # (outcomes, arms): effects[i, j]: of choosing j on outcome i
    errors: Array  # (outcomes, arms): standard errors; NaN where nothing is known, or no rounds are left to judge by
    own: Array  # (arms,): diagonal of `effects`; NaN where outcomes are not those of arms
    own_error: Array
    spill: Array  # (arms,): on all other outcomes together
    spill_error: Array
    total: Array  # (arms,)
    total_error: Array
    projector: Array  # (arms, arms): row j says which combination of effects the entry of arm j is
    freedom: IntArray  # (outcomes,): rounds minus unknowns
    residuals: Array  # (rounds, outcomes)
    inflation: Array  # (arms,): variance inflation of each arm's effect; inf where it is not identified
    rounds: int  # with all outcomes

    @property
    def identified(self) -> BoolArray:
        """Arms whose effects are determined by the data, not only sums or differences with other arms."""
        return np.asarray(np.diagonal(self.projector) > 1.0 - IDENTIFIED)


class Design(NamedTuple):
    """Choices with (1, context) partialled out, for some rounds."""

    rows: IntArray
    choices: Array  # (rows, arms): what (1, context) do not explain of them
    estimator: Array  # (rows, arms): effects = estimator' y
    fixed: Array  # (rows, 1 + k): an orthonormal basis of (1, context)
    projector: Array
    leverage: Array  # (rows,)
    rank: int
    inflation: Array

    @property
    def seen(self) -> BoolArray:
        """Arms of which the data say anything."""
        return np.asarray(np.diagonal(self.projector) > IDENTIFIED)


def reduced_form(data: Data) -> ReducedForm:
    """Least squares of every outcome; rounds in which an outcome is not known are left out for that outcome."""
    n, m = len(data.arms), len(data.outcomes)
    effects, errors = np.full((m, n), np.nan), np.full((m, n), np.nan)
    residuals, freedom = np.full(data.y.shape, np.nan), np.zeros(m, np.int64)
    with_context = np.asarray(np.isfinite(data.context).all(axis=1))
    usable = np.asarray(np.isfinite(data.y) & with_context[:, None])
    for columns in alike(usable):
        design = design_of(data, np.flatnonzero(usable[:, columns[0]]))
        effects[columns], rest = fit(design, data.y[np.ix_(design.rows, columns)])
        errors[columns] = robust_errors(design, rest)
        residuals[np.ix_(design.rows, columns)] = rest
        freedom[columns] = len(design.rows) - design.rank
    rows = np.flatnonzero(usable.all(axis=1))
    whole = design if len(rows) == len(design.rows) else design_of(data, rows)  # those of an outcome contain them
    own, spill, total = sums_of_outcomes(data, whole)
    return ReducedForm(
        *(effects, errors, *own, *spill, *total),
        projector=whole.projector,
        freedom=freedom,
        residuals=residuals,
        inflation=whole.inflation,
        rounds=len(whole.rows),
    )


def unknown_form(data: Data) -> ReducedForm:
    """A reduced form of which nothing is known."""
    n, m = len(data.arms), len(data.outcomes)
    pairs, single = np.broadcast_to(np.nan, (m, n)), np.full(n, np.nan)  # no memory for all pairs of many arms
    return ReducedForm(
        *(pairs, pairs, single, single, single, single, single, single),
        projector=np.broadcast_to(0.0, (n, n)),
        freedom=np.zeros(m, np.int64),
        residuals=np.full(data.y.shape, np.nan),
        inflation=np.full(n, np.inf),
        rounds=0,
    )


def alike(usable: BoolArray) -> list[IntArray]:
    """Groups of outcomes that are known in the same rounds: they share a design."""
    groups: dict[bytes, list[int]] = {}
    for i, column in enumerate(np.packbits(usable, axis=0).T):
        groups.setdefault(column.tobytes(), []).append(i)
    return [np.array(group, np.int64) for group in groups.values()]


def design_of(data: Data, rows: IntArray) -> Design:
    """The design of some rounds: choices as deviations from what (1, context) explain."""
    amounts = data.amounts[rows]
    fixed = basis_of(data.context[rows])
    choices = amounts - fixed @ (fixed.T @ amounts)
    values, vectors = np.linalg.eigh(choices.T @ choices)
    keep = values > DIMENSION * max(float((amounts**2).sum(axis=0).max(initial=0.0)), np.finfo(float).tiny)
    kept = vectors[:, keep]
    inverse, projector = (kept / values[keep]) @ kept.T, kept @ kept.T
    estimator = choices @ inverse
    spread = amounts.var(axis=0) * len(rows) if len(rows) else np.zeros(len(data.arms))
    identified = np.diagonal(projector) > 1.0 - IDENTIFIED
    return Design(
        rows=rows,
        choices=choices,
        estimator=estimator,
        fixed=fixed,
        projector=projector,
        leverage=(fixed**2).sum(axis=1) + (estimator * choices).sum(axis=1),
        rank=fixed.shape[1] + int(keep.sum()),
        inflation=np.where(identified, spread * np.diagonal(inverse), np.inf),
    )


def basis_of(context: Array) -> Array:
    """An orthonormal basis of (1, context)."""
    if not len(context):
        return np.zeros((0, 1))
    centred = context - context.mean(axis=0)
    scale = np.abs(centred).max(axis=0, initial=0.0)
    given = np.column_stack([np.ones(len(context)), centred / np.where(scale > 0, scale, 1.0)])
    basis, size, _ = np.linalg.svd(given, full_matrices=False)
    return np.asarray(basis[:, size > DIMENSION * size[0]])


def fit(design: Design, y: Array) -> tuple[Array, Array]:
    """The effects on outcomes (rows, m), as (m, arms), and the residuals (rows, m)."""
    effects = y.T @ design.estimator
    rest = y - design.fixed @ (design.fixed.T @ y) - design.choices @ effects.T
    size = ROUNDING * np.abs(y).max(axis=0, initial=0.0)[:, None]
    return np.where(design.seen, np.where(np.abs(effects) > size, effects, 0.0), np.nan), rest


def inflated_squares(design: Design, residual: Array) -> Array:
    """Squared residuals, larger where a round pulls the fit towards itself (HC3)."""
    return np.asarray((residual / (1.0 - np.minimum(design.leverage, MOST_LEVERAGE))[:, None]) ** 2)


def robust_errors(design: Design, residual: Array) -> Array:
    """Standard errors, (m, arms), that allow for noise of a different size in each round."""
    errors = np.sqrt(inflated_squares(design, residual).T @ design.estimator**2)  # 0 for a perfect fit
    return np.where(design.seen & judged(design), errors, np.nan)


def judged(design: Design) -> bool:
    """Whether enough rounds are left to judge effects by."""
    return len(design.rows) >= design.rank + FEWEST_FREEDOM


Estimates = tuple[Array, Array]  # and their standard errors


def sums_of_outcomes(data: Data, design: Design) -> tuple[Estimates, Estimates, Estimates]:
    """The effect of each arm on its own outcome, on all others together, and on all, from the complete rounds."""
    y = data.y[design.rows]
    effect, rest = fit(design, y.sum(axis=1, keepdims=True))
    total = effect[0], robust_errors(design, rest)[0]
    if not data.own:
        unknown = np.full(len(data.arms), np.nan), np.full(len(data.arms), np.nan)
        return unknown, unknown, total
    effects, rests = fit(design, y)
    own = np.diagonal(effects).copy()

    def errors(residual: Array) -> Array:
        """Of the effect of arm j on the sum whose residuals are column j."""
        squares = (inflated_squares(design, residual) * design.estimator**2).sum(axis=0)
        return np.where(design.seen & judged(design), np.sqrt(squares), np.nan)

    return (own, errors(rests)), (effect[0] - own, errors(rest - rests)), total


STRONG = 6.0  # twice the log of the odds, by the Bayesian information criterion, from which on evidence is strong
FEWEST = 2  # rounds for each unknown that is left, to judge by


def context_moves(data: Data) -> BoolArray:
    """Arms whose effect changes with the context, (arms,): choices times context explain more than their number costs.

    Each arm is judged by its own outcome, or by the sum of all outcomes where there are none of its own, against a
    regression on (1, context, all choices).
    """
    n, k = len(data.arms), data.context.shape[1]
    found = np.zeros(n, np.bool_)
    if not k:
        return found
    total = data.y.sum(axis=1)
    for j in range(n):
        y = data.y[:, j] if data.own else total
        rows = np.flatnonzero(np.isfinite(y) & np.isfinite(data.context).all(axis=1))
        if len(rows) > FEWEST * (1 + 2 * k + n):
            found[j] = evidence(data, rows, y[rows], j) > STRONG
    return found


def evidence(data: Data, rows: IntArray, y: Array, j: int) -> float:
    """Twice the log odds that the effect of arm j changes with the context."""
    design = design_of(data, rows)
    context = data.context[rows]
    moved = data.amounts[rows, j : j + 1] * (context - context.mean(axis=0))
    columns, plain = (rest_of(design.fixed, design.choices, part) for part in (moved, y[:, None]))
    before = float((plain**2).sum())
    basis = basis_of_columns(columns)
    after = before - float(((basis.T @ plain) ** 2).sum())
    if before <= 0 or not basis.shape[1]:
        return float("-inf")
    if after <= 0:
        return float("inf")
    return float(len(rows) * np.log(before / after) - basis.shape[1] * np.log(len(rows)))


def rest_of(fixed: Array, choices: Array, part: Array) -> Array:
    """The residuals of some columns after (1, context) and all choices."""
    rest = part - fixed @ (fixed.T @ part)
    return np.asarray(rest - choices @ np.linalg.lstsq(choices, rest, rcond=1e-9)[0])


def basis_of_columns(columns: Array) -> Array:
    """An orthonormal basis of some columns; none of those that are 0 up to rounding."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(basis[:, size > 1e-9 * max(float(size.max(initial=0.0)), 1e-300)])


class Groups(NamedTuple):
    """Positions of arms, in the rounds with outcomes.

    >>> from spillover.assessment import assess
    >>> assess([[1, 1], [0, 0]] * 5, [[3, 2], [1, 1]] * 5, arms=["web", "shop"]).groups.together
    ((0, 1),)
    """

    never: tuple[int, ...]
    always: tuple[int, ...]  # in the same amount
    together: tuple[tuple[int, ...], ...]  # always chosen together: only the sum of their effects is known
    opposite: tuple[tuple[int, int], ...]  # one or the other in every round: only the difference is known
    budget: int | None  # how many arms were chosen, if it was the same number in every round and some arms varied
    dependent: tuple[int, ...]  # other arms whose choices follow from those of others, or from the context


def groups_of(data: Data, reduced: ReducedForm) -> Groups:
    """The groups; what is left of the singular part of the design is `dependent`."""
    x = data.x[data.known]
    times = x.sum(axis=0)
    varying = (times > 0) & (times < len(x))
    together, opposite = same_columns(x, varying)
    sizes = x.sum(axis=1)
    constant = int(sizes[0]) if varying.any() and len(sizes) and (sizes == sizes[0]).all() else None
    explained = ~varying
    for group in (*together, *opposite):
        explained[list(group)] = True
    lost = np.diagonal(reduced.projector) < 1.0 - IDENTIFIED
    dependent = lost & ~explained if constant is None else np.zeros_like(lost)
    return Groups(
        never=positions(times == 0),
        always=positions((times == len(x)) & (np.ptp(data.amounts[data.known], axis=0) == 0)) if len(x) else (),
        together=together,
        opposite=opposite if constant is None or len(data.arms) > 2 else (),
        budget=constant,
        dependent=positions(dependent) if reduced.rounds > len(data.arms) + 1 + data.context.shape[1] else (),
    )


def positions(mask: BoolArray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())


def same_columns(x: BoolArray, varying: BoolArray) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, int], ...]]:
    """Groups of equal columns, and pairs of columns of which exactly one is true in each row."""
    places: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(varying).tolist():
        places.setdefault(x[:, j].tobytes(), []).append(j)
    together = tuple(tuple(group) for group in places.values() if len(group) > 1)
    opposite = []
    for group in places.values():
        other = places.get((~x[:, group[0]]).tobytes())
        if other and group[0] < other[0]:
            opposite.append((group[0], other[0]))
    return together, tuple(opposite)
