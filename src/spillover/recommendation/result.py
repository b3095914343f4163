"""The recommendation, its answer on each arm, and the warnings beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover.assessment import Assessment
from spillover.assessment.findings import FINE, NOTE, WARNING, Finding
from spillover.assessment.reduced_form import MOST_ARMS
from spillover.constraints import Constraint, Costs
from spillover.formatting import Interval, Shown, interval_of, plain_values, short_number
from spillover.history import History
from spillover.reasons import ArmReason, Reasons
from spillover.reasons.health import join_names, join_rounds, unit_factor, unit_sentence
from spillover.reasons.paths import is_dense, solvable
from spillover.recommendation.clarity import IN_AN_INTERVAL, Trial
from spillover.registry import needed_for
from spillover.types import Array
from spillover.validate import quoted

FEWEST_FREE = 10  # degrees of freedom
UNIT_ERRORS = 6.0  # standard errors from 1: of a few hundred arms none reaches them by chance
EXACT = 1e-9  # of the spread of an outcome: smaller residuals are rounding


def different_units(history: History) -> Iterator[Finding]:
    """Whether one unit of an arm's z goes with far more or far less than one unit of its own y."""
    if history.observes != "both" or not history.has_overall or len(history.arms) > MOST_ARMS:
        return
    factor = unit_factor(table_slopes(history))
    if factor is not None:
        yield Finding("units-differ", WARNING, unit_sentence(factor))


def table_slopes(history: History) -> Array:
    """Least squares of each arm's y on all z and a constant: its own slope, as `reasons.units.unit_factor` takes it."""
    n = len(history.arms)
    rows = history.arrived & np.isfinite(history.y).all(axis=1) & np.isfinite(history.z).all(axis=1)
    if rows.sum() < n + 1 + FEWEST_FREE:
        return np.full(n, np.nan)
    z, y = history.z[rows], history.y[rows]
    design = np.column_stack([z, np.ones(len(z))])
    size = np.maximum(np.abs(design).max(axis=0), np.finfo(float).tiny)
    scaled = design / size
    fitted, _, rank, _ = np.linalg.lstsq(scaled, y, rcond=None)
    inverse = np.linalg.pinv(scaled, rcond=np.finfo(float).eps * len(z))  # not of its square, which may be negative
    residual = np.square(y - scaled @ fitted).sum(axis=0) / max(len(z) - int(rank), 1)
    noise = np.maximum(residual, np.square(EXACT * np.abs(y).max(axis=0)))
    slopes = np.diagonal(fitted[:n]) / size[:n]
    error = np.sqrt(noise * np.square(inverse[:n]).sum(axis=1)) / size[:n]
    separate = np.isclose((inverse @ scaled).diagonal()[:n], 1.0, atol=1e-6)
    clear = np.abs(slopes - 1.0) > UNIT_ERRORS * error
    return np.where(separate, np.where(clear, slopes, 1.0), np.nan)


FALSE_ALARMS = 0.002  # probability of a contradiction by chance, among all comparisons of an answer
ERRORS = 2.0  # standard errors by which the reference must differ from 0 to contradict a sign
MATERIAL = 0.1  # of the spread of the outcomes: a smaller estimate has no sign to speak of
BASELINE = 0.1  # of the average outcome: a smaller baseline is not worth a word
LISTED = 3  # contradictions in one sentence


class Claim(NamedTuple):
    """An estimate of the policy and what the reference regression says of the same quantity."""

    words: str
    arm: int
    estimate: float
    deviation: float  # standard deviation of the estimate; 0 where the policy has no interval
    reference: float
    error: float  # standard error of the reference
    scale: float  # of the outcomes concerned


