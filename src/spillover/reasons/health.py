"""Health signals: is the graph identified, are outcomes late or lost, is the decision mostly exploration.

Each signal has a code for programs and a sentence for people; a `warning` needs attention."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover.formatting import first_of, short_number
from spillover.reasons.render import format_number
from spillover.types import Array, BoolArray, Explanation
from spillover.validate import quoted

SAME = 1e-9  # arms whose correlation is closer to 1 or -1 than this cannot be distinguished
DIMENSION = 1e-10  # eigenvalues of the correlation matrix below this add no dimension
GUESS = 0.5  # share of exploration above which there is a warning
IDLE_TURNS = 10  # in fair rotation an arm is played every n / budget rounds; it is idle after this many such turns
OVERDUE = 2  # an outcome may be lost once it is this many times later than the longest delay so far
SEEN_ENOUGH = 10  # outcomes needed before the longest delay so far means anything
LISTED_ROUNDS = 5  # in a sentence
LISTED_PAIRS = 3
EFFORT_HINT = "A larger effort may settle it."


class Pending(NamedTuple):
    """The outcomes to come, and how late outcomes were so far; a delay of 0 is an outcome in its own round.

    >>> Pending(rounds=10, waiting={9: np.array([True, False])}, reported=9).waiting[9]
    array([ True, False])
    """

    rounds: int  # played
    waiting: Mapping[int, BoolArray]  # the rounds whose outcomes have not arrived, and what was played in them
    reported: int = 0
    total: int = 0  # sum of the delays of the reported rounds
    longest: int = 0
    timed: bool = True  # whether the arrival times are known; a file that was filled in later does not have them
    observed: BoolArray | None = None  # which arms have outcomes, where that is known: policies forget
    labels: Sequence[str] | None = None  # what all rounds so far are called; None: by their numbers

    @property
    def ages(self) -> dict[int, int]:
        return {played: self.rounds - played for played in self.waiting}

    @property
    def delay(self) -> float:
        """The mean delay, a lower bound: outcomes to come count with the rounds that they have waited so far."""
        known = self.reported + len(self.waiting)
        return (self.total + sum(self.ages.values())) / known if known else 0.0


class Signal(NamedTuple):
    """One health signal.

    >>> Signal("pending", warning=False, sentence="2 outcomes are pending.", value=2.0).code
    'pending'
    """

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
    effort_hint: str = EFFORT_HINT,
) -> tuple[Signal, ...]:
    """All signals that the arguments allow, warnings first.

    signals: what the policy's `signals(state)` returns. effort_hint: how to make the search for a set longer.

    >>> import spillover as sp
    >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), seed=1)
    >>> [signal.code for signal in health(learner.explain(), ["web", "radio"], budget=1)]
    ['arms-unknown', 'planned']
    """
    signals = signals or {}
    if not signals.get("learns", True):
        return tuple(waiting_signals(pending))
    found = [
        *proof_signals(explanation, signals, effort_hint),
        *unknown_arms(explanation, names, pending, signals),
        *graph_signals(signals, names),
        *doubt_signals(signals),
        *assumption_signals(signals, names),
        *exploration_signals(explanation),
        *idle_signals(signals, names, budget, pending),
        *change_signals(signals, pending),
        *waiting_signals(pending),
    ]
    return tuple(sorted(found, key=lambda signal: not signal.warning))


def masked_names(names: Sequence[str], mask: BoolArray) -> tuple[str, ...]:
    return tuple(name for name, here in zip(names, mask.tolist(), strict=True) if here)


def join_names(names: Sequence[str], most: int = 8) -> str:
    """The first names in a sentence, and how many more there are."""
    return first_of(list(map(quoted, names)), most)


def join_rounds(labels: Sequence[str]) -> str:
    """Rounds in a sentence: the latest by name, where there are many."""
    rest = len(labels) - LISTED_ROUNDS
    return ", ".join(labels) if rest <= 0 else f"{', '.join(labels[-LISTED_ROUNDS:])} and {rest:,} before"


def unproved(explanation: Explanation, signals: Mapping[str, Any]) -> tuple[float, float]:
    """Bound how much more another feasible set could score, also as a share of the chosen arms' total score.

    NaN where no set was searched for by learned scores, and where the total is not positive. The total is that of the
    finite scores: arms with an infinite score come first whatever the others are worth.
    """
    if explanation.could_gain is None or not signals.get("learns", True):
        return np.nan, np.nan
    more = float(explanation.could_gain)
    total = float(explanation.score[explanation.chosen & np.isfinite(explanation.score)].sum())
    return more, more / total if total > 0 and np.isfinite(more) else np.nan


def proof_signals(explanation: Explanation, signals: Mapping[str, Any], effort_hint: str) -> list[Signal]:
    """Whether the search for the best set ended before the set was proved to be optimal."""
    more, share = unproved(explanation, signals)
    if not more > 0:
        return []
    if np.isinf(more):
        better = "be better on the arms with infinite scores"
    else:
        all_finite = np.isfinite(explanation.score[explanation.chosen]).all()
        total = "total score" if all_finite else "total of the finite scores"
        of_total = f" ({100 * share:.3g}% of the {total})" if share > 0 else ""
        better = f"score up to {format_number(more)} more{of_total}"
    sentence = f"The set is not proved to be optimal under the constraints: another could {better}. {effort_hint}"
    return [Signal("set-not-proved", True, sentence, more)]


def unknown_arms(
    explanation: Explanation, names: Sequence[str], pending: Pending | None, signals: Mapping[str, Any]
) -> list[Signal]:
    """Arms without data: never tried, tried but not observed yet, or observed and forgotten by the policy."""
    without_data = ~(explanation.count > 0)
    if signals.get("of_sets", False) and without_data.any():  # the arm may have outcomes, in other sets
        arms = masked_names(names, without_data)
        sets, them = ("sets", "them") if len(arms) > 1 else ("set", "it")
        sentence = f"No data on the best {sets} with {join_names(arms)}: no outcome of {them} yet."
        return [Signal("arms-unknown", True, sentence, float(len(arms)), arms)]
    tried = np.zeros(len(names), np.bool_)
    for x in pending.waiting.values() if pending else ():
        tried |= x
    observed = np.zeros_like(tried) if pending is None or pending.observed is None else pending.observed
    never = masked_names(names, without_data & ~observed & ~tried)
    under_way = masked_names(names, without_data & ~observed & tried)
    found = []
    if forgotten := masked_names(names, without_data & observed):
        sentence = f"The policy has forgotten all outcomes of {join_names(forgotten)}."
        found.append(Signal("arms-forgotten", True, sentence, float(len(forgotten)), forgotten))
    if never:
        sentence = f"No data on {join_names(never)}: never chosen in a round with an outcome."
        found.append(Signal("arms-unknown", True, sentence, float(len(never)), never))
    if under_way:
        sentence = f"The first outcome of {join_names(under_way)} has not arrived yet."
        found.append(Signal("arms-under-way", False, sentence, float(len(under_way)), under_way))
    return found


def graph_signals(signals: Mapping[str, Any], names: Sequence[str]) -> list[Signal]:
    """Whether the outcomes so far identify the graph, and which arms they cannot distinguish."""
    if "gram" not in signals:
        return []
    rank, alike = dimensions(np.asarray(signals["gram"], float))
    n = len(names)
    found = []
    if rank < n:
        sentence = (
            f"The graph is not identified: the outcomes so far vary in {rank} of {n} dimensions, so several graphs fit."
        )
        found.append(Signal("graph-not-identified", True, sentence, float(rank)))
    else:
        sentence = "The outcomes so far vary enough to identify the graph."
        found.append(Signal("graph-identified", False, sentence, float(rank)))
    for group in alike:
        together = tuple(names[j] for j in group)
        sentence = (
            f"The outcomes of {join_names(together)} always rise and fall together: "
            "their effects cannot be distinguished."
        )
        found.append(Signal("arms-together", True, sentence, float(len(together)), together))
    return found


def dimensions(gram: Array) -> tuple[int, list[tuple[int, ...]]]:
    """The rank of a sum of y y', whatever the units of the arms, and the groups of arms in fixed proportion."""
    size = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    varying = np.flatnonzero(size > 0)
    correlation = gram[np.ix_(varying, varying)] / np.outer(size[varying], size[varying])
    if not len(varying):
        return 0, []
    rank = int((np.linalg.eigvalsh(correlation) > DIMENSION).sum())
    groups: dict[int, list[int]] = {}
    for k, row in enumerate(np.abs(correlation) > 1.0 - SAME):
        groups.setdefault(int(np.argmax(row)), []).append(int(varying[k]))
    return rank, [tuple(group) for group in groups.values() if len(group) > 1]


