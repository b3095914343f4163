"""The chosen arms as a table: what each brings by itself, what it adds to others, and the exploration bonus."""

from collections.abc import Sequence

from spillover.formatting import Interval, decimals_for, format_estimate, printable, round_to
from spillover.reasons import ArmReason
from spillover.reasons.render import shown_interval
from spillover.recommendation.arm_lines import cancels, main_target, worth_a_word
from spillover.recommendation.arms import ArmAnswer
from spillover.recommendation.result import Recommendation

WIDTH = 80  # of a terminal
NOTHING = "-"
TITLES = ("", "effect", "by itself", "spill-over", "bonus")


def estimated(answer: Recommendation) -> list[ArmReason]:
    """The chosen arms whose effect has an interval."""
    planned = answer.reasons.planned
    return [arm for arm in answer.chosen if arm.known and arm.total_interval is not None and not planned]


def has_bonus(answer: Recommendation) -> bool:
    """Whether the table has exploration bonuses."""
    return any(cells(answer, arm)[-1] for arm in estimated(answer))


def arm_table(answer: Recommendation) -> list[str]:
    """A line for each arm whose effect has an interval, below a line of titles; columns without content are left out.

    Where most of the spill-over goes is said only if that is not too wide for a terminal.
    """
    arms = estimated(answer)
    if not arms:
        return []
    lines = aligned([TITLES, *(cells(answer, arm) for arm in arms)])
    if max(map(len, lines)) > WIDTH:
        lines = aligned([TITLES, *(cells(answer, arm, targets=False) for arm in arms)])
    return lines


def cells(answer: Recommendation, arm: ArmReason, *, targets: bool = True) -> tuple[str, ...]:
    """Name, effect with interval, its two parts, and the exploration bonus."""
    found = next(each for each in answer.arms if each.arm == arm.arm)
    assert found.total_interval is not None
    total = "0" if cancels(found) else format_estimate(found.total, found.total_interval)
    spilled = spill_over(answer, found)
    if spilled and targets and is_certain(found.spill_over_interval):
        spilled += main_target(answer.reasons, arm)
    return (arm.arm, total, by_itself(answer, found), spilled, bonus(answer, arm, found))


def by_itself(answer: Recommendation, found: ArmAnswer) -> str:
    """The effect on the arm's own outcome, where there is one for each arm."""
    return estimate(found.effect, found.effect_interval) if answer.per_arm else ""


def spill_over(answer: Recommendation, found: ArmAnswer) -> str:
    """The effect on the outcomes of other arms, where there may be one."""
    several = answer.per_arm and len(answer.reasons.arms) > 1
    if not several or found.spill_over_interval is None or not worth_a_word(found):
        return ""
    return estimate(found.spill_over, found.spill_over_interval)


def bonus(answer: Recommendation, arm: ArmReason, found: ArmAnswer) -> str:
    """The exploration bonus, with the digits that the interval of the effect supports."""
    text = estimate(answer.sign * arm.exploration, shown_interval(arm) or found.total_interval)
    return "" if float(text.replace(",", "")) == 0 else text


def estimate(value: float, interval: Interval | None) -> str:
    """A number with the digits that its interval supports."""
    return "" if interval is None else round_to(value, decimals_for((interval[1] - interval[0]) / 2))


def is_certain(interval: Interval | None) -> bool:
    """Whether the sign of an effect is known."""
    return interval is not None and interval[0] * interval[1] > 0


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns of equal width, without the columns that are empty below their titles."""
    used = [k for k in range(len(rows[0])) if any(row[k] for row in rows[1:])]
    titles, *others = [[printable(row[k]) for k in used] for row in rows]
    shown = [titles, *([cell or NOTHING for cell in row] for row in others)]
    widths = [max(len(row[k]) for row in shown) for k in range(len(used))]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]
