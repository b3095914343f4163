"""Constraints on the set of arms, besides the budget.

>>> from spillover.constraints import Costs, Exclusive, Requires
>>> Costs([4, 2, 2], limit=5), Exclusive([0, 1]), Requires(2, needs=[1])
(Costs((4.0, 2.0, 2.0), limit=5.0), Exclusive((0, 1)), Requires(2, needs=(1,)))
"""

from spillover.constraints.kinds import (
    BUDGET,
    KINDS,
    Constraint,
    Costs,
    Exclusive,
    Group,
    Include,
    Requires,
    Rows,
    Together,
    Unavailable,
    check_constraints,
    compile_rows,
    finder,
    parse,
    to_entries,
)
from spillover.constraints.search import Infeasible, best_answer, best_set, top_arms

__all__ = [
    "BUDGET",
    "KINDS",
    "Constraint",
    "Costs",
    "Exclusive",
    "Group",
    "Include",
    "Infeasible",
    "Requires",
    "Rows",
    "Together",
    "Unavailable",
    "best_answer",
    "best_set",
    "check_constraints",
    "compile_rows",
    "finder",
    "parse",
    "to_entries",
    "top_arms",
]
