"""When z is not to be trusted: a baseline, a hidden common cause, noise in the equations."""

from typing import NamedTuple

import numpy as np

from spillover.graph.evidence import Evidence, empty_evidence
from spillover.types import Batch, BoolArray, Constant, Problem

NOISY = 10.0  # an equation has noise if its residuals exceed the least variance so many times


class Doubts(NamedTuple):
    """What speaks against the candidates that trust z."""

    declared: Constant[BoolArray]  # (*batch,): the problem says that there is a baseline
    baseline: BoolArray  # (*batch,): declared, or outcomes are not 0 where z is
    confounded: BoolArray  # (*batch,): a hidden common cause of z and y was detected
    noisy: BoolArray  # (*batch,): the equations have noise, which the candidates that trust z may not cope with
    given_x: (
        Evidence  # of payoffs predicted from what was expected of z: by k-class, and by the candidate that z favours
    )


def empty_doubts(problem: Problem, batch: Batch) -> Doubts:
    declared, never = np.full(batch, bool(problem.baseline)), np.zeros(batch, np.bool_)
    return Doubts(declared, declared.copy(), never, never.copy(), empty_evidence(2, batch))


def z_misleads(doubts: Doubts) -> BoolArray:
    """Whether only the k-class estimate is right, (*batch,)."""
    return np.asarray(doubts.baseline | doubts.confounded)
