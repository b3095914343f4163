"""The plain data of each arm next to what the policy makes of it."""

import numpy as np

from spillover.reasons.intervals import decimals_for, round_to, short_number
from spillover.reasons.render import align_columns
from spillover.recommendation.arms import ArmAnswer
from spillover.recommendation.result import Recommendation

SHOWN = 16  # arms
NOTHING = "-"


def data_lines(answer: Recommendation) -> list[str]:
    """How often each arm was chosen, and what came out with it and without it."""
    own, rest = ("its outcome", "all others'") if answer.per_arm else ("the outcome", "")
    titles = [
        "arm",
        "",
        "chosen",
        f"{own} with it",
        "without",
        "difference",
        f"{rest} difference",
        "least squares, in all",
    ]
    rows = [titles, *(row_of(arm) for arm in answer.arms[:SHOWN])]
    if not answer.per_arm:
        rows = [[*row[:6], row[7]] for row in rows]
    lines = ["Averages over all rounds, differences with 2 standard errors:", *align_columns(rows)]
    if len(answer.arms) > SHOWN:
        lines.append(f"... and {len(answer.arms) - SHOWN} more arms with lower scores")
    return [*lines, ""]


def row_of(arm: ArmAnswer) -> list[str]:
    """The cells of one arm."""
    return [
        arm.arm,
        "",
        f"{arm.times_chosen:,}",
        short_number(arm.outcome_when_chosen),
        short_number(arm.outcome_when_not),
        with_error(arm.difference, arm.difference_error),
        with_error(arm.others_difference, arm.others_difference_error),
        with_error(arm.least_squares_total, arm.least_squares_total_error),
    ]


def with_error(value: float, error: float) -> str:
    """A difference and two standard errors, rounded to what they support."""
    if not np.isfinite(value):
        return NOTHING
    if not np.isfinite(error) or error == 0:
        return short_number(value)
    decimals = decimals_for(2 * error)
    return f"{round_to(value, decimals)} ± {round_to(2 * error, decimals)}"
