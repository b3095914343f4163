"""Verdicts on the runs of the study: on single ones, and over all of them."""

import numpy as np

from spillover.metrics import Interval
from spillover.report.claims import FAILS, HOLDS, OPEN, Variant, sign_verdict
from spillover.types import Array, BoolArray
from spillover_studies.covid import clustered_interval

CONDITIONS = ("in most single runs", "over all runs")  # of the two verdicts: the paper shows one run, not known which


def in_most_runs(true: BoolArray) -> str:
    """The verdict on single runs, such as the paper's, of a statement that is true in some of them."""
    return HOLDS if float(np.mean(true)) > 0.5 else FAILS


def signed(conditions: str, finding: str, values: Array) -> Variant:
    """A variant that holds if values are above 0, (shifts, seeds)."""
    return Variant(conditions, finding, sign_verdict(clustered_interval(values)), in_most_runs(values > 0))


def level_verdict(interval: Interval, level: float) -> str:
    """Holds if the interval is above a level, fails if it is below; a value without an interval is not decided."""
    if float(interval.low) > level:
        return HOLDS
    return FAILS if float(interval.high) < level else OPEN


def half_verdict(part: Array, whole: Array) -> str:
    """Holds if a part is more than half of the whole, fails if it is less."""
    return sign_verdict(clustered_interval(part - whole / 2))
