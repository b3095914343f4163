"""Whether the data can tell yet which arms are best."""

from collections.abc import Iterator

import numpy as np

from spillover.assessment import Assessment
from spillover.assessment.finding import count_of, join_names
from spillover.reasons import ArmReason, Reasons
from spillover.types import Array, BoolArray

SURE = 0.9  # probability from which on the best arms count as better than the others
MIXED_UP = {"choices-follow-season": "a season", "switched-once": "a trend"}
IN_AN_INTERVAL = 2 * 1.959964  # standard deviations in a 95% interval


def unclear(
    reasons: Reasons,
    best: BoolArray,
    assessment: Assessment,
    sees_rewards: bool,
    possible: BoolArray | None = None,
) -> Iterator[str]:
    """Why the data cannot tell yet; nothing if they can.

    best: the arms that are chosen by what is known alone. sees_rewards: whether each arm's own reward (z) is in the
    table; then arms can be told apart however they were chosen. possible: the arms that constraints allow; None: all.
    """
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
        yield from mixed_up(reasons, best, assessment)
    if idle := [arm.arm for arm in reasons.arms if best[arm.position] and may_do_nothing(arm)]:
        yield f"the interval of the total effect of {join_names(idle)} includes 0"
    rivals = ~best if possible is None else ~best & possible
    sure = probability_of_better(reasons, best, rivals)
    if sure < SURE:
        several = int(best.sum()) > 1
        arms, are = (count_of(int(best.sum()), "arm"), "are") if several else ("arm", "is")
        others = "the others" if rivals.any() else "choosing nothing"
        yield f"the best {arms} by what is known alone {are} better than {others} with a probability of only {sure:.2f}"


def may_do_nothing(arm: ArmReason) -> bool:
    """Whether the credible interval of an arm's total effect includes 0."""
    return arm.total_interval is not None and arm.total_interval[0] <= 0.0 <= arm.total_interval[1]


def mixed_up(reasons: Reasons, best: BoolArray, assessment: Assessment) -> Iterator[str]:
    """Arms among the best whose effect cannot be told from a season or a trend."""
    good = {name for name, here in zip(reasons.names, best.tolist(), strict=True) if here}
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


def probability_of_better(reasons: Reasons, best: BoolArray, rivals: BoolArray | None = None) -> float:
    """How probably the average arm among the best has a larger total effect than the average of the others.

    By the credible intervals of the total effects, taken as independent; 1 where the policy has none. Where there are
    no others, the best are compared with choosing nothing. rivals: the others; None: all that are not among the best.
    """
    from scipy.special import ndtr  # imported here, because simulations do not need SciPy

    intervals = [arm.total_interval for arm in reasons.arms]
    have = np.array([interval is not None and arm.known for interval, arm in zip(intervals, reasons.arms, strict=True)])
    inside, outside = best & have, (~best if rivals is None else rivals) & have
    if not inside.any():
        return 1.0
    total = np.array([arm.total for arm in reasons.arms])
    width = np.array([0.0 if interval is None else interval[1] - interval[0] for interval in intervals])
    variance = (width / IN_AN_INTERVAL) ** 2
    gain, spread = average(total, variance, inside)
    if outside.any():
        other, more = average(total, variance, outside)
        gain, spread = gain - other, spread + more
    return float(ndtr(gain / np.sqrt(spread))) if spread > 0 else float(gain > 0)


def average(total: Array, variance: Array, some: BoolArray) -> tuple[float, float]:
    """The average of some effects, and its variance."""
    return float(total[some].mean()), float(variance[some].sum() / some.sum() ** 2)