def doubt_signals(signals: Mapping[str, Any]) -> list[Signal]:
    """Whether the rewards mislead about the graph, and a baseline that nobody declared."""
    found = []
    if bool(signals.get("confounded", False)):
        sentence = (
            "Rewards and outcomes have a hidden common cause: they move together more than spill-over explains. "
            "Spill-over is therefore estimated from the decisions."
        )
        found.append(Signal("confounded", True, sentence))
    if bool(signals.get("baseline", False)):
        sentence = "Outcomes are not 0 where nothing is chosen: a baseline was fitted for each arm."
        found.append(Signal("baseline", True, sentence))
    return found


CONTRADICTIONS = {  # of an assumption by pairs of arms: the code, what one does to the other, what is wrong, what helps
    "against_order": (
        "order-contradicted",
        "affects",
        "the declared order of the arms, causes after effects",
        "Reorder the arms, or do not declare an order (acyclic=False)",
    ),
    "negative_effects": (
        "negative-effects",
        "lowers",
        "that arms never lower the outcomes of others",
        "The estimate allows for it by now; signed=True, of the graph learner, does so from the first round on",
    ),
}


def assumption_signals(signals: Mapping[str, Any], names: Sequence[str]) -> list[Signal]:
    """Whether the outcomes contradict the declared order, positive edges, or that z and y have the same unit."""
    found = []
    for key, (code, verb, contradicted, remedy) in CONTRADICTIONS.items():
        against = np.argwhere(np.asarray(signals.get(key, False)))
        if len(against):
            pairs = [f"{quoted(names[j])} {verb} {quoted(names[i])}" for i, j in against.tolist()]
            sentence = f"The outcomes contradict {contradicted}: {first_of(pairs, LISTED_PAIRS)}. {remedy}."
            arms = tuple(names[j] for j in dict.fromkeys(against[:, 1].tolist()))
            found.append(Signal(code, True, sentence, float(len(pairs)), arms))
    factor = unit_factor(np.asarray(signals.get("own_slopes", np.nan), float).reshape(-1))
    if factor is not None:
        found.append(Signal("units-differ", True, unit_sentence(factor), factor))
    return found


