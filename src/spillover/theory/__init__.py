"""Theorem 1, the regret bound of NDC-SEM: its terms, the constants of a world, and Lemma 1 on recorded runs.

`docs/theory.md` goes through the proof: its assumptions, which steps hold, and how informative the bound is.
"""

from spillover.theory.bound import (
    Gaps,
    RegretBound,
    WorldConstants,
    decision_gaps,
    forgetting_time,
    largest_delay,
    longest_path,
    regret_bound,
    settled_rounds,
    world_constants,
)
from spillover.theory.lemma import (
    LemmaSides,
    RunRecord,
    charged_arms,
    counter_lemma,
    observed_counts,
    realised_delays,
    record_run,
)

__all__ = [
    "Gaps",
    "LemmaSides",
    "RegretBound",
    "RunRecord",
    "WorldConstants",
    "charged_arms",
    "counter_lemma",
    "decision_gaps",
    "forgetting_time",
    "largest_delay",
    "longest_path",
    "observed_counts",
    "realised_delays",
    "record_run",
    "regret_bound",
    "settled_rounds",
    "world_constants",
]
