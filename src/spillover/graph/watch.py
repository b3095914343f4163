"""Noticing that the graph changed, by residuals of y on z."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import kernels
from spillover.graph.regression import Regression, floor_of, size_of
from spillover.state import in_turn
from spillover.types import Array, Batch, BoolArray, IntArray

# Arrivals between false alarms, at least, on average.
QUIET = 1e6


class Watch(NamedTuple):
    """Evidence of a change since the last one."""

    suspicion: Array  # (*batch, n): of each arm's outcome, that its residuals have grown
    risen: Array  # (*batch, n, n): of each arm's effect on each outcome, that it has grown
    fallen: Array  # (*batch, n, n): or shrunk
    alarms: IntArray  # (*batch,): how many changes were noticed
    since: IntArray  # (*batch,): the round of play whose outcome gave the last one away; 0 before the first


def no_alarms(n_arms: int, batch: Batch) -> Watch:
    square = (*batch, n_arms, n_arms)
    never = np.zeros(batch, np.int64)
    return Watch(np.zeros((*batch, n_arms)), np.zeros(square), np.zeros(square), never, never.copy())


class Heard(NamedTuple):
    """What arrivals said: the leading axes are those of the arrivals."""

    alarm: BoolArray  # whether one gave a change away; it is not learned from then
    certainty: Array  # how much of it the past could have predicted; 0 for what was not learned from


def learn_watched(watch: Watch, known: Regression, z: Array, y: Array, weight: Array) -> Heard:
    """Test an arrival, and learn from it unless it gives a change away; rewrites what it is given.

    A residual is tested against the noise learned so far, or if there is none against rounding: then the first outcome
    that the graph cannot explain is an alarm.
    """
    state = rewritten(watch, known)
    return Heard(*kernels.watched_regress(*state, z, y, floor_of(known), size_of(known), QUIET, weight))


def learn_watched_rounds(watch: Watch, known: Regression, z: Array, y: Array, weight: Array) -> Heard:
    """Many rounds of one learner, the first axis, in their order: all up to the first that gives a change away."""
    state = (in_turn(leaf, len(z)) for leaf in rewritten(watch, known))
    return Heard(*kernels.watched_regress(*state, z, y, floor_of(known), size_of(known), QUIET, weight))


def rewritten(watch: Watch, known: Regression) -> tuple[NDArray[Any], ...]:
    """What the kernel rewrites; among it who has an alarm, so far nobody."""
    halted = np.zeros((*known.freedom.shape, 1), np.bool_)
    learned = (known.root, known.effects, known.scatter, known.freedom[..., None], halted)
    return *learned, watch.suspicion, watch.risen, watch.fallen


def of_this_graph(watch: Watch, weight: Array | BoolArray, moment: IntArray) -> Array:
    """The weights of arrivals, 0 for what was played before the round that gave the last change away.

    It may stem from the graph before: when it comes in late it is left out, and so raises no alarm either.
    """
    return np.multiply(weight, moment >= watch.since, dtype=float)


def note_alarm(watch: Watch, alarm: BoolArray, moment: IntArray) -> Watch:
    """Count a change and look out for the next; rewrites what it is given."""
    for sign in (watch.suspicion, watch.risen, watch.fallen):
        sign[alarm] = 0.0
    return watch._replace(alarms=np.asarray(watch.alarms + alarm), since=np.where(alarm, moment, watch.since))