def exploration_signals(explanation: Explanation) -> list[Signal]:
    """Say how much of the chosen arms' scores is exploration, or which plan decided instead."""
    if bool(explanation.planned):
        sentence = f"A plan decided this round, not the scores: {explanation.plan}."
        return [Signal("planned", False, sentence)]
    chosen = explanation.chosen
    known = chosen & np.isfinite(explanation.mean) & (explanation.count > 0)
    learned = np.where(known, np.abs(explanation.weights * np.where(known, explanation.mean, 0.0)), 0.0).sum()
    bonus = np.where(known, explanation.index, 0.0) - np.where(known, explanation.mean, 0.0)
    added = np.abs(np.where(known, explanation.weights * bonus, np.where(chosen, explanation.score, 0.0))).sum()
    if not chosen.any() or learned + added == 0:
        return []
    share = 1.0 if not np.isfinite(added) else float(added / (learned + added))
    infinite = int(np.isposinf(explanation.score[chosen]).sum())
    sentence = infinite_sentence(infinite, int(chosen.sum())) if infinite else share_sentence(share)
    return [Signal("mostly-exploration" if share > GUESS else "exploration", share > GUESS, sentence, share)]


def infinite_sentence(infinite: int, chosen: int) -> str:
    have = "has" if infinite == 1 else "have"
    return f"{infinite} of {chosen} chosen arms {have} an infinite score, which is all exploration."


def share_sentence(share: float) -> str:
    """The share of exploration in words; a rounded 0% or 100% would be wrong."""
    if share == 1.0:
        return "The chosen arms' scores are all exploration."
    if share == 0.0:
        return "None of the chosen arms' scores is exploration: they are all learned from data."
    percent = "Less than 1%" if share < 0.01 else "More than 99%" if share > 0.99 else f"{share:.0%}"
    return f"{percent} of the chosen arms' scores is exploration; the rest is learned from data."


