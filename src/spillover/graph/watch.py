"""Noticing that the graph changed, by residuals of y on z."""

from typing import Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.graph.regression import Regression, floor_of, size_of
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


def notice(
    watch: Watch, known: Regression, z: Array, y: Array, arrived: Any, moment: IntArray
) -> tuple[Watch, BoolArray, BoolArray]:
    """Test an arrival before it is learned from; returns also who has an alarm, and whose arrival is of this graph.

    A residual is tested against the noise learned so far, or if there is none against rounding: then the first outcome
    that the graph cannot explain is an alarm. What was played before the round that gave a change away may stem from
    the graph before: when it comes in late it is left out, and so raises no alarm either.
    """
    current = np.asarray(arrived, np.bool_) & (moment >= watch.since)
    signs = (watch.suspicion, watch.risen, watch.fallen)
    size, floor = size_of(known), floor_of(known)
    alarm = kernels.notice_change(
        known.root, known.effects, known.scatter, *signs, known.freedom, z, y, floor, size, QUIET, current
    )
    if not alarm.any():
        return watch, alarm, current
    for sign in signs:
        sign[alarm] = 0.0
    noted = watch._replace(alarms=np.asarray(watch.alarms + alarm), since=np.where(alarm, moment, watch.since))
    return noted, alarm, current
