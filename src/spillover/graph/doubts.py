"""When z is not to be trusted: a baseline, a hidden common cause, noise in the equations."""

from typing import NamedTuple

import numpy as np

from spillover.graph.evidence import Evidence, best_candidate, empty_evidence, judge_given_x
from spillover.graph.k_class import ALARM, SUSPICION, KClassState
from spillover.graph.regression import Regression, floor_of
from spillover.types import Array, Batch, BoolArray, Constant, Problem

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


def raise_doubts(doubts: Doubts, k_class: KClassState) -> Doubts:
    """Doubts about z itself, which stay once they are raised."""
    return doubts._replace(
        baseline=doubts.baseline | (k_class.constant > ALARM),
        confounded=doubts.confounded | (k_class.confounded > ALARM),
    )


def note_noise(doubts: Doubts, k_class: KClassState, known: Regression, gain: Array) -> Doubts:
    """Whether the equations have noise, from the residuals of y on z, and k-class may be the better estimate.

    That is where a hidden cause is suspected, and, if the order is not known, where all direct effects seem to be 1, as
    k-class takes them to be. With a known order and no hidden cause the others cope with noise.
    """
    suitable = (k_class.confounded > SUSPICION) | (~k_class.ordered & (gain == 1.0).all(axis=-1))
    if not suitable.any():
        return doubts._replace(noisy=np.asarray(suitable))
    variance = np.diagonal(known.scatter, axis1=-2, axis2=-1).max(axis=-1) / np.maximum(known.freedom, 1.0)
    return doubts._replace(noisy=np.asarray((variance > NOISY * floor_of(known)) & suitable))


def compare_given_x(
    doubts: Doubts, k_class: Array, usual: Array, expected: Array, y: Array, arrived: BoolArray
) -> Doubts:
    """Compare a payoff with what two sets of weights predict of it from the decision alone.

    A confounded graph predicts the payoff well from z, which is confounded too, but not from the decision.
    """
    return doubts._replace(given_x=judge_given_x(doubts.given_x, k_class, usual, expected, y, arrived))


def prefers_k_class(doubts: Doubts) -> BoolArray:
    """Whether the k-class estimate is used: where z misleads, or with noise unless z's favourite is clearly better."""
    misled = z_misleads(doubts)
    if not doubts.noisy.any():
        return misled
    return np.asarray(misled | (doubts.noisy & (best_candidate(doubts.given_x) == 0)))


def forget_doubts(doubts: Doubts, rows: BoolArray) -> Doubts:
    """The evidence of predictions starts from scratch after a change of the graph."""
    left = [np.where(rows[(..., *[None] * (part.ndim - rows.ndim))], 0.0, part) for part in doubts.given_x]
    return doubts._replace(given_x=Evidence(*left))