def idle_signals(
    signals: Mapping[str, Any], names: Sequence[str], budget: int, pending: Pending | None
) -> list[Signal]:
    """Arms that were not tried for a long time; pending rounds count as tried."""
    if "latest" not in signals or pending is None:
        return []
    latest = np.array(signals["latest"], np.int64)
    observed = latest > 0
    for played, x in pending.waiting.items():
        latest = np.where(x, np.maximum(latest, played), latest)
    limit = IDLE_TURNS * len(names) / max(budget, 1)
    idle = pending.rounds - latest
    arms = masked_names(names, observed & (idle > limit))
    if not arms:
        return []
    longest = int(idle[observed & (idle > limit)].max())
    sentence = f"Not tried for more than {limit:.0f} rounds (the longest: {longest}): {join_names(arms)}."
    return [Signal("arms-idle", True, sentence, float(longest), arms)]


def change_signals(signals: Mapping[str, Any], pending: Pending | None) -> list[Signal]:
    """Whether outcomes arrive later than the world changes, or later than the policy remembers."""
    if pending is None or pending.rounds == 0:
        return []
    found, delay = [], pending.delay
    changes = signals.get("changes_seen")
    if changes is not None:
        times = int(changes)
        compared = pending.timed and times > 0  # a world in which no change was detected outlasts every delay
        ratio = delay * (times + 1) / pending.rounds
        late = compared and ratio > 1
        outdated = f", and outcomes take about {delay:.1f} rounds: most are outdated when they arrive" if late else ""
        many = "No change was" if times == 0 else "1 change was" if times == 1 else f"{times} changes were"
        sentence = f"{many} detected in {pending.rounds:,} round{'s' if pending.rounds > 1 else ''}{outdated}."
        value = ratio if compared else None
        found.append(Signal("delay-exceeds-changes" if late else "changes-seen", late, sentence, value))
    memory = float(signals.get("memory", np.inf))
    if pending.timed and delay > memory:
        sentence = (
            f"Outcomes take about {delay:.1f} rounds, but the policy remembers only about {memory:.0f}: "
            "most of their weight is gone when they arrive."
        )
        found.append(Signal("delay-exceeds-memory", True, sentence, delay / memory))
    return found


def waiting_signals(pending: Pending | None) -> list[Signal]:
    """Say how many outcomes are to come, how long the oldest has been waiting, and whether some may be lost."""
    if pending is None or not pending.waiting:
        return []
    ages = pending.ages
    found = [Signal("pending", False, waiting_sentence(pending), float(max(ages.values())))]
    limit = OVERDUE * max(pending.longest, 1)
    overdue = sum(age > limit for age in ages.values())
    if pending.reported >= SEEN_ENOUGH and overdue:
        share = overdue / pending.rounds
        have = "has" if overdue == 1 else "have"
        sentence = (
            f"{overdue} outcome{'s' if overdue > 1 else ''} ({share:.0%} of all rounds) {have} been pending for more "
            f"than {limit} rounds, twice the longest delay so far, and may be lost."
        )
        found.append(Signal("outcomes-overdue", True, sentence, float(overdue)))
    return found


def waiting_sentence(pending: Pending) -> str:
    """Say which outcomes are to come: by their labels where rounds have any, else how many and since when."""
    many = f"{len(pending.waiting):,} outcomes are" if len(pending.waiting) > 1 else "1 outcome is"
    if pending.labels is not None:
        return f"{many} pending: {join_rounds([pending.labels[played - 1] for played in sorted(pending.waiting)])}."
    oldest = max(pending.ages.values())
    ago = "1 round" if oldest == 1 else f"{oldest} rounds"
    return f"{many} pending; the oldest is of round {pending.rounds - oldest}, {ago} ago."


FACTOR = 2.0  # a direct effect may differ from 1 by so much for other reasons


def unit_factor(slopes: Array) -> float | None:
    """The median slope, if those of at least half of the arms are far from 1 in the same direction; otherwise None.

    slopes: (n,), 1 where a slope does not clearly differ from 1, NaN where it is not known.

    >>> unit_factor(np.array([1000.0, 998.0, 1.0, np.nan]))
    999.0
    >>> unit_factor(np.array([1.7, 1.0, 0.6])) is None
    True
    """
    known = slopes[np.isfinite(slopes)]
    for far in (known > FACTOR, known < 1.0 / FACTOR):
        if far.any() and 2 * far.sum() >= len(known):
            return float(np.median(known[far]))
    return None


def unit_sentence(factor: float) -> str:
    return (
        f"The rewards z and the outcomes y seem to be in different units: one unit of an arm's z goes with about "
        f"{short_number(factor)} of its own y. Effects are estimated for equal units: convert one of the two."
    )
