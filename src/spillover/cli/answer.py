"""The next decision as it is printed: in a few lines, in full, or for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from spillover.cli.constraints_option import describe_constraints
from spillover.constraints import Constraint
from spillover.history import History
from spillover.reasons import ArmReason, Reasons
from spillover.reasons.health import join_rounds
from spillover.reasons.paths import solvable
from spillover.reasons.render import format_number, format_part, is_visible
from spillover.set_search import best_set
from spillover.types import Array
from spillover.validate import quoted

LISTED_ARMS = 5  # in a line
TIE = 1e-9
MOSTLY = 0.5  # share of the spill-over from which on one arm gets most of it
SMALL = 0.01  # share of the spill-over that is not worth a word


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What to choose next, and why."""

    file: Path
    policy: str
    budget: int
    history: History
    constraints: tuple[Constraint, ...]
    reasons: Reasons

    @property
    def chosen(self) -> list[ArmReason]:
        """The arms to choose, the best first."""
        return [arm for arm in self.reasons.ranked() if arm.chosen]

    @property
    def notes(self) -> list[str]:
        """What the owner of the file should know."""
        return [*self.history.notes, *over_budget(self.history, self.budget), *overlooked(self.history)]

    @property
    def constraints_in_words(self) -> list[str]:
        return describe_constraints(self.constraints, [arm.arm for arm in self.chosen], self.history.arms)

    def content(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "file": self.file,
            "policy": self.policy,
            "budget": self.budget,
            "round": self.history.following,
            "choose": [arm.arm for arm in self.chosen],
            "limits": self.constraints_in_words,
            "rounds": len(self.history.rounds),
            "pending": self.history.pending,
            "notes": self.notes,
            "reasons": self.reasons.to_dict(),
        }


def over_budget(history: History, budget: int) -> Iterator[str]:
    """Past rounds that chose more arms than the budget allows."""
    sizes = history.x.sum(axis=1)
    over = np.flatnonzero(sizes > budget)
    if len(over):
        rounds, first, outcomes = "one round", "", "its outcome is"
        if len(over) > 1:
            rounds, first, outcomes = f"{len(over):,} rounds", "first ", "their outcomes are"
        example = f"{first}{history.rounds[over[0]]}, with {sizes[over[0]]}"
        yield f"{rounds} chose more arms than the budget of {budget} ({example}); {outcomes} used all the same"


def overlooked(history: History) -> Iterator[str]:
    """Rounds without outcomes before rounds with outcomes: somebody may have forgotten to fill them in."""
    known = np.flatnonzero(history.arrived)
    late = np.flatnonzero(~history.arrived[: known[-1]]) if len(known) else known
    if len(late):
        yield f"pending although later rounds have outcomes: {join_rounds([history.rounds[t] for t in late])}"


def print_answer(answer: Answer) -> None:
    """The decision, one line of reasons for each arm, and warnings."""
    reasons, history = answer.reasons, answer.history
    click.echo(headline(answer))
    click.echo()
    width = max((len(arm.arm) for arm in answer.chosen), default=0)
    for arm in answer.chosen:
        click.echo(f"  {arm.arm.ljust(width)}  {arm_sentence(answer, arm)}")
    if answer.chosen:
        click.echo()
    if not reasons.planned and any(arm.known for arm in answer.chosen):
        click.echo(score_sentence(answer))
    print_context(answer)
    if history.pending:
        click.echo(f"Pending: {join_rounds(history.pending)}.")
    print_notes(answer)
    for signal in reasons.health:
        if signal.warning:
            click.echo(f"Warning: {signal.sentence}")
    click.echo("More: --explain (every arm, paths, swaps), --plot why.png, --json.")


def print_full_answer(answer: Answer) -> None:
    """The decision and all reasons."""
    click.echo(headline(answer))
    click.echo()
    click.echo(str(answer.reasons))
    click.echo()
    print_context(answer)
    print_notes(answer)


def print_context(answer: Answer) -> None:
    """How close the decision was, its constraints, and what the policy learned from."""
    for line in runner_up(answer):
        click.echo(line)
    for constraint in answer.constraints_in_words:
        click.echo(f"Constraint: {constraint}.")
    click.echo(learned_from(answer))