def cautions(
    reasons: Reasons,
    assessment: Assessment,
    y: Array,
    signals: dict[str, Any],
    *,
    sign: float,
    sees_rewards: bool,
    fits_baseline: bool = False,
    by_regression: bool = False,
) -> list[Finding]:
    """All warnings and notes of an answer, the warnings first.

    y: (rounds, outcomes), NaN where not known. signals: the policy's. sign: -1 where outcomes are minimised; y and the
    assessment have the sign of the table. fits_baseline: whether the policy estimates a baseline.
    by_regression: whether the estimates are those of a regression: there is nothing to hold against least squares.
    """
    found = [
        *impossible(reasons, y, sign),
        *(() if by_regression else contradictions(reasons, assessment, y, sign)),
        *changes(signals),
        *baseline(reasons, assessment, y, sign, fits_baseline),
        *assessment.decisive(sees_rewards=sees_rewards),
    ]
    return sorted(found, key=lambda finding: not finding.warning)


def impossible(reasons: Reasons, y: Array, sign: float) -> Iterator[Finding]:
    """Spill-over that is larger than all that was ever seen of the other arms' outcomes."""
    if y.shape[1] != len(reasons.arms) or not np.isfinite(y).any():
        return
    total = y.sum(axis=1)
    for arm in reasons.arms:
        others = total - y[:, arm.position]
        others = others[np.isfinite(others)]
        if not arm.known or not len(others):
            continue
        largest = float(max(np.abs(others).max(), np.ptp(others)))
        if abs(arm.spilled_over) > largest:
            sentence = (
                f"The spill-over of {quoted(arm.arm)}, {short_number(sign * arm.spilled_over)}, is larger than the "
                f"largest outcome of all other arms together ({short_number(largest)}): do not rely on it."
            )
            yield Finding("impossible-spill-over", WARNING, sentence, (arm.arm,))


def contradictions(reasons: Reasons, assessment: Assessment, y: Array, sign: float) -> Iterator[Finding]:
    """Effects whose sign the reference regression contradicts, by more than chance among all comparisons."""
    from scipy.special import ndtri  # imported here, because simulations do not need SciPy

    claims = [*claims_of_sums(reasons, assessment, y, sign), *claims_of_pairs(reasons, assessment, y, sign)]
    comparisons = len(reasons.arms) * (len(reasons.arms) + 1)
    limit = max(ERRORS, float(ndtri(1.0 - FALSE_ALARMS / (2 * comparisons))))
    against = [claim for claim in claims if contradicted(claim, limit)]
    if not against:
        return
    against.sort(key=lambda claim: -abs(claim.estimate - claim.reference) / claim.error)
    parts = [
        f"{claim.words} {short_number(claim.estimate)}, but least squares on the choices gives "
        f"{short_number(claim.reference)} (standard error {short_number(claim.error)})"
        for claim in against[:LISTED]
    ]
    more = f"; and {len(against) - LISTED} more" if len(against) > LISTED else ""
    arms = tuple(dict.fromkeys(reasons.names[claim.arm] for claim in against))
    yield Finding("contradicted", WARNING, f"The data contradict the estimates: {'; '.join(parts)}{more}.", arms)


def contradicted(claim: Claim, limit: float) -> bool:
    """Whether signs differ, both numbers matter, and their distance is more than chance."""
    if not (np.isfinite(claim.estimate) and np.isfinite(claim.reference) and claim.error > EXACT * claim.scale):
        return False
    opposite = claim.estimate * claim.reference < 0
    material = abs(claim.estimate) > MATERIAL * claim.scale and abs(claim.reference) > ERRORS * claim.error
    distance = abs(claim.estimate - claim.reference)
    return bool(opposite and material and distance > limit * np.hypot(claim.error, claim.deviation))


