"""What the answer says of each arm: how often it was chosen, what came out, and what choosing it would do."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spillover.assessment import Assessment
from spillover.formatting import Interval
from spillover.reasons import ArmReason, Reasons


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
