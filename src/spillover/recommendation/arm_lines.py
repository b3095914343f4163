"""One line of reasons for an arm."""

import numpy as np

from spillover.reasons import ArmReason, Reasons
from spillover.reasons.paths import has_effects, reached
from spillover.reasons.render import format_number, format_part, is_visible
from spillover.recommendation.arms import ArmAnswer
from spillover.recommendation.result import Recommendation
from spillover.types import Array
from spillover.validate import quoted

MOSTLY = 0.5  # share of the spill-over from which on one arm gets most of it
EXACTLY = 1e-3  # of the width of the interval of a part
MATERIAL = 0.05  # share of the total effect from which on possible spill-over is mentioned
SMALL = 0.01  # share of the spill-over that is not worth a word


def arm_sentence(answer: Recommendation, arm: ArmReason) -> str:
    """Why this arm, in one line."""
    reasons = answer.reasons
    if reasons.planned:
        return f"{reasons.plan}{'' if arm.known else '; no outcome of it yet'}"
    if not arm.known:
        return why_without_data(answer, arm)
    score = answer.sign * arm.score
    parts = [f"{format_part(answer.sign * arm.direct, score)} {'by itself' if answer.per_arm else 'expected'}"]
    if is_visible(arm.spilled_over, arm.score):
        parts.append(f"{format_part(answer.sign * arm.spilled_over, score)} spill-over{main_target(reasons, arm)}")
    if is_visible(arm.exploration, arm.score):
        parts.append(f"{format_part(answer.sign * arm.exploration, score)} exploration bonus")
    return f"{format_number(score)}: {', '.join(parts)}"


def cancels(arm: ArmAnswer) -> bool:
    """Whether the parts of an effect cancel exactly, as in outcomes that add up to the same number."""
    if arm.total_interval is None or arm.effect_interval is None:
        return False
    total, own = (interval[1] - interval[0] for interval in (arm.total_interval, arm.effect_interval))
    return total < EXACTLY * own


def worth_a_word(arm: ArmAnswer) -> bool:
    """Whether there may be spill-over: an interval around 0 that is small next to the total effect says no."""
    assert arm.spill_over_interval is not None
    low, high = arm.spill_over_interval
    return low * high > 0 or max(-low, high) > MATERIAL * abs(arm.total)


def why_without_data(answer: Recommendation, arm: ArmReason) -> str:
    """Why an arm is chosen that the policy has no data on."""
    history = answer.history
    if not history.observed[arm.position]:
        return "tried, but no outcome has arrived yet" if history.x[:, arm.position].any() else "not tried yet"
    codes = {signal.code for signal in answer.reasons.health if arm.arm in signal.arms}
    if "arms-forgotten" in codes:
        return "the policy has forgotten its outcomes"
    return "in a set that has not been tried yet" if "arms-unknown" in codes else "drawn at random"


def main_target(reasons: Reasons, arm: ArmReason) -> str:
    """Which arm gets most of the spill-over along all paths, where the graph is known."""
    if not has_effects(reasons.adjacency):
        return ""
    gets = reached_by(reasons, arm)
    total = float(np.abs(gets).sum()) + abs(arm.ways.unknown)
    others = np.where(np.arange(len(gets)) == arm.position, 0.0, gets * np.sign(arm.spilled_over))
    most = int(np.argmax(others))
    if others[most] <= 0:
        return ""
    target, share = quoted(reasons.names[most]), others[most] / total
    if share > 1 - SMALL:
        return f" to {target}"
    return f", mostly to {target}" if share >= MOSTLY else f" to {target} and others"


def reached_by(reasons: Reasons, arm: ArmReason) -> Array:
    """What every arm gets from this one along all paths; for the arm itself, only what comes back to it."""
    direct = np.zeros(len(reasons.arms))
    direct[arm.position] = arm.direct
    return reached(reasons.adjacency, direct) - direct
