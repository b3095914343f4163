"""What kernels that play many rounds are given of a stretch, and what becomes of what they return."""

from typing import Any

import numpy as np

from spillover import kernels
from spillover.graph import GraphLearner
from spillover.types import Array, Stretch

LAGS = np.empty(2048)  # as many powers of a discount are stored in a table


def course_for_kernels(stretch: Stretch) -> tuple[Any, ...]:
    """The arguments in the order of `kernels.outcomes.COURSE_SIGNATURE`."""
    late, flight = stretch.lateness, stretch.flight
    return *outcomes_for_kernels(stretch), *late.of_rounds, stretch.horizon, *flight.of_rounds


def outcomes_for_kernels(stretch: Stretch) -> tuple[Any, ...]:
    """The first of them: what makes the outcome of a decision."""
    course = stretch.course
    rounds, n = len(stretch.recorded), stretch.flight.x.shape[-1]
    added = course.noise.ndim > 1 or course.baseline.ndim > 1
    rewards, noise, baseline = (
        np.broadcast_to(part, (*part.shape[:-2], rounds, n)) for part in (course.rewards, course.noise, course.baseline)
    )
    return np.array([course.law, added]), course.concentration, course.total, rewards, noise, baseline


def kind_of_graph(learner: GraphLearner) -> int:
    """What kernels that play rounds on a graph have to solve."""
    if not learner.learns:
        return kernels.NO_GRAPH
    return kernels.SIGNED if learner.signed else kernels.UNSIGNED


def played_by(kernel: np.ufunc, *arguments: Any) -> tuple[Array, ...] | None:
    """What a kernel that plays rounds returns besides its faults; None if an outcome is not valid."""
    # compiled code divides before it knows whether it needs to
    with np.errstate(divide="ignore", invalid="ignore"):
        *found, faults = kernel(*arguments)
    return None if faults.any() else tuple(np.asarray(each) for each in found)