def claims_of_sums(reasons: Reasons, assessment: Assessment, y: Array, sign: float) -> Iterator[Claim]:
    """Effects on an arm's own outcome and on all others together.

    The reference knows only some combinations of effects where the design is singular (row j of its projector), so
    the same combinations of the estimates are compared.
    """
    reduced = assessment.reduced
    known = np.array([arm.known for arm in reasons.arms])
    direct, spilled = (np.array([getattr(arm, name) for arm in reasons.arms]) for name in ("direct", "spilled_over"))
    total = y.sum(axis=1)
    whole = reduced.projector @ np.where(known, sign * (direct + spilled), 0.0)
    effects = estimated_effects(reasons)
    for arm in reasons.arms:
        j, name = arm.position, quoted(arm.arm)
        if not known[reduced.projector[j] != 0].all():
            continue
        if y.shape[1] != len(reasons.arms):
            references = float(reduced.total[j]), float(reduced.total_error[j])
            deviation = deviation_of(arm.total_interval)
            yield Claim(f"{name} is said to add", j, float(whole[j]), deviation, *references, spread_of(total))
        elif effects is not None:
            own = sign * float(reduced.projector[j] @ effects[j])
            references = float(reduced.own[j]), float(reduced.own_error[j])
            deviation, scale = deviation_of(arm.direct_interval), spread_of(y[:, j])
            yield Claim(f"{name} is said to add to itself", j, own, deviation, *references, scale)
            references = float(reduced.spill[j]), float(reduced.spill_error[j])
            deviation, scale = deviation_of(arm.spill_interval), spread_of(total - y[:, j])
            yield Claim(f"{name} is said to spill over", j, float(whole[j]) - own, deviation, *references, scale)


def claims_of_pairs(reasons: Reasons, assessment: Assessment, y: Array, sign: float) -> Iterator[Claim]:
    """Effects of each arm on the outcome of each other, where the signs differ."""
    effects, reduced = estimated_effects(reasons), assessment.reduced
    if effects is None or y.shape[1] != len(reasons.arms):
        return
    known = np.array([arm.known for arm in reasons.arms])
    comparable = ~((reduced.projector != 0) & ~known).any(axis=1)
    if not np.isfinite(y).all():  # outcomes may differ in what their rounds identify
        comparable &= reduced.identified
    seen = sign * effects @ reduced.projector
    for i, j in np.argwhere((seen * reduced.effects < 0) & comparable).tolist():
        if i != j:
            yield Claim(
                words=f"choosing {quoted(reasons.names[j])} is said to move {quoted(reasons.names[i])} by",
                arm=j,
                estimate=float(seen[i, j]),
                deviation=deviation_of(interval_of(reasons.effects_interval, i, j)),
                reference=float(reduced.effects[i, j]),
                error=float(reduced.errors[i, j]),
                scale=spread_of(y[:, i]),
            )


def estimated_effects(reasons: Reasons) -> Array | None:
    """effects[i, j]: what choosing j does to the outcome of i, as the policy gives it or as its graph implies."""
    if reasons.effects is not None:
        return np.asarray(np.nan_to_num(reasons.effects), float)
    if not is_dense(reasons.adjacency) or not solvable(reasons.adjacency):
        return None
    pushed = np.diag([arm.direct if arm.known else 0.0 for arm in reasons.arms])
    return np.asarray(np.linalg.solve(np.eye(len(pushed)) - reasons.adjacency, pushed))


def deviation_of(interval: Interval | None) -> float:
    """The standard deviation that a 95% interval implies; 0 without one."""
    return 0.0 if interval is None else (interval[1] - interval[0]) / IN_AN_INTERVAL


def spread_of(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.std()) if len(known) else np.nan


def changes(signals: dict[str, Any]) -> Iterator[Finding]:
    """Changes of the world that the policy has noticed."""
    times = int(np.max(signals.get("changes_seen", 0)))
    if times > 0:
        many = "A change of the arms' effects was" if times == 1 else f"{times} changes of the arms' effects were"
        sentence = f"{many} noticed: estimates are of the time since, averages of all rounds mix before and after."
        yield Finding("changes", WARNING, sentence)


