"""The recommendation, and its answer on each arm; printable, and as plain values."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover.assessment import Assessment, Finding
from spillover.assessment.findings import FINE
from spillover.constraints import Constraint, Costs
from spillover.formatting import Interval, Shown
from spillover.history import History
from spillover.reasons import ArmReason, Reasons
from spillover.reasons.health import join_names, join_rounds
from spillover.recommendation.clarity import Trial
from spillover.registry import needed_for
from spillover.validate import quoted

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
        return {name: plain(value) for name, value in asdict(self).items()}


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def arm_answers(
    reasons: Reasons, assessment: Assessment, known_best: set[str], sign: float, per_arm: bool
) -> tuple[ArmAnswer, ...]:
    """The arms in the order of `Reasons.ranked`.

    sign: -1 where outcomes are minimised; the assessment has the sign of the table. per_arm: whether each arm has an
    outcome of its own.
    """
    return tuple(arm_answer(arm, assessment, arm.arm in known_best, sign, per_arm) for arm in reasons.ranked())


def arm_answer(arm: ArmReason, assessment: Assessment, best: bool, sign: float, per_arm: bool) -> ArmAnswer:
    """One arm's answer."""
    averages, reduced, j = assessment.averages[arm.position], assessment.reduced, arm.position
    own, rest = averages.own if per_arm else averages.total, averages.rest
    effect, error = (reduced.own, reduced.own_error) if per_arm else (reduced.total, reduced.total_error)
    known = np.nan if not arm.known else 1.0
    return ArmAnswer(
        arm=arm.arm,
        chosen=arm.chosen,
        by_knowledge=best,
        times_chosen=averages.times,
        outcome_when_chosen=own.chosen,
        outcome_when_not=own.others,
        difference=own.difference,
        difference_error=own.error,
        others_when_chosen=rest.chosen,
        others_when_not=rest.others,
        others_difference=rest.difference,
        others_difference_error=rest.error,
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
        least_squares_effect=float(effect[j]),
        least_squares_effect_error=float(error[j]),
        least_squares_spill_over=float(reduced.spill[j]),
        least_squares_spill_over_error=float(reduced.spill_error[j]),
        least_squares_total=float(reduced.total[j]),
        least_squares_total_error=float(reduced.total_error[j]),
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
