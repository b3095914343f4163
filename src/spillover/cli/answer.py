"""The next decision as it is told: in a few lines, in full, to programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from spillover.cli.limits import in_words
from spillover.constraints import Constraint
from spillover.history import History
from spillover.reasons import ArmReason, Reasons, Signal
from spillover.reasons.health import MORE_EFFORT
from spillover.reasons.paths import solvable
from spillover.reasons.words import number, part_of, shows
from spillover.set_search import EFFORT, MOST_EFFORT, best_set
from spillover.types import Array
from spillover.validate import quoted

LISTED = 5  # rounds that a line names
TIE = 1e-9
MORE_STEPS = 10  # times the effort, where it did not suffice
MOSTLY = 0.5  # share from which on one arm gets most of what spills over
OF_THE_GRAPH = ("graph-identified", "graph-not-identified", "arms-together")  # signals
SMALL = 0.01  # of what spills over: a smaller rest is not worth a word


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What to choose next, and all that there is to say about it."""

    file: Path
    policy: str
    budget: int
    history: History
    limits: tuple[Constraint, ...]
    reasons: Reasons

    @property
    def chosen(self) -> list[ArmReason]:
        """The arms to choose, the best first."""
        return [arm for arm in self.reasons.ranked() if arm.chosen]

    @property
    def notes(self) -> list[str]:
        """What somebody should know who gave this file."""
        return [*self.history.notes, *over_budget(self.history, self.budget), *forgotten(self.history)]

    @property
    def kept(self) -> list[str]:
        """The limits in words."""
        return in_words(self.limits, [arm.arm for arm in self.chosen], self.history.arms)

    def content(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "file": self.file,
            "policy": self.policy,
            "budget": self.budget,
            "round": self.history.following,
            "choose": [arm.arm for arm in self.chosen],
            "limits": self.kept,
            "rounds": len(self.history.rounds),
            "pending": self.history.pending,
            "notes": self.notes,
            "reasons": self.reasons.to_dict(),
        }


def over_budget(history: History, budget: int) -> Iterator[str]:
    """Rounds of the past that the budget would not allow: they happened all the same."""
    sizes = history.x.sum(axis=1)
    over = np.flatnonzero(sizes > budget)
    if len(over):
        many = f"{len(over):,} rounds chose" if len(over) > 1 else "one round chose"
        first = f"{'first ' if len(over) > 1 else ''}{history.rounds[over[0]]}, with {sizes[over[0]]}"
        yield f"{many} more arms than the budget of {budget} ({first}): what came of it is learned from all the same"


def forgotten(history: History) -> Iterator[str]:
    """Rounds that are pending though outcomes of later ones are there: somebody may have forgotten them."""
    known = np.flatnonzero(history.arrived)
    late = np.flatnonzero(~history.arrived[: known[-1]]) if len(known) else known
    if len(late):
        yield f"pending though later rounds have outcomes: {named([history.rounds[t] for t in late])}"


def named(rounds: Sequence[str]) -> str:
    """Some rounds by name, the latest where there are many."""
    rest = len(rounds) - LISTED
    return ", ".join(rounds) if rest <= 0 else f"{', '.join(rounds[-LISTED:])} and {rest:,} before"


def as_in_the_command(told: Reasons, history: History, effort: int) -> Reasons:
    """The same reasons; rounds that wait for their outcomes are called as in the file, and effort is an option.

    Of a file without y nothing is said of the graph: z stood in for y. Nor where nothing was chosen.
    """
    pending = history.pending

    def renamed(signal: Signal) -> Signal:
        if signal.code == "set-not-proved":
            option = f"--effort {min(max(MORE_STEPS * effort, EFFORT), MOST_EFFORT)} may settle it."
            return signal._replace(sentence=signal.sentence.replace(MORE_EFFORT, option))
        if signal.code != "pending":
            return signal
        many = f"{len(pending):,} outcomes are" if len(pending) > 1 else "1 outcome is"
        return signal._replace(sentence=f"{many} still to come: {named(pending)}.")

    graph = history.has_overall and not nothing_chosen(history)
    said = [signal for signal in told.health if graph or signal.code not in OF_THE_GRAPH]
    return replace(told, health=tuple(renamed(signal) for signal in said))


