"""The recommendation and the overview of a table as they are printed."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover.assessment import Assessment
from spillover.assessment.findings import FINE, NOTE, WARNING
from spillover.constraints.search import best_set
from spillover.formatting import (
    Interval,
    align_columns,
    count_of,
    decimals_for,
    first_of,
    format_estimate,
    join_lines,
    join_names,
    plain_values,
    printable,
    round_to,
    short_number,
)
from spillover.history import History
from spillover.history.read import name_of
from spillover.reasons import ArmReason, Reasons
from spillover.reasons.health import join_rounds
from spillover.reasons.paths import has_effects, reached
from spillover.reasons.render import format_number, format_part, is_visible, reason_lines, shown_interval
from spillover.recommendation.estimates import Facts, facts_of
from spillover.recommendation.result import ArmAnswer, Recommendation
from spillover.types import Array
from spillover.validate import quoted

SHOWN = 16  # arms
NOTHING = "-"
EXACT = 1e-9  # a standard error of this share of the number is rounding


def data_lines(assessment: Assessment, order: Sequence[int], *, per_arm: bool) -> list[str]:
    """One line for each arm, in the given order."""
    own = "its outcome with it" if per_arm else "outcome with it"
    titles = ["arm", "", "chosen", own, "without", "difference", "others' difference", "least squares"]
    rows = [titles, *(row_of(assessment, j, per_arm) for j in order[:SHOWN])]
    if not per_arm or len(assessment.arms) == 1:
        rows = [[*row[:6], row[7]] for row in rows]
    lines = ["Averages over all rounds; differences with 2 standard errors:", *align_columns(rows, 2)]
    if len(order) > SHOWN:
        lines.append(f"... and {len(order) - SHOWN} more arms")
    meaning = "Least squares: the effect on all outcomes together, by a regression on all choices and the context"
    compared = ", compared with the average arm" if assessment.groups.budget is not None else ""
    return [line.rstrip() for line in [*lines, f"{meaning}{compared}."]]


def row_of(assessment: Assessment, j: int, per_arm: bool) -> list[str]:
    """The cells of one arm."""
    averages, reduced = assessment.averages[j], assessment.reduced
    own, rest = averages.own if per_arm else averages.total, averages.rest
    return [
        assessment.arms[j],
        "",
        f"{averages.times:,}",
        short_number(own.chosen),
        short_number(own.others),
        with_error(own.difference, own.error),
        with_error(rest.difference, rest.error),
        with_error(float(reduced.total[j]), float(reduced.total_error[j])),
    ]


def with_error(value: float, error: float) -> str:
    """A difference and two standard errors, rounded to what they support.

    >>> with_error(0.4687, 0.02), with_error(12.0, np.nan)
    ('0.47 ± 0.04', '12.0')
    """
    if not np.isfinite(value):
        return NOTHING
    if not np.isfinite(error) or error <= EXACT * abs(value) or value == 0:
        return short_number(value)
    decimals = decimals_for(2 * error)
    return f"{round_to(value, decimals)} ± {round_to(2 * error, decimals)}"


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
    """Name the arm that gets most of the spill-over along all paths, where the graph is known."""
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
    """Sum what each arm gets from this one along all paths; for the arm itself, only what comes back to it."""
    direct = np.zeros(len(reasons.arms))
    direct[arm.position] = arm.direct
    return reached(reasons.adjacency, direct) - direct


WIDTH = 80  # of a terminal
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
    """Name, effect with interval, its two parts where there are two, and the exploration bonus."""
    found = next(each for each in answer.arms if each.arm == arm.arm)
    assert found.total_interval is not None
    total = "0" if cancels(found) else format_estimate(found.total, found.total_interval)
    own = spilled = ""
    if answer.per_arm:
        own = estimate(found.effect, found.effect_interval)
        if len(answer.reasons.arms) > 1 and found.spill_over_interval is not None and worth_a_word(found):
            spilled = estimate(found.spill_over, found.spill_over_interval)
            if spilled and targets and is_certain(found.spill_over_interval):
                spilled += main_target(answer.reasons, arm)
    # with the digits that the interval of the effect supports
    bonus = estimate(answer.sign * arm.exploration, shown_interval(arm) or found.total_interval)
    return (arm.arm, total, own, spilled, "" if float(bonus.replace(",", "")) == 0 else bonus)


def estimate(value: float, interval: Interval | None) -> str:
    """A number with the digits that its interval supports."""
    return "" if interval is None else round_to(value, decimals_for((interval[1] - interval[0]) / 2))


def is_certain(interval: Interval | None) -> bool:
    """Whether the sign of an effect is known."""
    return interval is not None and interval[0] * interval[1] > 0


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns of equal width, without the columns that are empty below their titles."""
    used = [k for k in range(len(rows[0])) if any(row[k] for row in rows[1:])]
    shown = [[row[k] or (NOTHING if number else "") for k in used] for number, row in enumerate(rows)]
    return [f"  {line}".rstrip() for line in align_columns(shown)]


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
    """Say what to choose, and whether that is only to learn."""
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
    """Explain the numbers in the lines of the arms."""
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
    """Say what a trial would cost and bring."""
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
    """Say the choice without exploration, how close it was, its constraints, and how much data there was."""
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
    yield f"Decided for the context: {first_of(pairs, LISTED_CONTEXT)}."


