"""From scores to the best set of arms, within a budget and under constraints."""

from spillover.set_search.exact import EFFORT, MOST_EFFORT, Answer, maximise
from spillover.set_search.search import (
    Infeasible,
    best_answer,
    best_set,
    check_effort,
    check_feasible,
    conflicting,
    searched_set,
    top_arms,
)

__all__ = [
    "EFFORT",
    "MOST_EFFORT",
    "Answer",
    "Infeasible",
    "best_answer",
    "best_set",
    "check_effort",
    "check_feasible",
    "conflicting",
    "maximise",
    "searched_set",
    "top_arms",
]
