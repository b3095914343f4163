"""Detection of changes of the graph from the residuals of y on z."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import kernels
from spillover.graph.regression import Regression, floor_of, size_of
from spillover.state import repeat_in_place
from spillover.types import Array, Batch, BoolArray, Finite, IntArray, Round

# Lower bound on the mean number of arrivals between false alarms.
QUIET = 1e6


class ChangeEvidence(NamedTuple):
    """Evidence of a change since the last one."""

    suspicion: Finite  # (*batch, n): that the residuals of each arm's outcome have grown
    risen: Finite  # (*batch, n, n): that the effect of each arm on each outcome has grown
    fallen: Finite  # (*batch, n, n): or shrunk
    alarms: Round  # (*batch,): how many changes were detected
    since: Round  # (*batch,): the round of play whose outcome revealed the last one; 0 before the first


def empty_change_evidence(n_arms: int, batch: Batch) -> ChangeEvidence:
    square = (*batch, n_arms, n_arms)
    never = np.zeros(batch, np.int64)
    return ChangeEvidence(np.zeros((*batch, n_arms)), np.zeros(square), np.zeros(square), never, never.copy())


class Tested(NamedTuple):
    """The result of testing arrivals; the leading axes are those of the arrivals."""

    alarm: BoolArray  # whether an arrival revealed a change; it is then not learned from
    certainty: Array  # how much of an arrival the past could have predicted; 0 if it was not learned from


def learn_tested(changes: ChangeEvidence, known: Regression, z: Array, y: Array, weight: Array) -> Tested:
    """Test an arrival, and learn from it unless it reveals a change; rewrites its arguments.

    A residual is compared with the noise learned so far. Without noise it is compared with the rounding error, so that
    the first outcome that the graph cannot explain raises an alarm.
    """
    state = kernel_arguments(changes, known)
    return Tested(*kernels.tested_regress(*state, z, y, floor_of(known), size_of(known), QUIET, weight))


def learn_tested_rounds(changes: ChangeEvidence, known: Regression, z: Array, y: Array, weight: Array) -> Tested:
    """The same for many rounds of one history, along the first axis, up to the first that reveals a change."""
    state = (repeat_in_place(leaf, len(z)) for leaf in kernel_arguments(changes, known))
    return Tested(*kernels.tested_regress(*state, z, y, floor_of(known), size_of(known), QUIET, weight))


def kernel_arguments(changes: ChangeEvidence, known: Regression) -> tuple[NDArray[Any], ...]:
    """The arrays that the kernel rewrites, among them a flag for an alarm, initially False."""
    halted = np.zeros((*known.freedom.shape, 1), np.bool_)
    learned = (known.root, known.effects, known.scatter, known.freedom[..., None], halted)
    return *learned, changes.suspicion, changes.risen, changes.fallen


def weight_since_change(changes: ChangeEvidence, weight: Array | BoolArray, played_at: IntArray) -> Array:
    """The weights of arrivals, 0 for rounds played before the one that revealed the last change.

    Such a late outcome may come from the graph before the change, so it is ignored and raises no alarm.
    """
    return np.multiply(weight, played_at >= changes.since, dtype=float)


def record_alarm(changes: ChangeEvidence, alarm: BoolArray, played_at: IntArray) -> ChangeEvidence:
    """Count a change and reset the evidence; rewrites its arguments."""
    for sign in (changes.suspicion, changes.risen, changes.fallen):
        sign[alarm] = 0.0
    since = np.where(alarm, played_at, changes.since)
    return changes._replace(alarms=np.asarray(changes.alarms + alarm), since=since)