def print_answer(answer: Answer) -> None:
    """The decision, a line of reason for each arm, and what to look at."""
    told, history = answer.reasons, answer.history
    click.echo(headline(answer))
    click.echo()
    width = max((len(arm.arm) for arm in answer.chosen), default=0)
    for arm in answer.chosen:
        click.echo(f"  {arm.arm.ljust(width)}  {reason(answer, arm)}")
    if answer.chosen:
        click.echo()
    if not told.planned and any(arm.known for arm in answer.chosen):
        click.echo(first_number(answer))
    print_choice(answer)
    if history.pending:
        click.echo(f"Pending: {named(history.pending)}.")
    print_notes(answer)
    for signal in told.health:
        if signal.warning:
            click.echo(f"Warning: {signal.sentence}")
    click.echo("More: --explain (every arm, paths, swaps), --plot why.png, --json.")


def print_choice(answer: Answer) -> None:
    """How close it was, within which limits, and who learned from what."""
    history = answer.history
    for line in runner_up(answer):
        click.echo(line)
    for limit in answer.kept:
        click.echo(f"Limit: {limit}.")
    click.echo(f"{learned_from(history)}, by {answer.policy}.")


def learned_from(history: History) -> str:
    """How much there was to learn from."""
    arrived, rounds, arms = int(history.arrived.sum()), len(history.rounds), len(history.arms)
    if nothing_chosen(history):
        return (
            f"Learned of no arm: none of the {arms:,} was chosen in the {arrived:,} of {rounds:,} rounds with outcomes"
        )
    return f"Learned from {arrived:,} of {rounds:,} rounds with {arms:,} arms"


def nothing_chosen(history: History) -> bool:
    """Whether outcomes are there, and none of them is of a choice."""
    return bool(history.arrived.any() and not history.observed.any())


def print_notes(answer: Answer) -> None:
    for note in answer.notes:
        click.echo(f"Note: {note}.")


def headline(answer: Answer) -> str:
    names = [quoted(arm.arm) for arm in answer.chosen]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    when = f" ({answer.history.following})" if answer.history.following else ""
    return f"Next round{when}: choose {listed or f'nothing: {why_nothing(answer)}'}."


def why_nothing(answer: Answer) -> str:
    """Whether it is the limits or the arms that leave nothing to choose."""
    if not answer.limits:
        return "no arm is worth it"
    arms = answer.history.arms
    left = best_set(np.ones(len(arms)), answer.budget, answer.limits, arms=arms).any()
    return "no arm that the limits leave is worth it" if left else "the limits leave no arm"


def first_number(answer: Answer) -> str:
    """What the number is that the line of an arm begins with."""
    told = answer.reasons
    added = [arm.exploration for arm in answer.chosen if arm.known and shows(arm.exploration, arm.score)]
    if not added:
        return f"The first number is the {told.quantity}."
    change = "added" if min(added) > 0 else "added or taken off"
    return f"The first number is the score: the {told.quantity}, and what is {change} for what is not sure yet."


def reason(answer: Answer, arm: ArmReason) -> str:
    """Why this arm, in a line; the parts add up to the score, as they are printed."""
    told = answer.reasons
    if told.planned:
        known = "" if arm.known else ", nothing is known of it yet"
        return f"its turn: {told.plan}{known}"
    if not arm.known:
        return unknown(answer, arm)
    parts = [f"{part_of(arm.direct, arm.score)} by itself"]
    if shows(arm.spilled_over, arm.score):
        parts.append(f"{part_of(arm.spilled_over, arm.score)} that spills over{mostly(told, arm)}")
    if shows(arm.exploration, arm.score):
        parts.append(f"{part_of(arm.exploration, arm.score)} for what is not sure yet")
    return f"{number(arm.score)}: {', '.join(parts)}"