def baseline(reasons: Reasons, assessment: Assessment, y: Array, sign: float, fits_baseline: bool) -> Iterator[Finding]:
    """Outcomes without any choice: fitted, and said; a warning where the policy does not fit them."""
    fitted = np.array([arm.baseline for arm in reasons.arms])
    seen = assessment.find("baseline")
    known = fits_baseline or bool(np.isfinite(fitted).any())
    if seen is not None and known:
        yield Finding("baseline", NOTE, f"{seen.sentence} Effects are what comes on top of this baseline.")
    elif seen is not None:
        sentence = f"{seen.sentence} This policy does not fit such a baseline: its effects may contain it."
        yield Finding("baseline", WARNING, sentence)
    elif np.isfinite(fitted).any():
        totals = np.abs(y).sum(axis=1)
        usual = float(totals[np.isfinite(totals)].mean()) if np.isfinite(totals).any() else 0.0
        level = float(np.nansum(fitted))
        if abs(level) > BASELINE * usual:
            sentence = (
                f"Outcomes do not start from 0: with nothing chosen, {short_number(sign * level)} in all is expected. "
                "Effects are what comes on top of this baseline."
            )
            yield Finding("baseline", NOTE, sentence)


if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class ArmAnswer:
    """One arm. Numbers have the sign and the units of the table; intervals are 95% credible intervals.

    >>> import spillover as sp
    >>> table = {"week": range(8), "promo_a": [1, 0, 1, 0] * 2, "promo_b": [0, 1, 1, 0] * 2}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5, 9, 4], "sales_b": [3, 4, 4, 3, 3, 5, 4, 3]}
    >>> best = sp.next_decision(table, budget=1).arms[0]
    >>> best.arm, best.times_chosen, best.difference
    ('a', 4, 4.0)
    """

    arm: str
    chosen: bool
    by_knowledge: bool  # whether it is chosen by what is known alone
    times_chosen: int
    outcome_when_chosen: float  # average of its own outcome (of the only outcome, where there is one for all arms)
    outcome_when_not: float
    difference: float
    difference_error: float  # standard error
    others_when_chosen: float  # average of the sum of all other outcomes
    others_when_not: float
    others_difference: float
    others_difference_error: float
    effect: float  # on itself; NaN without data
    effect_interval: Interval | None
    spill_over: float
    spill_over_interval: Interval | None
    total: float
    total_interval: Interval | None
    exploration: float  # the exploration bonus
    score: float  # what decided: total plus exploration; larger is better, also where outcomes are minimised
    baseline: float  # expected outcome if nothing is chosen; NaN: not estimated
    context_effect: float  # what the context adds to its effect; NaN: not estimated
    least_squares_effect: float  # of the reference regression
    least_squares_effect_error: float
    least_squares_spill_over: float
    least_squares_spill_over_error: float
    least_squares_total: float
    least_squares_total_error: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None where a number is not finite."""
        plain: dict[str, Any] = plain_values(asdict(self))
        return plain


def arm_answers(
    reasons: Reasons, assessment: Assessment, known_best: set[str], sign: float, per_arm: bool
) -> tuple[ArmAnswer, ...]:
    """The arms in the order of `Reasons.ranked`.

    sign: -1 where outcomes are minimised; the assessment has the sign of the table. per_arm: whether each arm has an
    outcome of its own.
    """
    return tuple(arm_answer(arm, assessment, arm.arm in known_best, sign, per_arm) for arm in reasons.ranked())


COMPARED = [
    *("outcome_when_chosen", "outcome_when_not", "difference", "difference_error"),
    *("others_when_chosen", "others_when_not", "others_difference", "others_difference_error"),
]


def arm_answer(arm: ArmReason, assessment: Assessment, best: bool, sign: float, per_arm: bool) -> ArmAnswer:
    """One arm's answer."""
    averages, reduced, j = assessment.averages[arm.position], assessment.reduced, arm.position
    own, rest = averages.own if per_arm else averages.total, averages.rest
    effect, error = (reduced.own, reduced.own_error) if per_arm else (reduced.total, reduced.total_error)
    regression = {"effect": effect, "effect_error": error}
    regression |= {"spill_over": reduced.spill, "spill_over_error": reduced.spill_error}
    regression |= {"total": reduced.total, "total_error": reduced.total_error}
    compared: dict[str, Any] = dict(zip(COMPARED, (*own, *rest), strict=True))
    known = np.nan if not arm.known else 1.0
    return ArmAnswer(
        arm=arm.arm,
        chosen=arm.chosen,
        by_knowledge=best,
        times_chosen=averages.times,
        **compared,
        effect=sign * arm.on_itself * known,
        effect_interval=signed_interval(arm.direct_interval, sign),
        spill_over=sign * arm.on_others * known,
        spill_over_interval=signed_interval(arm.spill_interval, sign),
        total=sign * arm.total * known,
        total_interval=signed_interval(arm.total_interval, sign),
        exploration=arm.exploration,
        score=arm.score,
        baseline=sign * arm.baseline,
        context_effect=sign * arm.context_effect,
        **{f"least_squares_{name}": float(values[j]) for name, values in regression.items()},
    )


