"""Constraints in the words of an answer."""

from collections.abc import Sequence

from spillover.constraints import Constraint, Costs
from spillover.reasons.health import join_names
from spillover.validate import quoted


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
