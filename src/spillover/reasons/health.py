"""Signs of health: can the graph be known yet, are outcomes too late or lost, is the decision a guess.

Each signal has a code for machines and a sentence for people; `warning` says that somebody should look.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover.reasons.words import number
from spillover.types import Array, BoolArray, Explanation
from spillover.validate import quoted

SAME = 1e-9  # outcomes whose correlation is closer to 1 or -1 than this cannot be told apart
DIMENSION = 1e-10  # eigenvalues of the matrix of correlations below this add no dimension
GUESS = 0.5  # share of exploration above which a decision is a guess
IDLE_TURNS = 10  # an arm's fair turn comes every n / budget rounds; so many of them without it are long
OVERDUE = 2  # an outcome that waits longer than so many times the longest delay so far may be lost
SEEN_ENOUGH = 10  # outcomes from which on the longest delay so far says something
MORE_EFFORT = "A larger effort may settle it."


class Pending(NamedTuple):
    """What is under way, and how late outcomes were so far; a delay of 0 is an outcome in its own round."""

    rounds: int  # played
    waiting: Mapping[int, BoolArray]  # the rounds whose outcomes are to come, and what was played in them
    reported: int = 0
    total: int = 0  # sum of the delays of the reported rounds
    longest: int = 0
    timed: bool = True  # whether it is known when outcomes came; a file that was filled in later does not say
    observed: BoolArray | None = None  # which arms have outcomes, where that is known: policies forget

    @property
    def ages(self) -> dict[int, int]:
        return {played: self.rounds - played for played in self.waiting}

    @property
    def delay(self) -> float:
        """The mean delay; of what is still under way it counts what has passed, so it is at least this long."""
        known = self.reported + len(self.waiting)
        return (self.total + sum(self.ages.values())) / known if known else 0.0


class Signal(NamedTuple):
    """One sign of health."""

    code: str
    warning: bool
    sentence: str
    value: float | None = None
    arms: tuple[str, ...] = ()


def health(
    explanation: Explanation,
    names: Sequence[str],
    budget: int,
    pending: Pending | None = None,
    signals: Mapping[str, Any] | None = None,
) -> tuple[Signal, ...]:
    """What can be said with what is given, warnings first; `signals` is what a policy's `signals(state)` says."""
    told = signals or {}
    if not told.get("learns", True):
        return tuple(waiting_signals(pending))
    found = [
        *proof_signals(explanation, told),
        *unknown_arms(explanation, names, pending, told),
        *graph_signals(told, names),
        *guess_signals(explanation),
        *idle_signals(told, names, budget, pending),
        *change_signals(told, pending),
        *waiting_signals(pending),
    ]
    return tuple(sorted(found, key=lambda signal: not signal.warning))