def signed_interval(interval: Interval | None, sign: float) -> Interval | None:
    if interval is None or sign > 0:
        return interval
    return -interval[1], -interval[0]


def describe_constraints(constraints: Sequence[Constraint], chosen: Sequence[str], arms: Sequence[str]) -> list[str]:
    """Each constraint in words; for costs, how much is spent and which arms are free because they have no cost."""
    found = []
    for constraint in constraints:
        text = constraint.words(quoted)
        if isinstance(constraint, Costs):
            costs = dict(constraint.costs) if constraint.by_arm else dict(zip(arms, constraint.costs, strict=True))
            text += f", {sum(costs.get(name, 0.0) for name in chosen):g} spent"
            free = [name for name in arms if name not in costs]
            text += f"; no cost given, so free: {join_names(free)}" if free else ""
        found.append(text)
    return found


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Recommendation(Shown):
    """The next decision: `print` it, or see `choose`, `greedy`, `arms`, `warnings`, `plot`, `to_frame`, `to_dict`.

    >>> import spillover as sp
    >>> table = {"week": range(8), "promo_a": [1, 0, 1, 0] * 2, "promo_b": [0, 1, 1, 0] * 2}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5, 9, 4], "sales_b": [3, 4, 4, 3, 3, 5, 4, 3]}
    >>> answer = sp.next_decision(table, budget=1)
    >>> answer.choose, answer.to_frame().loc["a", "times_chosen"].item()
    (['a'], 4)
    """

    view = "spillover.views:RecommendationView"

    source: str  # the name of the file; "" for a table in memory
    policy: str
    budget: int
    history: History
    constraints: tuple[Constraint, ...]
    reasons: Reasons
    greedy: tuple[str, ...]  # the arms to choose by what is known alone, the best first
    not_yet: tuple[str, ...]  # why the data cannot tell yet which arms are best; empty if they can
    arms: tuple[ArmAnswer, ...]  # the chosen arms, then the others, each by decreasing score
    cautions: tuple[Finding, ...]  # warnings and notes about the estimates
    assessment: Assessment
    per_arm: bool = True  # whether each arm has an outcome of its own
    sign: float = 1.0  # -1 where outcomes are minimised
    without_exploration: bool = False  # whether it was decided by what is known alone
    changes: int | None = None  # changes of the world that the policy has noticed; None: it does not look for any
    trial: Trial | None = None  # an arm that is worth trying, where exploration pays
    relative: bool = False  # whether effects are differences from the average arm
    taken: tuple[str, ...] = ()  # what was taken from the data because it was not given: ranges, doses

    def __str__(self) -> str:
        from spillover.recommendation.text import short_text

        return short_text(self)

    def explain(self) -> str:
        """All reasons as text."""
        from spillover.recommendation.text import full_text

        return full_text(self)

    def plot(self) -> "Figure":
        """The decision as a figure, the same as `spillover next --plot`.

        >>> import pandas as pd
        >>> import spillover as sp
        >>> chosen = {"x:a": [1, 0, 1, 0], "x:b": [0, 1, 1, 0]}
        >>> table = pd.DataFrame(chosen | {"y:a": [2.0, 0, 2, 0], "y:b": [0, 1.0, 1, 0]})
        >>> sp.next_decision(table, budget=1).plot().axes[1].get_title()
        'the parts of each score'
        """
        return self.reasons.plot()

    @property
    def chosen(self) -> list[ArmReason]:
        """The arms to choose, the best first."""
        return [arm for arm in self.reasons.ranked() if arm.chosen]

    @property
    def choose(self) -> list[str]:
        """The names of the arms to choose, the best first."""
        return [arm.arm for arm in self.chosen]

    @property
    def warnings(self) -> list[str]:
        """Everything that needs attention, in sentences."""
        said = {finding.code for finding in self.cautions}
        health = [signal.sentence for signal in self.reasons.health if signal.warning and signal.code not in said]
        return [finding.sentence for finding in self.cautions if finding.warning] + health

    @property
    def notes(self) -> list[str]:
        """Notes for the owner of the table."""
        own = [*over_budget(self.history, self.budget), *overlooked(self.history)]
        said = [(finding.severity, finding.sentence.rstrip(".")) for finding in self.cautions if not finding.warning]
        learned, others = ([text for severity, text in said if (severity == FINE) == fine] for fine in (True, False))
        return [*learned, *self.history.notes, *own, *self.taken, *others]

    @property
    def constraints_in_words(self) -> list[str]:
        return describe_constraints(self.constraints, self.choose, self.history.arms)

    def to_frame(self) -> Any:
        """The arms as a pandas table, in the order of `arms`."""
        with needed_for("a data frame", "research"):
            import pandas as pd

        return pd.DataFrame([arm.to_dict() for arm in self.arms]).set_index("arm")

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values; the same as `spillover next --json`."""
        return {
            "file": self.source,
            "policy": self.policy,
            "budget": self.budget,
            "round": self.history.following,
            "choose": self.choose,
            "greedy": list(self.greedy),
            "without_exploration": self.without_exploration,
            "not_yet": list(self.not_yet),
            "trial": None if self.trial is None else self.trial.to_dict(),
            "warnings": self.warnings,
            "arms": [arm.to_dict() for arm in self.arms],
            "limits": self.constraints_in_words,
            "rounds": len(self.history.rounds),
            "pending": list(self.history.pending),
            "notes": self.notes,
            "findings": [finding.to_dict() for finding in (*self.cautions, *self.assessment.findings)],
            "reasons": self.reasons.to_dict(),
        }


def over_budget(history: History, budget: int) -> Iterator[str]:
    """Past rounds that chose more arms than may be chosen now."""
    sizes = history.x.sum(axis=1)
    over = np.flatnonzero(sizes > budget)
    if len(over):
        rounds, first, outcomes = "one round", "", "its outcome is"
        if len(over) > 1:
            rounds, first, outcomes = f"{len(over):,} rounds", "first ", "their outcomes are"
        example = f"{first}{history.rounds[over[0]]}, with {sizes[over[0]]}"
        yield f"{rounds} chose more than {budget}, the most to choose now ({example}); {outcomes} used all the same"


def overlooked(history: History) -> Iterator[str]:
    """Rounds without outcomes before rounds with outcomes: somebody may have forgotten to fill them in."""
    known = np.flatnonzero(history.arrived)
    late = np.flatnonzero(~history.arrived[: known[-1]]) if len(known) else known
    if len(late):
        yield f"pending although later rounds have outcomes: {join_rounds([history.rounds[t] for t in late])}"