def unknown(answer: Answer, arm: ArmReason) -> str:
    """Why an arm is chosen of which the policy knows nothing."""
    history = answer.history
    if not history.observed[arm.position]:
        return "tried, and nothing has come of it yet" if history.x[:, arm.position].any() else "not tried yet"
    said = {signal.code for signal in answer.reasons.health if arm.arm in signal.arms}
    if "arms-forgotten" in said:
        return "nothing is remembered of it"
    return "in a set that was not tried yet" if "arms-unknown" in said else "drawn by chance"


def mostly(told: Reasons, arm: ArmReason) -> str:
    """Whom the arm reaches most, along all paths, if that is known."""
    if not solvable(told.adjacency):
        return ""
    reached = reached_by(told, arm)
    whole = float(np.abs(reached).sum()) + abs(arm.ways.unknown)
    others = np.where(np.arange(len(reached)) == arm.position, 0.0, reached * np.sign(arm.spilled_over))
    most = int(np.argmax(others))
    if others[most] <= 0:
        return ""
    target, part = quoted(told.names[most]), others[most] / whole
    if part > 1 - SMALL:
        return f" to {target}"
    return f", mostly to {target}" if part >= MOSTLY else f" to {target} and others"


def reached_by(told: Reasons, arm: ArmReason) -> Array:
    """What every arm gets from this one along all paths; of the arm itself only what comes back to it."""
    pushed = np.zeros(len(told.arms))
    pushed[arm.position] = arm.direct
    return np.asarray(np.linalg.solve(np.eye(len(pushed)) - told.adjacency, pushed)) - pushed


def runner_up(answer: Answer) -> Iterator[str]:
    """How close it was. Within limits another set may come closer than any swap of one arm."""
    told = answer.reasons
    chosen, others = answer.chosen, [arm for arm in told.ranked() if not arm.chosen]
    if told.planned or not others:
        return
    if answer.limits:
        yield from left_out(answer, chosen, others)
    if not chosen or not told.swaps:
        return
    best = told.swaps[0]  # without limits the best of the others for the last of the chosen
    last = next(arm for arm in chosen if arm.arm == best.out)
    if not np.isfinite(best.change) or best.change > TIE * abs(last.score):  # better: a policy that draws its sets
        return
    tie = best.change >= -TIE * abs(last.score)
    if answer.limits:
        less = "as good; chance decided" if tie else f"{number(-best.change)} less"
        yield f"Closest swap of one arm: {quoted(best.into)} for {quoted(best.out)}, {less}."
        return
    ahead = quoted(best.out)
    behind = f"as good as {ahead}; chance decided" if tie else f"{number(-best.change)} behind {ahead}"
    yield f"Next best: {quoted(best.into)}, {behind}."


def left_out(answer: Answer, chosen: Sequence[ArmReason], others: Sequence[ArmReason]) -> Iterator[str]:
    """The arms that would be chosen by their scores if there were no limits."""
    by_chance = any(swap.change > 0 for swap in answer.reasons.swaps)  # allowed, and better: drawn by the policy
    least = chosen[-1].score if len(chosen) >= answer.budget else 0.0
    first = sorted(answer.reasons.arms, key=lambda arm: (-arm.score, not arm.chosen))[: answer.budget]
    better = [arm for arm in others if arm in first and arm.score > least + TIE * abs(least)]
    if better and not by_chance:
        listed = "; ".join(f"{quoted(arm.arm)}, with {number(arm.score)}" for arm in better[:LISTED])
        more = f"; and {len(better) - LISTED:,} more" if len(better) > LISTED else ""
        yield f"Left out by the limits: {listed}{more}."


def print_in_full(answer: Answer) -> None:
    """All of the reasons."""
    click.echo(headline(answer))
    click.echo()
    click.echo(str(answer.reasons))
    click.echo()
    print_choice(answer)
    print_notes(answer)
