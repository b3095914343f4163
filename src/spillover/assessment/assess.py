"""Assess a table: counts, averages, the reduced form, the pooled effect of units chosen once, and findings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover.assessment.findings import (
    DECISIVE,
    FINE,
    NOTE,
    WARNING,
    Finding,
    choice_findings,
    context_findings,
    design_findings,
    outcome_findings,
    outlier_findings,
    size_findings,
    timing_findings,
    total_findings,
)
from spillover.assessment.reduced_form import (
    MOST_ARMS,
    ArmAverages,
    Data,
    Groups,
    ReducedForm,
    arm_averages,
    checked_data,
    context_moves,
    groups_of,
    reduced_form,
    unknown_form,
)
from spillover.formatting import Interval, count_of, format_estimate, plain_values, short_number
from spillover.types import Array, BoolArray, IntArray

FEWEST_UNITS = 5
MOST_STRETCHES = 2  # in which a unit was chosen
LASTING = 0.5  # of the switches that as many choices in a random order would have: with fewer, choices last
FEW = 5  # chosen units below which their own differences do not tell how far units differ by chance
SURELY = 0.99  # confidence from which on trends before the choices speak against parallel ones
MOST_WORK = 3e9  # additions and multiplications, roughly: a second


class Pooled(NamedTuple):
    """The average effect of choosing a unit on its own outcome in a round, over the rounds in which it was chosen.

    >>> from spillover.assessment import assess
    >>> x = [[week >= start for start in (2, 3, 4, 9, 9, 9)] for week in range(6)]
    >>> y = [[unit + week + 2 * x[week][unit] for unit in range(6)] for week in range(6)]
    >>> found = assess(x, y).pooled
    >>> round(found.effect, 6), found.treated, found.controls
    (2.0, 3, 3)
    """

    effect: float
    error: float  # standard error; NaN where there are too few units to tell
    interval: Interval  # 95%
    freedom: float  # degrees of freedom of its t distribution
    treated: int  # units that were chosen, and have an outcome to compare with
    controls: int  # units that were never chosen
    before: Interval | None  # 99% interval of the same comparison before the first choice; includes 0 if trends agree
    by_controls: bool  # whether the error is that of units never chosen, because few were chosen

    @property
    def parallel(self) -> bool:
        """Whether the rounds before the choices leave parallel trends possible."""
        return self.before is None or self.before[0] <= 0.0 <= self.before[1]

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = plain_values(self)
        return plain if np.isfinite(self.error) else plain | {"interval": None}


class Estimate(NamedTuple):
    """An effect, and how its error was found."""

    effect: float
    error: float
    freedom: float
    by_controls: bool

    def interval(self, confidence: float = 0.95) -> Interval:
        from scipy.special import stdtrit  # imported here, because simulations do not need SciPy

        reach = float(stdtrit(self.freedom, 0.5 + confidence / 2)) * self.error
        return self.effect - reach, self.effect + reach


def pooled_effect(data: Data) -> Pooled | None:
    """The pooled effect of units that were chosen once or twice: states with a law, shops with a new till.

    None where arms are no units of this kind. Of a single unit such a table can tell nothing: whatever else changed at
    the time would count as its effect. All units together can: each is compared with those that were not chosen at the
    time. Outcomes without a choice are imputed: unit and round effects are fitted to the outcomes of units while they
    were not chosen, and the effect is the average of what the others have beyond them (Borusyak, Jaravel and Spiess,
    2024). Unlike two-way fixed effects of all outcomes, this never compares with units that were chosen before, so it
    is right if effects differ between units or grow with time.
    """
    if not data.own or not (data.amounts == data.x).all() or not are_units(data.x):
        return None
    (rounds, units), known = data.x.shape, np.isfinite(data.y)
    if not known.any() or units * rounds**2 * (units + rounds) > MOST_WORK:
        return None
    y = data.y - data.y[known].mean()
    used = np.isfinite(imputed(y, data.x, known)).any(axis=0)
    if not used.any():
        return None
    found = estimated(y, data.x, known)
    return Pooled(
        effect=found.effect,
        error=found.error,
        interval=found.interval(),
        freedom=found.freedom,
        treated=int(used.sum()),
        controls=int((~data.x.any(axis=0) & known.any(axis=0)).sum()),
        before=before_choices(y, data.x, known),
        by_controls=found.by_controls,
    )


def are_units(x: BoolArray) -> bool:
    """Whether all arms were chosen in one or two stretches at most, which last, or in one or two rounds."""
    rounds, units = x.shape
    times = x.sum(axis=0)
    if units < FEWEST_UNITS or rounds < 2 or not ((times > 0) & (times < rounds)).any():
        return False
    starts = x[0] + (x[1:] & ~x[:-1]).sum(axis=0)
    if starts.max() > MOST_STRETCHES:
        return False
    switches, expected = (x[1:] != x[:-1]).sum(), (2.0 * times * (rounds - times) / rounds).sum()
    return bool(switches <= LASTING * expected or times.max() <= MOST_STRETCHES)


def imputed(y: Array, x: BoolArray, known: BoolArray) -> Array:
    """The outcomes of chosen units less those imputed without the choice, (rounds, units); NaN elsewhere.

    NaN too where nothing is there to compare with: a unit that was always chosen, a round in which all were.
    """
    from scipy.sparse.csgraph import connected_components

    idle = (known & ~x).astype(float)
    counts, sums = idle.sum(axis=0), np.where(idle > 0, y, 0.0).sum(axis=0)
    share = np.divide(idle, counts, out=np.zeros_like(idle), where=counts > 0)
    shared = idle @ share.T  # (rounds, rounds): how far two rounds have units to compare
    left = np.where(idle > 0, y, 0.0).sum(axis=1) - share @ sums
    group = connected_components(shared > 0, directed=False)[1]
    anchor = (group[:, None] == group).astype(float)  # levels of rounds that are compared add up to 0
    level = np.linalg.solve(np.diag(idle.sum(axis=1)) - shared + anchor, left)
    unit = np.divide(sums - level @ idle, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    home = group[idle.argmax(axis=0)]  # of the rounds that a unit is compared in
    comparable = known & x & (idle.sum(axis=1) > 0)[:, None] & (group[:, None] == home)
    return np.where(comparable, y - unit - level[:, None], np.nan)


def average_of(y: Array, x: BoolArray, known: BoolArray, units: BoolArray | IntArray) -> float:
    """The effect from some of the units."""
    beyond = imputed(y[:, units], x[:, units], known[:, units])
    return float(np.nanmean(beyond)) if np.isfinite(beyond).any() else np.nan


def estimated(y: Array, x: BoolArray, known: BoolArray) -> Estimate:
    """The effect, with an error by the jackknife over units; if few were chosen, by placebos among those never chosen.

    Units, not outcomes, are independent: the outcomes of a unit may hang together in any way.
    """
    beyond = imputed(y, x, known)
    cells = np.isfinite(beyond).sum(axis=0)
    effect = float(np.nanmean(beyond))
    never = np.flatnonzero(~x.any(axis=0) & known.any(axis=0))
    chosen = np.flatnonzero(cells)
    if len(chosen) < FEW <= len(never):
        error = placebo_error(y, x, known, cells, never)
        return Estimate(effect, error, len(never) - 1.0, True)
    if len(chosen) < 2:
        return Estimate(effect, np.nan, np.nan, False)
    strata = [chosen, never] if len(never) > 1 else [np.flatnonzero(known.any(axis=0))]
    variances = [jackknife(y, x, known, stratum) for stratum in strata]
    worth = [cells.sum() ** 2 / (cells**2).sum(), *[float(len(never))] * (len(strata) - 1)]  # Kish
    total = sum(variances)
    spread = sum(part**2 / max(count - 1.0, 1.0) for part, count in zip(variances, worth, strict=True))
    return Estimate(effect, float(np.sqrt(total)), total**2 / spread if spread > 0 else worth[0] - 1.0, False)


def jackknife(y: Array, x: BoolArray, known: BoolArray, stratum: IntArray) -> float:
    """The variance that comes from a stratum of units: each is left out once."""
    everyone = np.arange(x.shape[1])
    without = np.array([average_of(y, x, known, everyone != unit) for unit in stratum])
    without = without[np.isfinite(without)]
    return float(((without - without.mean()) ** 2).sum() * (len(without) - 1) / len(without))


def placebo_error(y: Array, x: BoolArray, known: BoolArray, cells: IntArray, never: IntArray) -> float:
    """The standard error if chosen units differ by chance as those never chosen do.

    The choices of each chosen unit are given to each unit never chosen, which is compared with the others of them.
    """
    chosen, count = np.flatnonzero(cells), len(never)
    found = np.empty((len(chosen), count))
    for k, unit in enumerate(chosen):
        for j in range(count):
            fake = np.zeros((len(x), count), np.bool_)
            fake[:, j] = x[:, unit]
            found[k, j] = average_of(y[:, never], fake, known[:, never], np.arange(count))
    share = cells[chosen] / cells.sum()
    unlike = np.nanmean(found**2, axis=1) * (count - 1) / count  # a placebo is compared with one unit less
    together = np.nanmean((share @ found) ** 2) * (count - 1) / count
    return float(np.sqrt(share**2 @ unlike + together / count))


def before_choices(y: Array, x: BoolArray, known: BoolArray) -> Interval | None:
    """The interval of the effect of choices that were not made yet: the later half of the rounds before the first."""
    first = np.where(x.any(axis=0), x.argmax(axis=0), 0)
    clock = np.arange(len(x))[:, None]
    early = (clock >= (first + 1) // 2) & (clock < first)
    ever = np.logical_or.accumulate(x, axis=0)
    idle = known & ~ever
    if not np.isfinite(imputed(y, early, idle)).any():
        return None
    found = estimated(y, early, idle)
    return found.interval(SURELY) if np.isfinite(found.error) else None


def pooled_findings(found: Pooled | None) -> Iterator[Finding]:
    """The pooled effect in words, with what it assumes; a warning where the rounds before speak against that."""
    if found is None:
        return
    sure = np.isfinite(found.error)
    size = format_estimate(found.effect, found.interval) if sure else short_number(found.effect)
    sentence = (
        f"Pooled over {count_of(found.treated, 'chosen unit')}: choosing a unit changes its own outcome by {size} a "
        "round, compared with units not chosen at the time. This assumes parallel trends: without the choice, its "
        "outcome would have moved as theirs did."
    )
    if found.by_controls:
        sentence += f" How far units differ by chance is taken from the {found.controls:,} never chosen."
    if not sure:
        sentence += " There are too few units to say how sure this is."
    yield Finding("pooled-effect", FINE, sentence)
    if found.before is not None and not found.parallel:
        low, high = (short_number(end) for end in found.before)
        sentence = (
            f"Trends were not parallel: chosen units had moved away from the others before they were chosen, by {low} "
            f"to {high}. The pooled effect may be no more than that."
        )
        yield Finding("trends-differ", WARNING, sentence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment:
    """The assessment of a table, before any model of it.

    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 5, [[3, 2], [1, 4], [3, 5], [1, 1]] * 5, arms=["web", "shop"])
    >>> [finding.code for finding in found.findings]
    ['enough-rounds', 'separable', 'baseline']
    """

    arms: tuple[str, ...]
    rounds: int
    known: int  # rounds with outcomes
    unknowns: int  # of each outcome: the baseline, what the context adds, and the effect of each arm
    averages: tuple[ArmAverages, ...]
    reduced: ReducedForm  # all NaN with too many arms for it
    groups: Groups
    moved: BoolArray  # (arms,): whether the context moves the arm's effect
    findings: tuple[Finding, ...]
    pooled: Pooled | None = None  # of units that were chosen once or twice; None: arms are no such units

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.warning)

    def decisive(self, *, sees_rewards: bool) -> tuple[Finding, ...]:
        """Findings that a decision or an evaluation must not go without, but for notes on outcomes that never vary.

        sees_rewards: whether the table has own rewards: then few rounds are enough.
        """
        met = {"too-few-rounds"} if sees_rewards else set()
        return tuple(one for one in self.findings if one.code in DECISIVE - met and one.severity != NOTE)

    def find(self, code: str) -> Finding | None:
        """The first finding of that code."""
        return next((finding for finding in self.findings if finding.code == code), None)

    def to_dict(self) -> dict[str, Any]:
        """Lists, dictionaries, texts, numbers and None."""
        return {
            "rounds": self.rounds,
            "rounds_with_outcomes": self.known,
            "unknowns": self.unknowns,
            "arms": [self.arm_dict(j) for j in range(len(self.arms))],
            "pooled": None if self.pooled is None else self.pooled.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def arm_dict(self, j: int) -> dict[str, Any]:
        """The averages and the reduced form of one arm."""
        averages = self.averages[j]
        found: dict[str, Any] = {"arm": self.arms[j], "times_chosen": averages.times}
        found |= {name: value.to_dict() for name, value in (("own", averages.own), ("others", averages.rest))}
        found["total"] = averages.total.to_dict()
        estimates = {"own": (self.reduced.own, self.reduced.own_error)}
        estimates["others"] = self.reduced.spill, self.reduced.spill_error
        estimates["total"] = self.reduced.total, self.reduced.total_error
        found["least_squares"] = {
            name: plain_values({"effect": effect[j], "standard_error": error[j]})
            for name, (effect, error) in estimates.items()
        } | {"identified": bool(self.reduced.identified[j])}
        return found


def assess(
    x: Any,
    y: Any,
    *,
    dose: Any = None,
    context: Any = None,
    arms: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    context_names: Sequence[str] | None = None,
    rounds: Sequence[str] | None = None,
) -> Assessment:
    """Look at past decisions and outcomes, before any model of them.

    x: (rounds, arms), what was chosen. y: (rounds, arms), the outcomes; NaN where one is not known.
    dose: (rounds, arms), amounts of the chosen arms. context: (rounds, k), numbers known before each decision.
    arms: their names. outcomes: names of the columns of y, if they are not those of the arms, such as one total.
    rounds: their labels in order; dates tell the season. Tables (pandas, Polars, Arrow) have named columns: those of x
    are the arms, if no names are given, and those of y and dose are put into their order.

    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 3, [[2, 1], [0, 3], [2, 4], [0, 0]] * 3)
    >>> found.reduced.effects.round(2) + 0.0
    array([[2., 0.],
           [1., 3.]])
    >>> [finding.code for finding in found.findings]
    ['enough-rounds', 'separable', 'no-baseline']
    """
    data = checked_data(
        x,
        y,
        dose=dose,
        context=context,
        arms=arms,
        outcomes=outcomes,
        context_names=context_names,
        rounds=rounds,
    )
    averages = arm_averages(data)
    used = data.latest()
    reduced = reduced_form(used) if len(data.arms) <= MOST_ARMS else unknown_form(used)
    groups = groups_of(used, reduced)
    moved = context_moves(used) if len(data.arms) <= MOST_ARMS else np.zeros(len(data.arms), np.bool_)
    pooled = pooled_effect(used)
    return Assessment(
        arms=data.arms,
        rounds=len(data.x),
        known=int(data.known.sum()),
        unknowns=1 + data.context.shape[1] + len(data.arms),
        averages=averages,
        reduced=reduced,
        groups=groups,
        moved=moved,
        findings=(
            *findings_of(data, used, averages, reduced, groups),
            *context_findings(used, moved),
            *pooled_findings(pooled),
        ),
        pooled=pooled,
    )


def findings_of(
    data: Data, used: Data, averages: tuple[ArmAverages, ...], reduced: ReducedForm, groups: Groups
) -> list[Finding]:
    """All findings; of a table without outcomes only that they are missing."""
    found = [*size_findings(data)]
    if not data.known.any():
        return found
    return [
        *found,
        *choice_findings(used, groups, averages),
        *design_findings(used, groups, reduced),
        *timing_findings(used),
        *outcome_findings(used, reduced),
        *(outlier_findings(used) if len(data.arms) <= MOST_ARMS else ()),
        *total_findings(used),
    ]
