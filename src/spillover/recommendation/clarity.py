"""Tell whether the data can tell yet which arms are best, and what it costs, and may bring, to try another one."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover.assessment import Assessment
from spillover.constraints import Constraint
from spillover.constraints.search import best_set
from spillover.formatting import count_of, join_names
from spillover.reasons import Reasons
from spillover.regression import Effects
from spillover.types import Array, BoolArray, Explanation

MOST_LOST = 0.25  # of what the best arms would bring: a choice that loses more is wrong
DOUBT = 0.03  # probability of a wrong choice up to which the answer is clear: below 1 in 20, as models are never right
LATE_DOUBT = 0.01  # where choices have effects in later rounds: for how many is only about right
USUAL_CHANGES = 1.5  # in a table in which one was found
UNSEEN = 6  # rounds after which a change of the effects can be seen at the earliest
DRAWS = 400  # of the effects
FEW_DRAWS = 60  # under constraints, where a search is needed for each
FEW_STEPS = 1_000  # of such a search
TINY = 1e-9  # a score above 0, so that as many arms are chosen as may be
MIXED_UP = {"choices-follow-season": "a season", "switched-once": "a trend"}
IN_AN_INTERVAL = 2 * 1.959964  # standard deviations in a 95% interval


def unclear(
    reasons: Reasons,
    alone: Explanation,
    assessment: Assessment,
    *,
    sees_rewards: bool,
    relative: bool = False,
    limits: Sequence[Constraint] = (),
) -> Iterator[str]:
    """Why the data cannot tell yet; nothing if they can.

    alone: the decision by what is known alone. sees_rewards: whether each arm's own reward (z) is in the table; then
    arms can be told apart however they were chosen. relative: whether effects are differences from
    the average arm. limits: on the decision.
    """
    best = np.asarray(alone.chosen)
    good = {name for name, here in zip(reasons.names, best.tolist(), strict=True) if here}
    known = np.array([arm.known for arm in reasons.arms])
    if not known.any():  # nothing has arrived, or the policy learns nothing
        if not any(arm.times_known for arm in assessment.averages):
            yield "no arm has an outcome yet"
        return
    constant = assessment.find("constant-outcomes")
    if constant is not None and constant.warning:
        yield "all outcomes are the same"
    if assessment.find("constant-sum"):
        yield "the outcomes of every round add up to the same number"
        return
    if not sees_rewards:
        yield from design_problems(reasons, best, assessment)
        yield from mixed_up(good, assessment)
        pairs = [one for one in assessment.findings if one.code in {"pair", "pair-together"}]
        if any(one.code == "pair-together" or set(one.arms) & good for one in pairs):
            yield "effects of some pairs of arms do not add up"
        if assessment.find("changes") and DOUBT * assessment.known < UNSEEN * USUAL_CHANGES:
            yield f"effects have changed, and a change in the last {UNSEEN} rounds could not be seen yet"
    doubt = LATE_DOUBT if assessment.find("later-effects") else DOUBT
    if (wrong := probability_of_wrong(reasons, alone, relative, limits)) > doubt:
        yield f"with a probability of {wrong:.2f}, another choice would bring at least a third more"


def mixed_up(good: set[str], assessment: Assessment) -> Iterator[str]:
    """Arms among the best whose effect cannot be told from a season or a trend."""
    for code, what in MIXED_UP.items():
        arms = [arm for finding in assessment.findings if finding.code == code for arm in finding.arms if arm in good]
        if arms:
            yield f"the effect of {join_names(arms)} cannot be told from {what}"


def design_problems(reasons: Reasons, best: BoolArray, assessment: Assessment) -> Iterator[str]:
    """Too few rounds, or arms among the best that cannot be told from others."""
    if assessment.known <= assessment.unknowns:
        yield f"{count_of(assessment.known, 'round')} with outcomes for {count_of(assessment.unknowns, 'unknown')}"
        return
    groups = assessment.groups
    for group in groups.together:
        inside = best[list(group)]
        if inside.any() and not inside.all():
            names = join_names([reasons.names[j] for j in group])
            yield f"{names} were always chosen together, so which of them works is not known"
    always = [reasons.names[j] for j in groups.always if best[j]]
    if always:
        yield f"{join_names(always)} {'was' if len(always) == 1 else 'were'} chosen in every round"


def probability_of_wrong(
    reasons: Reasons, alone: Explanation, relative: bool = False, limits: Sequence[Constraint] = ()
) -> float:
    """How probably the decision loses more than a quarter of what the best one would bring.

    By draws of the effects of all arms with data; 0 where the policy has no intervals. relative: whether effects are
    differences from the average arm.
    """
    have = np.array([arm.known and arm.total_interval is not None for arm in reasons.arms])
    if not have.any():
        return 0.0
    chosen = np.asarray(alone.chosen) & have
    total = np.array([arm.total if here else 0.0 for arm, here in zip(reasons.arms, have.tolist(), strict=True)])
    intervals = [arm.total_interval or (0.0, 0.0) for arm in reasons.arms]
    scale = max(float(np.abs(total).max()), float(np.ptp(intervals, axis=1).max()), np.finfo(float).tiny)
    draws = np.random.default_rng(0).standard_normal((FEW_DRAWS if limits else DRAWS, len(total)))
    effects = total / scale + draws @ root_of(reasons, alone, have, scale)
    least = effects.min(axis=1, keepdims=True) - TINY if relative else 0.0
    scores = np.where(have, effects - least, -1.0)
    best = best_set(scores, reasons.budget, limits, arms=reasons.names, effort=FEW_STEPS)
    most = np.where(best & have, effects, 0.0).sum(axis=1)
    lost = most - effects[:, chosen].sum(axis=1)
    return float((lost > MOST_LOST * np.maximum(most, 0.0)).mean())


def root_of(reasons: Reasons, alone: Explanation, have: BoolArray, scale: float) -> Array:
    """A square root of the effects' covariance, in units of `scale`; without one, they are taken to be independent.

    It is as wide as the intervals, which are those of a t distribution.
    """
    intervals = [arm.total_interval if here else None for arm, here in zip(reasons.arms, have.tolist(), strict=True)]
    deviation = np.array([0.0 if one is None else (one[1] - one[0]) / IN_AN_INTERVAL / scale for one in intervals])
    if alone.total_covariance is None:
        return np.diag(deviation)
    inside = np.where(np.outer(have, have), alone.total_covariance, 0.0) / scale / scale
    values, vectors = np.linalg.eigh(inside)
    size = float(np.trace(inside))
    wider = np.sqrt(float(deviation @ deviation) / size) if size > 0 else 1.0
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T * wider)


HORIZON = 20  # rounds in which what was learned pays off, the trial included
LENGTHS = (1, 2, 4, 8)  # rounds that a trial may take
MATERIAL = 0.01  # of what the best set brings over the horizon: a trial that gains less is not worth a word


class Trial(NamedTuple):
    """A trial that is expected to pay; numbers are in the units of the outcomes."""

    arm: str
    instead_of: str | None  # None: beside the others
    rounds: int
    cost: float
    brings: float  # over the horizon
    horizon: int = HORIZON

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


def best_trial(
    score: Array, best: BoolArray, budget: int, effects: Effects, allowed: Callable[[BoolArray], bool]
) -> tuple[int, int, Trial] | None:
    """The swap of one arm that is expected to bring most beyond its cost; None if none pays.

    score: (n,), what each arm is expected to bring. best: the set to choose by that. effects: what the scores are from.
    Returns the positions of the arm and of the one that it replaces (-1: none), and the trial without names.
    """
    least = MATERIAL * HORIZON * abs(float(score[best].sum()))
    chosen = np.flatnonzero(best)
    outs = chosen[np.argsort(score[chosen], kind="stable")].tolist() if len(chosen) >= budget else [-1]
    found: tuple[float, int, int, Trial] | None = None
    for i in np.flatnonzero(~best).tolist():
        swaps = ((out, with_swap(best, i, out)) for out in outs)
        swap = next(((out, trial) for out, trial in swaps if allowed(trial)), None)
        if swap is None:
            continue
        out, trial = swap
        behind = max((float(score[out]) if out >= 0 else 0.0) - float(score[i]), 0.0)
        compared = np.zeros(len(best))
        compared[i] = 1.0
        if out >= 0:
            compared[out] = -1.0
        for rounds in LENGTHS:
            gain = value_of_learning(
                effects.covariance, compared, trial - effects.average, behind, effects.noise / rounds
            )
            brings, cost = (HORIZON - rounds) * gain, rounds * behind
            net = brings - cost
            if net > least and (found is None or net > found[0]):
                found = net, i, out, Trial("", None, rounds, cost, brings)
    return None if found is None else found[1:]


def with_swap(best: BoolArray, into: int, out: int) -> BoolArray:
    """A set with one arm instead of another (-1: beside the others)."""
    found = best.copy()
    if out >= 0:
        found[out] = False
    found[into] = True
    return found


def value_of_learning(covariance: Array, compared: Array, shown: Array, behind: float, noise: float) -> float:
    """The expected gain of one round from knowing better which of two arms is better.

    compared: (n,), 1 for the arm, -1 for the one it replaces. shown: (n,), by how much the trial differs from the
    average round: only that shows something, as the baseline is learned, too; of an arm that was always chosen nothing.
    behind: by how much the arm is expected to be worse. noise: variance of what the trial shows.
    """
    from scipy.special import ndtr  # imported here, because simulations do not need SciPy

    learned = covariance @ shown
    width = abs(float(compared @ learned)) / np.sqrt(max(float(shown @ learned) + noise, np.finfo(float).tiny))
    if width <= 0.0:
        return 0.0
    z = behind / width
    return float(width * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) - behind * ndtr(-z))