def learned_from(answer: Answer) -> str:
    """How much data there was."""
    history = answer.history
    arrived, rounds, arms = int(history.arrived.sum()), len(history.rounds), len(history.arms)
    if history.nothing_chosen:
        where = f"the {arrived:,} of {rounds:,} rounds with outcomes"
        return f"{answer.policy} learned nothing: none of the {arms:,} arms was chosen in {where}."
    return f"{answer.policy} learned from {arrived:,} of {rounds:,} rounds with {arms:,} arms."


def print_notes(answer: Answer) -> None:
    for note in answer.notes:
        click.echo(f"Note: {note}.")


def headline(answer: Answer) -> str:
    names = [quoted(arm.arm) for arm in answer.chosen]
    joined = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    label = f" ({answer.history.following})" if answer.history.following else ""
    return f"Next round{label}: choose {joined or f'nothing: {why_nothing(answer)}'}."


def why_nothing(answer: Answer) -> str:
    """Whether the constraints or the scores leave nothing to choose."""
    if not answer.constraints:
        return "no arm is worth choosing"
    arms = answer.history.arms
    any_allowed = best_set(np.ones(len(arms)), answer.budget, answer.constraints, arms=arms).any()
    return "no arm that the constraints allow is worth choosing" if any_allowed else "the constraints allow no arm"


def score_sentence(answer: Answer) -> str:
    """What the first number in the line of an arm is."""
    quantity = answer.reasons.quantity
    bonuses = [arm.exploration for arm in answer.chosen if arm.known and is_visible(arm.exploration, arm.score)]
    if not bonuses:
        return f"The first number is the {quantity}."
    sign = "plus" if min(bonuses) > 0 else "plus or minus"
    return f"The first number is the score: the {quantity}, {sign} an exploration bonus."


def arm_sentence(answer: Answer, arm: ArmReason) -> str:
    """Why this arm, in one line; the printed parts add up to the score."""
    reasons = answer.reasons
    if reasons.planned:
        return f"{reasons.plan}{'' if arm.known else '; no outcome of it yet'}"
    if not arm.known:
        return why_without_data(answer, arm)
    parts = [f"{format_part(arm.direct, arm.score)} by itself"]
    if is_visible(arm.spilled_over, arm.score):
        parts.append(f"{format_part(arm.spilled_over, arm.score)} spill-over{main_target(reasons, arm)}")
    if is_visible(arm.exploration, arm.score):
        parts.append(f"{format_part(arm.exploration, arm.score)} exploration bonus")
    return f"{format_number(arm.score)}: {', '.join(parts)}"


def why_without_data(answer: Answer, arm: ArmReason) -> str:
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
    if not solvable(reasons.adjacency):
        return ""
    reached = reached_by(reasons, arm)
    total = float(np.abs(reached).sum()) + abs(arm.ways.unknown)
    others = np.where(np.arange(len(reached)) == arm.position, 0.0, reached * np.sign(arm.spilled_over))
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
    return np.asarray(np.linalg.solve(np.eye(len(direct)) - reasons.adjacency, direct)) - direct


def runner_up(answer: Answer) -> Iterator[str]:
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
    if answer.constraints:
        less = "a tie, broken at random" if tie else f"{format_number(-best.change)} less"
        yield f"Closest swap of one arm: {quoted(best.into)} for {quoted(best.out)}, {less}."
        return
    ahead = quoted(best.out)
    behind = f"{format_number(-best.change)} behind {ahead}"
    if tie:
        behind = f"tied with {ahead}; the tie was broken at random"
    yield f"Next best: {quoted(best.into)}, {behind}."


def left_out(answer: Answer, chosen: Sequence[ArmReason], others: Sequence[ArmReason]) -> Iterator[str]:
    """The arms that would be chosen by their scores if there were no constraints."""
    by_chance = any(swap.change > 0 for swap in answer.reasons.swaps)  # allowed, and better: drawn by the policy
    least = chosen[-1].score if len(chosen) >= answer.budget else 0.0
    first = sorted(answer.reasons.arms, key=lambda arm: (-arm.score, not arm.chosen))[: answer.budget]
    better = [arm for arm in others if arm in first and arm.score > least + TIE * abs(least)]
    if better and not by_chance:
        names = ", ".join(f"{quoted(arm.arm)} (score {format_number(arm.score)})" for arm in better[:LISTED_ARMS])
        more = f" and {len(better) - LISTED_ARMS:,} more" if len(better) > LISTED_ARMS else ""
        yield f"Left out because of the constraints: {names}{more}."