def known_alone(answer: Recommendation) -> Iterator[str]:
    """The decision without exploration, where exploration could have changed it."""
    if answer.without_exploration or not any(arm.known for arm in answer.reasons.arms):
        return
    if set(answer.greedy) == set(answer.choose):
        yield "By what is known alone: the same."
    else:
        yield f"By what is known alone: {join_names(answer.greedy) or 'nothing'}."


def learned_from(answer: Recommendation) -> str:
    """Say how much data there was."""
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
    """Say how close the decision was. Under constraints another set may be closer than any swap of one arm."""
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
        names = [f"{quoted(arm.arm)} (score {gap_number(answer.sign * arm.score, arm)})" for arm in better]
        yield f"Left out because of the constraints: {first_of(names, LISTED_ARMS)}."


LISTED_COLUMNS = 60
LONGEST_OPTION = 1_000  # characters that are worth pasting
HEADINGS = {FINE: "Can be learned:", NOTE: "Good to know:", WARNING: "Cannot be learned, or misleads:"}
SIGNS = {FINE: "+", NOTE: "-", WARNING: "!"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Overview:
    """The check of a table: `print` it, or see `to_dict`."""

    source: str
    history: History
    facts: Facts
    options: str = ""  # that the table was read with, for the next command

    def __str__(self) -> str:
        history, assessment = self.history, self.facts.assessment
        lines = [f"{name_of(self.source)}: {self.size()}.", *column_lines(history), ""]
        lines += data_lines(assessment, self.most_varied_first(), per_arm=self.facts.per_arm)
        for severity, heading in HEADINGS.items():
            found = [finding for finding in assessment.findings if finding.severity == severity]
            if found:
                lines += ["", heading, *(f"  {SIGNS[severity]} {finding.sentence}" for finding in found)]
        lines += ["", *(f"Note: {note}." for note in history.notes), self.next_step()]
        return join_lines(lines)

    def size(self) -> str:
        """Count rounds, arms and outcomes."""
        history, assessment = self.history, self.facts.assessment
        rounds = count_of(assessment.rounds, "round")
        span = f" ({history.rounds[0]} to {history.rounds[-1]})" if len(history.rounds) > 1 else ""
        arms = count_of(len(history.arms), "arm")
        each = "" if self.facts.per_arm else ", with one outcome for all of them"
        return f"{rounds}{span}, {arms}{each}; {count_of(assessment.known, 'round')} with outcomes"

    def next_step(self) -> str:
        """The command to run next, with the usual number of arms as the budget."""
        sizes = self.history.x.sum(axis=1)
        usual = max(int(sorted(sizes)[len(sizes) // 2]), 1) if len(sizes) else 1
        options = f" {self.options}" if self.options else ""
        return f"Next: spillover next {shlex.quote(self.source)} --budget {usual}{options}"

    def most_varied_first(self) -> list[int]:
        """Arms in their order; where there are too many to show all, those that were chosen and left out most often."""
        times = self.history.x.sum(axis=0)
        varied = np.minimum(times, len(self.history.x) - times)
        order = np.argsort(-varied, kind="stable") if len(times) > SHOWN else np.arange(len(times))
        return [int(j) for j in order]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "file": self.source,
            "columns": plain_values(self.history.taken),
            "columns_option": self.history.columns_option,
            "minimise": self.history.minimise,
            "context": list(self.history.context_names),
            "first_round": self.history.rounds[0] if self.history.rounds else None,
            "last_round": self.history.rounds[-1] if self.history.rounds else None,
            "pending": list(self.history.pending),
            "notes": list(self.history.notes),
        } | self.facts.assessment.to_dict()


def overview(history: History, source: str, options: str = "") -> Overview:
    """The check of a history that was read from `source` with some options of the command."""
    return Overview(source=source, history=history, facts=facts_of(history), options=options)


def column_lines(history: History) -> list[str]:
    """Say the meaning of each column, and the option to paste."""
    if not history.taken:
        return []
    lines = ["", "Columns:", *(f"  {line}".rstrip() for line in align_columns(history.taken[:LISTED_COLUMNS]))]
    if len(history.taken) > LISTED_COLUMNS:
        lines.append(f"  and {len(history.taken) - LISTED_COLUMNS:,} more: see --json")
    if not history.columns_option:
        return lines
    short = len(history.columns_option) <= LONGEST_OPTION
    return [*lines, f"The same reading: {history.columns_option if short else 'see columns_option of --json'}"]
