"""The plain data of each arm as lines of text: how often it was chosen, and what came out with it and without it."""

from collections.abc import Sequence

import numpy as np

from spillover.assessment import Assessment
from spillover.formatting import decimals_for, round_to, short_number
from spillover.reasons.render import align_columns

SHOWN = 16  # arms
NOTHING = "-"
EXACT = 1e-9  # a standard error of this share of the number is rounding


def data_lines(assessment: Assessment, order: Sequence[int], *, per_arm: bool) -> list[str]:
    """One line for each arm, in the given order."""
    own = "its outcome with it" if per_arm else "outcome with it"
    titles = ["arm", "", "chosen", own, "without", "difference", "others' difference", "least squares"]
    rows = [titles, *(row_of(assessment, j, per_arm) for j in order[:SHOWN])]
    if not per_arm or len(assessment.arms) == 1:
        rows = [[*row[:6], row[7]] for row in rows]
    lines = ["Averages over all rounds; differences with 2 standard errors:", *align_columns(rows)]
    if len(order) > SHOWN:
        lines.append(f"... and {len(order) - SHOWN} more arms")
    meaning = "Least squares: the effect on all outcomes together, by a regression on all choices and the context"
    compared = ", compared with the average arm" if assessment.groups.budget is not None else ""
    return [line.rstrip() for line in [*lines, f"{meaning}{compared}."]]


def row_of(assessment: Assessment, j: int, per_arm: bool) -> list[str]:
    """The cells of one arm."""
    averages, reduced = assessment.averages[j], assessment.reduced
    own, rest = averages.own if per_arm else averages.total, averages.rest
    return [
        assessment.arms[j],
        "",
        f"{averages.times:,}",
        short_number(own.chosen),
        short_number(own.others),
        with_error(own.difference, own.error),
        with_error(rest.difference, rest.error),
        with_error(float(reduced.total[j]), float(reduced.total_error[j])),
    ]


def with_error(value: float, error: float) -> str:
    """A difference and two standard errors, rounded to what they support.

    >>> with_error(0.4687, 0.02), with_error(12.0, np.nan)
    ('0.47 ± 0.04', '12.0')
    """
    if not np.isfinite(value):
        return NOTHING
    if not np.isfinite(error) or error <= EXACT * abs(value) or value == 0:
        return short_number(value)
    decimals = decimals_for(2 * error)
    return f"{round_to(value, decimals)} ± {round_to(2 * error, decimals)}"
