"""The best feasible set by looking at all of them, with every constraint checked in its own words."""

from itertools import product

import numpy as np

from spillover.constraints import Costs, Exclusive, Group, Include, Requires, Together, Unavailable


def keeps(constraint, chosen: set) -> bool:
    """Whether a set of positions keeps a constraint."""
    match constraint:
        case Costs():
            costs = dict(constraint.costs) if constraint.by_arm else dict(enumerate(constraint.costs))
            return sum(costs.get(arm, 0.0) for arm in chosen) <= constraint.limit * (1 + 1e-9)
        case Group():
            size = len(chosen & set(constraint.arms))
            return constraint.at_least <= size and (constraint.at_most is None or size <= constraint.at_most)
        case Exclusive():
            return len(chosen & set(constraint.arms)) <= 1
        case Together():
            return len(chosen & set(constraint.arms)) in (0, len(constraint.arms))
        case Include():
            return set(constraint.arms) <= chosen
        case Unavailable():
            return not set(constraint.arms) & chosen
        case Requires():
            found = [need in chosen for need in constraint.needs]
            return constraint.arm not in chosen or (all(found) if constraint.enough == "all" else any(found))
    raise AssertionError(constraint)


def feasible_sets(constraints, n, budget) -> list[np.ndarray]:
    found = []
    for bits in product((False, True), repeat=n):
        chosen = {arm for arm, bit in enumerate(bits) if bit}
        if len(chosen) <= budget and all(keeps(constraint, chosen) for constraint in constraints):
            found.append(np.array(bits))
    return found


def worth(scores, x) -> tuple[int, int, float]:
    """What sets are compared by: few arms of -inf, many of +inf, then the total."""
    finite = np.isfinite(scores)
    return (-int((x & (scores == -np.inf)).sum()), int((x & (scores == np.inf)).sum()), float(scores[x & finite].sum()))
