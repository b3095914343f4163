"""Arms that the design cannot tell apart: never or always chosen, chosen together, or instead of each other."""

from typing import NamedTuple

import numpy as np

from spillover.assessment.data import Data
from spillover.assessment.reduced_form import IDENTIFIED, ReducedForm
from spillover.types import BoolArray


class Groups(NamedTuple):
    """Positions of arms, in the rounds with outcomes.

    >>> from spillover.assessment import assess
    >>> assess([[1, 1], [0, 0]] * 5, [[3, 2], [1, 1]] * 5, arms=["web", "shop"]).groups.together
    ((0, 1),)
    """

    never: tuple[int, ...]
    always: tuple[int, ...]  # in the same amount
    together: tuple[tuple[int, ...], ...]  # always chosen together: only the sum of their effects is known
    opposite: tuple[tuple[int, int], ...]  # one or the other in every round: only the difference is known
    budget: int | None  # how many arms were chosen, if it was the same number in every round and some arms varied
    dependent: tuple[int, ...]  # other arms whose choices follow from those of others, or from the context


def groups_of(data: Data, reduced: ReducedForm) -> Groups:
    """The groups; what is left of the singular part of the design is `dependent`."""
    x = data.x[data.known]
    times = x.sum(axis=0)
    varying = (times > 0) & (times < len(x))
    together, opposite = same_columns(x, varying)
    sizes = x.sum(axis=1)
    constant = int(sizes[0]) if varying.any() and len(sizes) and (sizes == sizes[0]).all() else None
    explained = ~varying
    for group in (*together, *opposite):
        explained[list(group)] = True
    lost = np.diagonal(reduced.projector) < 1.0 - IDENTIFIED
    dependent = lost & ~explained if constant is None else np.zeros_like(lost)
    return Groups(
        never=positions(times == 0),
        always=positions((times == len(x)) & (np.ptp(data.amounts[data.known], axis=0) == 0)) if len(x) else (),
        together=together,
        opposite=opposite if constant is None or len(data.arms) > 2 else (),
        budget=constant,
        dependent=positions(dependent) if reduced.rounds > len(data.arms) + 1 + data.context.shape[1] else (),
    )


def positions(mask: BoolArray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())


def same_columns(x: BoolArray, varying: BoolArray) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, int], ...]]:
    """Groups of equal columns, and pairs of columns of which exactly one is true in each row."""
    places: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(varying).tolist():
        places.setdefault(x[:, j].tobytes(), []).append(j)
    together = tuple(tuple(group) for group in places.values() if len(group) > 1)
    opposite = []
    for group in places.values():
        other = places.get((~x[:, group[0]]).tobytes())
        if other and group[0] < other[0]:
            opposite.append((group[0], other[0]))
    return together, tuple(opposite)