def those(names: Sequence[str], mask: BoolArray) -> tuple[str, ...]:
    return tuple(name for name, here in zip(names, mask.tolist(), strict=True) if here)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a sentence, not too many."""
    rest = len(names) - most
    return ", ".join(map(quoted, names[:most])) + (f" and {rest} more" if rest > 0 else "")


def unproved(explanation: Explanation, told: Mapping[str, Any]) -> tuple[float, float]:
    """How much more another feasible set could score at most, and as a share of the total of the chosen.

    NaN where no search decided by scores that were learned, and where there is no total to have a share of. A total is
    that of the finite scores: arms without limit come first, whatever the others bring.
    """
    if explanation.could_gain is None or not told.get("learns", True):
        return np.nan, np.nan
    more = float(explanation.could_gain)
    total = float(explanation.score[explanation.chosen & np.isfinite(explanation.score)].sum())
    return more, more / total if total > 0 and np.isfinite(more) else np.nan


def proof_signals(explanation: Explanation, told: Mapping[str, Any]) -> list[Signal]:
    """Whether the search for the best set ended before it was proved to be the best."""
    more, part = unproved(explanation, told)
    if not more > 0:
        return []
    if np.isinf(more):
        better = "do better on the arms whose scores have no limit"
    else:
        limited = np.isfinite(explanation.score[explanation.chosen]).all()
        total = "total score" if limited else "total of the scores that have a limit"
        of_total = f" ({100 * part:.3g}% of the {total})" if part > 0 else ""
        better = f"score up to {number(more)} more{of_total}"
    sentence = f"The set is not proved to be the best within the limits: another could {better}. {MORE_EFFORT}"
    return [Signal("set-not-proved", True, sentence, more)]


def unknown_arms(
    explanation: Explanation, names: Sequence[str], pending: Pending | None, told: Mapping[str, Any]
) -> list[Signal]:
    """Arms of which nothing was heard, those whose outcome is under way apart, and those that the policy forgot."""
    unheard = ~(explanation.count > 0)
    if told.get("of_sets", False) and unheard.any():  # outcomes of the arm may be there, in other sets
        without = those(names, unheard)
        sets, them = ("sets", "them") if len(without) > 1 else ("set", "it")
        sentence = f"Nothing is known of the best {sets} with {listed(without)}: no outcome of {them} yet."
        return [Signal("arms-unknown", True, sentence, float(len(without)), without)]
    tried = np.zeros(len(names), np.bool_)
    for x in pending.waiting.values() if pending else ():
        tried |= x
    heard = np.zeros_like(tried) if pending is None or pending.observed is None else pending.observed
    never, under_way = those(names, unheard & ~heard & ~tried), those(names, unheard & ~heard & tried)
    found = []
    if gone := those(names, unheard & heard):
        outcomes = "their outcomes" if len(gone) > 1 else "its outcomes"
        sentence = f"Nothing is remembered of {listed(gone)}: the policy has forgotten {outcomes}."
        found.append(Signal("arms-forgotten", True, sentence, float(len(gone)), gone))
    if never:
        sentence = f"Nothing is known of {listed(never)}: no outcome yet."
        found.append(Signal("arms-unknown", True, sentence, float(len(never)), never))
    if under_way:
        sentence = f"The first outcome of {listed(under_way)} is under way."
        found.append(Signal("arms-under-way", False, sentence, float(len(under_way)), under_way))
    return found


def graph_signals(told: Mapping[str, Any], names: Sequence[str]) -> list[Signal]:
    """Whether the outcomes so far allow one graph only, and which arms they cannot tell apart."""
    if "gram" not in told:
        return []
    rank, alike = dimensions(np.asarray(told["gram"], float))
    n = len(names)
    found = []
    if rank < n:
        sentence = f"The graph is not settled: the outcomes so far vary in {rank} of {n} ways, so several graphs fit."
        found.append(Signal("graph-not-identified", True, sentence, float(rank)))
    else:
        sentence = "The outcomes so far vary enough to settle the graph."
        found.append(Signal("graph-identified", False, sentence, float(rank)))
    for group in alike:
        together = tuple(names[j] for j in group)
        sentence = (
            f"The outcomes of {listed(together)} always rise and fall together: their effects are not told apart."
        )
        found.append(Signal("arms-together", True, sentence, float(len(together)), together))
    return found


def dimensions(gram: Array) -> tuple[int, list[tuple[int, ...]]]:
    """The rank of a sum of y y', whatever the units of the arms, and the groups of arms in fixed proportion."""
    size = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    met = np.flatnonzero(size > 0)
    correlation = gram[np.ix_(met, met)] / np.outer(size[met], size[met])
    if not len(met):
        return 0, []
    rank = int((np.linalg.eigvalsh(correlation) > DIMENSION).sum())
    groups: dict[int, list[int]] = {}
    for k, row in enumerate(np.abs(correlation) > 1.0 - SAME):
        groups.setdefault(int(np.argmax(row)), []).append(int(met[k]))
    return rank, [tuple(group) for group in groups.values() if len(group) > 1]


def guess_signals(explanation: Explanation) -> list[Signal]:
    """How much of the chosen arms' scores is exploration; nothing to say where a plan decided."""
    if bool(explanation.planned):
        sentence = "A plan decided this round (the start, or a trial in turn), not the scores."
        return [Signal("planned", False, sentence)]
    chosen = explanation.chosen
    known = chosen & np.isfinite(explanation.mean) & (explanation.count > 0)
    learned = np.where(known, np.abs(explanation.weights * np.where(known, explanation.mean, 0.0)), 0.0).sum()
    index = np.where(known, explanation.index, 0.0) - np.where(known, explanation.mean, 0.0)
    added = np.abs(np.where(known, explanation.weights * index, np.where(chosen, explanation.score, 0.0))).sum()
    if not chosen.any() or learned + added == 0:
        return []
    share = 1.0 if not np.isfinite(added) else float(added / (learned + added))
    endless = int(np.isposinf(explanation.score[chosen]).sum())
    have = "has" if endless == 1 else "have"
    without = f"{endless} of {int(chosen.sum())} chosen arms {have} a score without limit, which is exploration alone."
    sentence = without if endless else explored(share)
    return [Signal("mostly-exploration" if share > GUESS else "exploration", share > GUESS, sentence, share)]


