"""The recommendation as it is printed: in a few lines, or in full."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from spillover.constraints.search import best_set
from spillover.formatting import count_of, decimals_for, join_lines, join_names, printable, round_to, short_number
from spillover.reasons import ArmReason
from spillover.reasons.health import join_rounds
from spillover.reasons.render import format_number, is_visible, reason_lines, shown_interval
from spillover.recommendation.arm_lines import arm_sentence
from spillover.recommendation.arm_table import arm_table, estimated, has_bonus
from spillover.recommendation.data_table import data_lines
from spillover.recommendation.result import Recommendation
from spillover.validate import quoted

LISTED_ARMS = 5  # in a line
LISTED_CONTEXT = 6
LISTED_WARNINGS = 5  # in the short answer
LISTED_NOTES = 4
TIE = 1e-9
LEAST_COST = 0.001  # of what a trial brings: what costs less is free


def short_text(answer: Recommendation) -> str:
    """The decision, one line of reasons for each arm, and warnings."""
    reasons, history = answer.reasons, answer.history
    lines = [headline(answer), ""]
    lines += arm_table(answer)
    lines += arm_lines(answer, [arm for arm in answer.chosen if arm not in estimated(answer)])
    if answer.chosen:
        lines.append("")
    if not reasons.planned and any(arm.known for arm in answer.chosen):
        lines.append(score_sentence(answer))
    if has_bonus(answer):
        lines.append("The bonus is for exploration: it counts in the decision.")
    lines += trial_lines(answer)
    lines += context_lines(answer)
    if history.pending:
        lines.append(f"Pending: {join_rounds(history.pending)}.")
    notes = note_lines(answer)
    lines += notes[:LISTED_NOTES]
    if len(notes) > LISTED_NOTES:
        lines.append(f"And {count_of(len(notes) - LISTED_NOTES, 'more note')}: see --explain.")
    lines += warning_lines(answer, LISTED_WARNINGS)
    lines.append("More: --explain (every arm, paths, swaps), --plot why.png, --json.")
    return join_lines(lines)


def arm_lines(answer: Recommendation, arms: Sequence[ArmReason]) -> list[str]:
    """One line for each arm; many arms of which the same is said share one."""
    sentences = {arm.arm: arm_sentence(answer, arm) for arm in arms}
    width = max((len(printable(arm)) for arm in sentences), default=0)
    shared = {text for text, times in Counter(sentences.values()).items() if times > LISTED_ARMS}
    lines = [f"  {printable(arm).ljust(width)}  {text}" for arm, text in sentences.items() if text not in shared]
    together = [[arm for arm, text in sentences.items() if text == same] for same in shared]
    return lines + [f"  {join_names(arms)}: {sentences[arms[0]]}" for arms in together]


def full_text(answer: Recommendation) -> str:
    """The decision and all reasons."""
    order = [arm.position for arm in answer.reasons.ranked()]
    data = data_lines(answer.assessment, order, per_arm=answer.per_arm)
    fewer = ["Outcomes are minimised: below, positive effects are reductions.", ""] if answer.sign < 0 else []
    lines = [headline(answer), "", *data, "", *fewer, *reason_lines(answer.reasons), "", *context_lines(answer)]
    own = [f"Warning: {finding.sentence}" for finding in answer.cautions if finding.warning]  # the health is above
    return join_lines([*lines, *note_lines(answer), *own])


def warning_lines(answer: Recommendation, most: int) -> list[str]:
    """The first warnings, and how many more there are."""
    found = answer.warnings
    lines = [f"Warning: {sentence}" for sentence in found[:most]]
    if len(found) > most:
        lines.append(f"And {count_of(len(found) - most, 'more warning')}: see --explain.")
    return lines


def note_lines(answer: Recommendation) -> list[str]:
    return [f"Note: {note}." for note in answer.notes]


def headline(answer: Recommendation) -> str:
    """What to choose; where the data cannot tell yet, that it is to learn."""
    label = f" ({answer.history.following})" if answer.history.following else ""
    names = all_names(answer.choose) if answer.chosen else f"nothing: {why_nothing(answer)}"
    if answer.assessment.find("constant-sum"):
        return f"Next round{label}: no choice changes the sum of the outcomes; to move shares, choose {names}."
    if not answer.not_yet:
        return f"Next round{label}: choose {names}{to_learn(answer)}."
    if len(answer.history.arms) == 1 and answer.chosen:
        return f"Next round{label}: not yet clear whether {names} helps; choose it to learn more."
    if answer.without_exploration or not answer.chosen:
        return f"Next round{label}: not yet clear which arms are best; by what is known alone choose {names}."
    return f"Next round{label}: not yet clear which arms are best; choose {names} to learn most."


def to_learn(answer: Recommendation) -> str:
    """The chosen arms that would not be chosen by what is known alone."""
    extra = [arm for arm in answer.choose if arm not in answer.greedy]
    guided = any(arm.known for arm in answer.reasons.arms) and not answer.reasons.planned
    if answer.without_exploration or not extra or not guided:
        return ""
    if len(extra) == len(answer.choose):
        return " to learn more"
    return f" ({all_names(extra)} to learn more)"


def all_names(names: Sequence[str]) -> str:
    some = [quoted(name) for name in names]
    return " and ".join([", ".join(some[:-1]), some[-1]] if len(some) > 1 else some)


def why_nothing(answer: Recommendation) -> str:
    """Whether the constraints or the scores leave nothing to choose."""
    if not answer.constraints:
        return "no arm is worth choosing"
    arms = answer.history.arms
    any_allowed = best_set(np.ones(len(arms)), answer.budget, answer.constraints, arms=arms).any()
    return "no arm that the constraints allow is worth choosing" if any_allowed else "the constraints allow no arm"


def score_sentence(answer: Recommendation) -> str:
    """What the numbers in the lines of the arms are."""
    dose = " at its usual amount" if answer.history.dose is not None else ""
    fewer = " Outcomes are minimised: negative numbers are reductions." if answer.sign < 0 else ""
    if any(arm.total_interval is not None for arm in answer.chosen):
        than = ", compared with the average arm" if answer.relative else ""
        return f"Numbers are expected effects of choosing the arm{dose}{than}, with 95% credible intervals.{fewer}"
    quantity = answer.reasons.quantity
    bonuses = [arm.exploration for arm in answer.chosen if arm.known and is_visible(arm.exploration, arm.score)]
    if not bonuses:
        return f"The first number is the {quantity}{dose}.{fewer}"
    sign = "plus" if min(bonuses) > 0 else "plus or minus"
    return f"The first number is the score: the {quantity}{dose}, {sign} an exploration bonus.{fewer}"


def trial_lines(answer: Recommendation) -> list[str]:
    """What a trial would cost and bring."""
    trial = answer.trial
    if trial is None:
        return []
    place = "beside the others" if trial.instead_of is None else f"instead of {quoted(trial.instead_of)}"
    cost = f"about {rough_number(trial.cost)}" if trial.cost > LEAST_COST * trial.brings else "nothing"
    rounds = "once" if trial.rounds == 1 else f"for {trial.rounds} rounds"
    said = (
        f"Trying {quoted(trial.arm)} {place} {rounds} costs {cost} and is expected to bring "
        f"{rough_number(trial.brings)} over the next {trial.horizon} rounds"
    )
    return [f"{said}{': this is done.' if not answer.without_exploration else ' (--explore).'}"]


def rough_number(value: float) -> str:
    """A number with two digits."""
    return short_number(float(f"{value:.2g}"))


def context_lines(answer: Recommendation) -> list[str]:
    """What is known alone, how close the decision was, its constraints, and what the policy learned from."""
    pointless = answer.assessment.find("constant-sum") is not None
    lines = [f"Not yet: {'; '.join(answer.not_yet)}."] if answer.not_yet and not pointless else []
    lines += coming_context(answer)
    if not pointless:
        lines += [*known_alone(answer), *runner_up(answer)]
    lines += [f"Constraint: {constraint}." for constraint in answer.constraints_in_words]
    return [*lines, learned_from(answer)]


def coming_context(answer: Recommendation) -> Iterator[str]:
    """The context that the decision is for."""
    history = answer.history
    if history.next_context is None or not history.context_names:
        return
    values = dict(zip(history.context_names, history.next_context, strict=True))
    pairs = [f"{name} {short_number(value)}" for name, value in values.items() if "=" not in name]
    pairs += [name for name, value in values.items() if "=" in name and value]  # 0 or 1: whether it is so
    if not pairs:
        return
    more = f" and {len(pairs) - LISTED_CONTEXT} more" if len(pairs) > LISTED_CONTEXT else ""
    yield f"Decided for the context: {', '.join(pairs[:LISTED_CONTEXT])}{more}."


def known_alone(answer: Recommendation) -> Iterator[str]:
    """The decision without exploration, where exploration could have changed it."""
    if answer.without_exploration or not any(arm.known for arm in answer.reasons.arms):
        return
    if set(answer.greedy) == set(answer.choose):
        yield "By what is known alone: the same."
    else:
        yield f"By what is known alone: {join_names(answer.greedy) or 'nothing'}."


def learned_from(answer: Recommendation) -> str:
    """How much data there was."""
    history = answer.history
    arrived, rounds, arms = int(history.arrived.sum()), len(history.rounds), len(history.arms)
    if history.nothing_chosen:
        where = f"the {arrived:,} of {rounds:,} rounds with outcomes"
        return f"{answer.policy} learned nothing: none of the {arms:,} arms was chosen in {where}."
    who = answer.policy[:1].upper() + answer.policy[1:] if " " in answer.policy else answer.policy
    return f"{who} learned from {arrived:,} of {count_of(rounds, 'round')} with {count_of(arms, 'arm')}."


def gap_number(gap: float, arm: ArmReason) -> str:
    """A score or a distance between scores, with the digits that the interval of an arm supports."""
    digits = shown_interval(arm)
    if digits is None:
        return format_number(gap)
    decimals = decimals_for((digits[1] - digits[0]) / 2)
    text = round_to(gap, decimals)
    return text if float(text.replace(",", "")) != 0 else f"less than {round_to(10.0**-decimals, decimals)}"


def runner_up(answer: Recommendation) -> Iterator[str]:
    """How close the decision was. Under constraints another set may be closer than any swap of one arm."""
    reasons = answer.reasons
    chosen, others = answer.chosen, [arm for arm in reasons.ranked() if not arm.chosen]
    if reasons.planned or not others:
        return
    if answer.constraints:
        yield from left_out(answer, chosen, others)
    if not chosen or not reasons.swaps:
        return
    best = reasons.swaps[0]  # without constraints: the best arm not chosen for the worst chosen one
    last = next(arm for arm in chosen if arm.arm == best.out)
    if not np.isfinite(best.change) or best.change > TIE * abs(last.score):  # better: a policy that draws its sets
        return
    tie = best.change >= -TIE * abs(last.score)
    gap = gap_number(-best.change, last)
    if answer.constraints:
        less = "a tie, broken at random" if tie else f"{gap} less"
        yield f"Closest swap of one arm: {quoted(best.into)} for {quoted(best.out)}, {less}."
        return
    ahead = quoted(best.out)
    behind = f"tied with {ahead}; the tie was broken at random" if tie else f"{gap} behind {ahead}"
    yield f"Next best: {quoted(best.into)}, {behind}."


def left_out(answer: Recommendation, chosen: Sequence[ArmReason], others: Sequence[ArmReason]) -> Iterator[str]:
    """The arms that would be chosen by their scores if there were no constraints."""
    by_chance = any(swap.change > 0 for swap in answer.reasons.swaps)  # allowed, and better: drawn by the policy
    least = chosen[-1].score if len(chosen) >= answer.budget else 0.0
    first = sorted(answer.reasons.arms, key=lambda arm: (-arm.score, not arm.chosen))[: answer.budget]
    better = [arm for arm in others if arm in first and arm.score > least + TIE * abs(least)]
    if better and not by_chance:
        names = ", ".join(
            f"{quoted(arm.arm)} (score {gap_number(answer.sign * arm.score, arm)})" for arm in better[:LISTED_ARMS]
        )
        more = f" and {len(better) - LISTED_ARMS:,} more" if len(better) > LISTED_ARMS else ""
        yield f"Left out because of the constraints: {names}{more}."