def explored(share: float) -> str:
    """How much is exploration, in words that are true where a share in percent would be 0 or 100."""
    if share == 1.0:
        return "All of the chosen arms' scores is exploration."
    if share == 0.0:
        return "None of the chosen arms' scores is exploration: all of it is what was learned."
    part = "Less than 1%" if share < 0.01 else "More than 99%" if share > 0.99 else f"{share:.0%}"
    return f"{part} of the chosen arms' scores is exploration, the rest is what was learned."


def idle_signals(told: Mapping[str, Any], names: Sequence[str], budget: int, pending: Pending | None) -> list[Signal]:
    """Arms that were not tried for long, what is under way included."""
    if "latest" not in told or pending is None:
        return []
    latest = np.array(told["latest"], np.int64)
    heard = latest > 0
    for played, x in pending.waiting.items():
        latest = np.where(x, np.maximum(latest, played), latest)
    limit = IDLE_TURNS * len(names) / max(budget, 1)
    idle = pending.rounds - latest
    long = those(names, heard & (idle > limit))
    if not long:
        return []
    longest = int(idle[heard & (idle > limit)].max())
    sentence = f"Not tried for more than {limit:.0f} rounds, the longest for {longest}: {listed(long)}."
    return [Signal("arms-idle", True, sentence, float(longest), long)]


def change_signals(told: Mapping[str, Any], pending: Pending | None) -> list[Signal]:
    """Whether outcomes come later than the world changes, or than the policy remembers."""
    if pending is None or pending.rounds == 0:
        return []
    found, delay = [], pending.delay
    changes = told.get("changes_seen")
    if changes is not None:
        times = int(changes)
        compared = pending.timed and times > 0  # a world that was not seen to change outlasts every delay
        ratio = delay * (times + 1) / pending.rounds
        late = compared and ratio > 1
        gone = f", and outcomes take about {delay:.1f}: they tell of a world that is gone" if late else ""
        many = "No change was" if times == 0 else "1 change was" if times == 1 else f"{times} changes were"
        sentence = f"{many} noticed in {pending.rounds:,} round{'s' if pending.rounds > 1 else ''}{gone}."
        value = ratio if compared else None
        found.append(Signal("delay-exceeds-changes" if late else "changes-seen", late, sentence, value))
    memory = float(told.get("memory", np.inf))
    if pending.timed and delay > memory:
        sentence = (
            f"Outcomes take about {delay:.1f} rounds and the policy remembers about {memory:.0f}: most fade unheard."
        )
        found.append(Signal("delay-exceeds-memory", True, sentence, delay / memory))
    return found


def waiting_signals(pending: Pending | None) -> list[Signal]:
    """How many outcomes are under way, how long the oldest waits, and whether some may be lost."""
    if pending is None or not pending.waiting:
        return []
    ages = pending.ages
    oldest = max(ages.values())
    many = f"{len(ages)} outcomes are" if len(ages) > 1 else "1 outcome is"
    ago = "1 round" if oldest == 1 else f"{oldest} rounds"
    sentence = f"{many} under way; the oldest is of round {pending.rounds - oldest}, {ago} ago."
    found = [Signal("pending", False, sentence, float(oldest))]
    limit = OVERDUE * max(pending.longest, 1)
    overdue = sum(age > limit for age in ages.values())
    if pending.reported >= SEEN_ENOUGH and overdue:
        part = overdue / pending.rounds
        sentence = (
            f"{overdue} outcomes ({part:.0%} of all rounds) wait longer than {limit} rounds, twice the longest "
            "delay so far: they may be lost."
        )
        found.append(Signal("outcomes-overdue", True, sentence, float(overdue)))
    return found
