"""Evaluate a table of past decisions: what was earned, what others would have earned, whether the table can tell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint
from spillover.constraints.search import EFFORT, best_set, check_feasible
from spillover.contracts import AnyPolicy, as_policy, require_suits
from spillover.evaluation.posterior import drawn_worlds
from spillover.evaluation.worlds import (
    Counterfactual,
    Estimate,
    Log,
    Weighed,
    Worlds,
    decisions_on,
    effect_of_each_arm,
    interval_of,
    log_of,
    of_best_sets,
    of_decisions,
    of_policy,
    propensities_of,
    weighed,
)
from spillover.formatting import (
    Interval,
    Shown,
    count_of,
    decimals_for,
    format_estimate,
    join_lines,
    join_names,
    printable,
    round_to,
    short_number,
    view_of,
)
from spillover.history import History, read_history
from spillover.history.read import name_of
from spillover.policies import Constrained
from spillover.recommendation.decide import build_policy, check_budget, recommended_policy, with_unavailable
from spillover.recommendation.estimates import Facts, facts_of
from spillover.registry import needed_for
from spillover.types import Array, BoolArray
from spillover.validate import quoted, suggestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure


BETTER, WORSE, SAME, UNCLEAR = "better", "worse", "the same", "cannot tell"
MOST_UNTRIED = 0.1  # share of choices that the log knows nothing about, above which it cannot tell
POINTS = 200  # of a course, at most


class PayoffCurve(NamedTuple):
    """The expected payoff up to some rounds, with its 95% interval."""

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """The expected payoff that decisions would have had in all rounds, with 95% intervals; in the sign of the table.

    >>> import spillover as sp
    >>> table = {"week": range(12), "promo_a": [1, 0, 1, 0] * 3, "promo_b": [0, 1, 0, 1] * 3}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5] * 2, "sales_b": [3, 4, 3, 5, 3, 4] * 2}
    >>> answer = sp.evaluate(table, always=[["a"]], draws=50).answers[0]
    >>> answer.interval[0] < answer.payoff < answer.interval[1]
    True
    """

    name: str
    payoff: float
    interval: tuple[float, float]
    difference: float  # to the decisions of the log
    difference_interval: tuple[float, float]
    gain: tuple[float, float]  # the same interval in the sign that is maximised
    arms: tuple[str, ...]  # that it chose in at least one of a hundred choices, the most frequent first
    untried: tuple[str, ...]  # those of them that the log never chose
    untried_share: float  # of its choices
    course: PayoffCurve
    weighed: Weighed | None = None  # by propensities, of all rounds together

    @property
    def verdict(self) -> str:
        """Whether it would have done better than the log, worse, the same for sure, or nobody can tell."""
        if self.gain == (0.0, 0.0):
            return SAME
        if self.untried_share > MOST_UNTRIED:
            return UNCLEAR
        return BETTER if self.gain[0] > 0 else WORSE if self.gain[1] < 0 else UNCLEAR

    def to_dict(self) -> dict[str, Any]:
        values = ((name, getattr(self, name)) for name in SHOWN)
        found = {name: list(value) if isinstance(value, tuple) else value for name, value in values}
        return found if self.weighed is None else {**found, "by_propensity": weighed_dict(self.weighed)}


SHOWN = (
    *("name", "payoff", "interval", "difference", "difference_interval", "verdict", "arms", "untried"),
    "untried_share",
)


def weighed_dict(found: Weighed) -> dict[str, Any]:
    estimates = {"ips": found.ips, "snips": found.snips, "doubly_robust": found.dr}
    values: dict[str, Any] = {
        name: None if one is None else {"payoff": one.value, "interval": [one.low, one.high]}
        for name, one in estimates.items()
    }
    return {**values, "effective_rounds": found.effective, "matching_rounds": found.matching, "enough": found.enough}


def answer_of(name: str, found: Counterfactual, logged: Counterfactual, log: Log, sign: float) -> Answer:
    """An answer from draws."""
    gap, count = np.clip(found.payoff - logged.payoff, *log.possible_gain), len(log.x)
    gain, (least, most) = interval_of(gap, log.possible_gain), log.possible
    tried = np.asarray(log.x.any(axis=0))
    order = [int(j) for j in np.argsort(-found.shares, kind="stable") if found.shares[j] >= 0.01]
    kept = course_rounds(len(log.x))
    ends = np.array([interval_of(found.course[:, t], ((t + 1) * least, (t + 1) * most)) for t in kept]).T
    low, high = np.sort(sign * ends, axis=0)
    return Answer(
        name=name,
        payoff=sign * float(found.payoff.mean()),
        interval=ordered(interval_of(found.payoff, (count * least, count * most)), sign),
        difference=sign * float(gap.mean()),
        difference_interval=ordered(gain, sign),
        gain=gain,
        arms=tuple(log.arms[j] for j in order),
        untried=tuple(log.arms[j] for j in order if not tried[j]),
        untried_share=float(found.shares[~tried].sum()),
        course=PayoffCurve(sign * found.course[:, kept].mean(axis=0), low, high),
    )


def ordered(interval: tuple[float, float], sign: float) -> tuple[float, float]:
    """An interval in the sign of the table."""
    return interval if sign > 0 else (-interval[1], -interval[0])


def course_rounds(count: int) -> list[int]:
    """Places of the rounds of a course, the last one included."""
    return [int(t) for t in np.unique(np.linspace(0, count - 1, min(count, POINTS)).astype(int))]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(Shown):
    """The evaluation of past decisions: `print` it, or see `answers`, `plot`, `to_frame` and `to_dict`.

    >>> import spillover as sp
    >>> table = {"week": range(12), "promo_a": [1, 0, 1, 0] * 3, "promo_b": [0, 1, 0, 1] * 3}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5] * 2, "sales_b": [3, 4, 3, 5, 3, 4] * 2}
    >>> sp.evaluate(table, always=[["a"], ["b"]], draws=50).to_frame().index.to_list()
    ['as it was', 'always a', 'always b', 'best fixed set', 'upper bound']
    """

    view = "spillover.views:EvaluationView"

    source: str  # the name of the file; "" for a table in memory
    history: History
    log: Log
    delay: int
    draws: int
    earned: float  # what the rounds brought, as the table says
    earned_course: Array  # up to each round of a course
    logged: Answer  # the decisions of the log, in expectation
    answers: tuple[Answer, ...]  # policies, and sets that are always chosen
    fixed: Answer  # the fixed set that looks best in hindsight
    bound: Answer  # the best set of every round, known in advance: an upper bound
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return evaluation_text(self)

    @property
    def rows(self) -> tuple[Answer, ...]:
        """All answers, those of the log first."""
        return (self.logged, *self.answers, self.fixed, self.bound)

    def find(self, name: str) -> Answer:
        """The answer of that name."""
        for answer in self.rows:
            if answer.name == name:
                return answer
        raise KeyError(name)

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the rounds of a course."""
        return [self.log.rounds[t] for t in course_rounds(len(self.log.x))]

    def to_frame(self) -> Any:
        """All answers as a pandas table."""
        with needed_for("a data frame", "research"):
            import pandas as pd

        names = ["name", "payoff", "low", "high", "difference", "difference_low", "difference_high", "verdict"]
        rows = [
            (one.name, one.payoff, *one.interval, one.difference, *one.difference_interval, one.verdict)
            for one in self.rows
        ]
        rows[0] = (*rows[0][:-1], "")  # of the log itself
        return pd.DataFrame(rows, columns=names).set_index("name")

    def plot(self) -> "Figure":
        """Payoff up to each round: what was earned, and what each policy would have earned.

        >>> import spillover as sp
        >>> table = {"week": range(12), "promo_a": [1, 0, 1, 0] * 3, "promo_b": [0, 1, 0, 1] * 3}
        >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5] * 2, "sales_b": [3, 4, 3, 5, 3, 4] * 2}
        >>> sp.evaluate(table, always=[["a"]], draws=50).plot().axes[0].get_ylabel()
        'payoff up to the round'
        """
        drawn: Figure = view_of(self.view, self).plot()
        return drawn

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values; the same as `spillover evaluate --json`."""
        return {
            "file": self.source,
            "rounds": len(self.log.x),
            "budget": self.log.problem.budget,
            "delay": self.delay,
            "draws": self.draws,
            "earned": self.earned,
            "logged": {name: value for name, value in self.logged.to_dict().items() if name in KEPT},
            "answers": [answer.to_dict() for answer in self.answers],
            "best_fixed_set": self.fixed.to_dict(),
            "upper_bound": {name: value for name, value in self.bound.to_dict().items() if name != "verdict"},
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


KEPT = ("name", "payoff", "interval", "arms")  # of the log's own answer


def in_sign(found: Weighed, count: float, sign: float) -> Weighed:
    """Averages of a round as sums of all rounds, in the sign of the table."""
    count *= sign
    dr = None if found.dr is None else found.dr.times(count)
    return found._replace(ips=found.ips.times(count), snips=found.snips.times(count), dr=dr)


NAME = 26  # characters of a name, at most
CELL = 25


def evaluation_text(found: Evaluation) -> str:
    """Write what was earned, a table, and a sentence for each policy."""
    rounds = count_of(len(found.log.x), "round")
    source = f"{name_of(found.source)}: " if found.source else ""
    arms = count_of(len(found.log.arms), "arm")
    lines = [f"{source}{rounds} with outcomes, {arms}; they brought {short_number(found.earned)}."]
    lines += ["", *table_lines(found), ""]
    lines += [verdict_sentence(found, answer) for answer in found.answers]
    lines += [left_sentence(found)]
    if any(answer.weighed is not None for answer in found.answers):
        lines += ["", *propensity_lines(found)]
    lines += [f"Warning: {sentence}" for sentence in found.warnings]
    lines += [f"Note: {note}." for note in found.notes]
    return join_lines(lines)


def table_lines(found: Evaluation) -> Iterator[str]:
    """Payoffs and differences of everything, with 95% intervals; at most 80 characters wide."""
    width = min(max(len(printable(answer.name)) for answer in found.rows), NAME)
    yield f"{'':{width}}  {'expected payoff (95%)':{CELL}}  difference from the log"
    for answer in found.rows:
        cells = [cut(answer.name, width), with_interval(answer.payoff, answer.interval)]
        gap = "" if answer is found.logged else with_interval(answer.difference, answer.difference_interval)
        yield f"{cells[0]:{width}}  {cells[1]:{CELL}}  {gap}".rstrip()


def with_interval(value: float, interval: Interval) -> str:
    """A number with its interval; without it if the number is certain.

    >>> with_interval(60.0, (56.1, 63.8)), with_interval(60.0, (60.0, 60.0))
    ('60 (56 to 64)', '60.0')
    """
    return short_number(value) if interval[0] == interval[1] else format_estimate(value, interval)


def cut(name: str, width: int) -> str:
    shown = printable(name)
    return shown if len(shown) <= width else shown[: width - 3] + "..."


def verdict_sentence(found: Evaluation, answer: Answer) -> str:
    """Whether it would have done better, as far as the log can tell."""
    if answer.verdict == SAME:
        return f"{answer.name} would have brought the same: no decision changes the sum of the outcomes."
    if answer.verdict == UNCLEAR:
        why = "the interval of the difference includes 0"
        if answer.untried_share > MOST_UNTRIED:
            why = f"{answer.untried_share:.0%} of its choices were never tried ({join_names(answer.untried)})"
        return f"The log cannot tell whether {answer.name} would have done better: {why}."
    size = abs(answer.difference)
    low, high = sorted(abs(end) for end in answer.difference_interval)
    more = "more" if answer.difference > 0 else "less"
    word = "better" if answer.verdict == BETTER else "worse"
    return f"{answer.name} would have done {word}: {format_estimate(size, (low, high))} {more}."


def left_sentence(found: Evaluation) -> str:
    """Say what was left on the table, at most."""
    low, high = found.bound.gain
    if found.bound.verdict == SAME:
        return "Left on the table: nothing, as no decision changes the sum of the outcomes."
    decimals, gain = decimals_for((high - low) / 2), max(high, 0.0)
    most = f"{round_to(-gain, decimals)} at most" if found.history.minimise else f"at most {round_to(gain, decimals)}"
    return (
        f"Left on the table: {most}, if the best set of every round had been known in advance; "
        f"with one fixed set ({join_names(found.fixed.arms) or 'none'}), "
        f"{format_estimate(found.fixed.difference, found.fixed.difference_interval)}."
    )


def propensity_lines(found: Evaluation) -> Iterator[str]:
    """Estimates from the rounds whose set a policy would have chosen too."""
    width = min(max(len(printable(answer.name)) for answer in found.answers), NAME)
    yield "By propensities, without a model:"
    yield f"{'':{width}}  rounds  {'self-normalised (95%)':{CELL}}  doubly robust (95%)"
    for answer in found.answers:
        if answer.weighed is None:
            continue
        cells = [shown(answer.weighed.snips), shown(answer.weighed.dr)]
        effective = f"{answer.weighed.effective:.0f}"
        yield f"{cut(answer.name, width):{width}}  {effective:>6}  {cells[0]:{CELL}}  {cells[1]}".rstrip()
        if not answer.weighed.enough:
            yield f"  {answer.weighed.matching} rounds match {answer.name}: too few, the propensities cannot tell."


def shown(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value != estimate.value:
        return "-"
    return format_estimate(estimate.value, (estimate.low, estimate.high))


DRAWS, FEWEST_DRAWS, MOST_DRAWS = 200, 20, 10_000
LOGGED, FIXED, BOUND = "as it was", "best fixed set", "upper bound"


class Candidate(NamedTuple):
    """A candidate to evaluate: a policy, or the same arms in every round."""

    name: str
    policy: Any = None
    arms: BoolArray | None = None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The settings of an evaluation."""

    budget: int | None = None
    candidates: tuple[Candidate, ...] = ()
    always: Sequence[Sequence[str]] = ()
    propensity: Array | None = None  # (rounds,), of all rounds of the history
    delay: int | None = None
    draws: int = DRAWS
    seed: int = 0
    reward_range: tuple[float, float] | None = None
    overall_range: tuple[float, float] | None = None
    constraints: tuple[Constraint, ...] = ()
    effort: int = EFFORT


def evaluate(
    table: Any,
    *,
    budget: int | None = None,
    policy: str | AnyPolicy | Sequence[str | AnyPolicy] | None = None,
    always: Sequence[Sequence[str]] = (),
    propensity: str | None = None,
    delay: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    constraints: Sequence[Constraint] = (),
    unavailable: Sequence[str] = (),
    **reading: Any,
) -> Evaluation:
    """Compare past decisions with what policies would have earned in the same rounds.

    table: a path, or a table in memory. budget: how many arms a policy may choose, at most; by default as many as were
    chosen, if that was the same number in every round.
    policy: one or several, by name or the policy itself; by default the one that `next_decision` would use.
    always: sets of arms to compare with, each chosen in every round.
    propensity: the column with the probability of the set that was chosen, if decisions were random.
    delay: after how many rounds a policy learns an outcome; by default as many as are pending at the end of the table.
    draws: how many worlds are drawn from the posterior. constraints: on the decisions of policies.
    reading: further options of `read_history`.

    >>> table = {"week": range(12), "promo_a": [1, 0, 1, 0] * 3, "promo_b": [0, 1, 0, 1] * 3}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5] * 2, "sales_b": [3, 4, 3, 5, 3, 4] * 2}
    >>> found = evaluate(table, always=[["a"]], draws=50)
    >>> [(answer.name, answer.verdict) for answer in found.answers]
    [('always a', 'better')]
    """
    history = read_history(table, reward_range=reward_range, overall_range=overall_range, **reading)
    known = None if propensity is None else propensities_of(table, history, propensity, **reading)
    asked = Asked(
        budget=budget,
        candidates=policies_of(policy),
        always=always,
        propensity=known,
        delay=delay,
        draws=draws,
        seed=seed,
        reward_range=reward_range,
        overall_range=overall_range,
        constraints=with_unavailable(constraints, unavailable),
    )
    return evaluate_history(history, asked, str(table) if isinstance(table, str | Path) else "")


def policies_of(given: Any) -> tuple[Candidate, ...]:
    """The policies that are asked for."""
    if given is None:
        return ()
    several = given if isinstance(given, list | tuple) else [given]
    return tuple(
        Candidate(one, build_policy(one, ())) if isinstance(one, str) else Candidate(type(one).__name__, as_policy(one))
        for one in several
    )


def evaluate_history(history: History, asked: Asked, source: str = "") -> Evaluation:
    """Evaluate a history; see `evaluate`. source: the name of its file."""
    most = check_budget(usual_size(history) if asked.budget is None else asked.budget, history)
    late = pending_at_end(history) if asked.delay is None else asked.delay
    validate.whole("draws", asked.draws, FEWEST_DRAWS, MOST_DRAWS)
    validate.whole("delay", late, 0)
    check_feasible(asked.constraints, len(history.arms), most, history.arms)
    facts = facts_of(history)
    constant = facts.assessment.find("constant-sum") is not None
    log = log_of(history, most, asked.reward_range, asked.overall_range, constant=constant)
    wanted = candidates_of(history, facts, asked, log)
    worlds = drawn_worlds(log, asked.draws, asked.seed)
    sign = -1.0 if history.minimise else 1.0
    logged = of_decisions(worlds, log.amounts)
    best = best_set(effect_of_each_arm(worlds), most, asked.constraints, arms=log.arms, effort=asked.effort)
    answers = [answered(one, worlds, logged, asked, late, sign) for one in wanted]
    earned = sign * log.payoff
    return Evaluation(
        source=source,
        history=history,
        log=log,
        delay=late,
        draws=asked.draws,
        earned=float(earned.sum()),
        earned_course=np.cumsum(earned)[course_rounds(len(log.x))],
        logged=answer_of(LOGGED, logged, logged, log, sign),
        answers=tuple(answers),
        fixed=answer_of(FIXED, of_decisions(worlds, every_round(best, log)), logged, log, sign),
        bound=answer_of(BOUND, of_best_sets(worlds), logged, log, sign),
        notes=tuple(notes_of(log, late, most, facts)),
        warnings=tuple(warnings_of(facts, answers)),
    )


def candidates_of(history: History, facts: Facts, asked: Asked, log: Log) -> list[Candidate]:
    """Policies under the constraints, and fixed sets; the policy that suits the table if nothing is asked for."""
    policies = asked.candidates
    if not policies and not asked.always:
        policies = (Candidate(*recommended_policy(history, facts)),)
    limited = [bound(one, asked.constraints, log, asked.effort) for one in policies]
    return [*limited, *(fixed_set(arms, log) for arms in asked.always)]


def answered(one: Candidate, worlds: Worlds, logged: Counterfactual, asked: Asked, delay: int, sign: float) -> Answer:
    """Estimate what a candidate would have earned; by propensities too, if they are known."""
    if one.arms is not None:
        found = of_decisions(worlds, every_round(one.arms, worlds.log))
    else:
        found = of_policy(worlds, one.policy, delay, asked.seed)
    answer = answer_of(one.name, found, logged, worlds.log, sign)
    if asked.propensity is None:
        return answer
    return with_weights(answer, one, worlds, asked.propensity, delay, sign, asked.seed)


def usual_size(history: History) -> int | None:
    """Count the chosen arms, if that was the same number in every round."""
    sizes = np.unique(history.x.sum(axis=1))
    return int(sizes[0]) if len(sizes) == 1 and sizes[0] else None


def pending_at_end(history: History) -> int:
    """Count the last rounds without outcomes: the delay of the log."""
    known = np.flatnonzero(history.arrived)
    return len(history.arrived) - 1 - int(known[-1]) if len(known) else 0


def bound(candidate: Candidate, constraints: Sequence[Constraint], log: Log, effort: int) -> Candidate:
    """A policy under constraints, if it suits the log."""
    require_suits(as_policy(candidate.policy).for_problem(log.problem), log.problem)
    if not constraints:
        return candidate
    limited = Constrained(policy=candidate.policy, constraints=tuple(constraints), arms=log.arms, effort=effort)
    return candidate._replace(policy=limited)


def fixed_set(arms: Sequence[str], log: Log) -> Candidate:
    """The same arms in every round."""
    for name in arms:
        accepted = f"one of the arms of the table{suggestion(name, log.arms)}"
        validate.require(name in log.arms, "always", name, accepted)
    validate.require(len(arms) > 0, "always", arms, "at least one arm")
    mask = np.array([arm in arms for arm in log.arms])
    return Candidate(f"always {', '.join(quoted(arm) for arm in arms)}", arms=mask)


def every_round(arms: BoolArray, log: Log) -> Array:
    return np.broadcast_to(arms, log.x.shape).astype(float)


def with_weights(
    answer: Answer, candidate: Candidate, worlds: Worlds, propensity: Array, delay: int, sign: float, seed: int
) -> Answer:
    """The answer with estimates by propensities."""
    log = worlds.log
    if candidate.arms is not None:
        decisions = every_round(candidate.arms, log).astype(bool)
    else:
        decisions = decisions_on(candidate.policy, log, delay, seed)
    still = worlds.without.mean(axis=0)
    found = weighed(
        log.payoff,
        propensity[log.places],
        (decisions == log.x).all(axis=1).astype(float),
        model=worlds.expected(decisions.astype(float)).mean(axis=0) + still,
        predicted=worlds.expected(log.amounts).mean(axis=0) + still,
    )
    return replace(answer, weighed=in_sign(found, len(log.x), sign))


def notes_of(log: Log, delay: int, budget: int, facts: Facts) -> list[str]:
    """Say what the table can tell, and what was assumed."""
    said = facts.assessment.decisive(sees_rewards=facts.sees_rewards)
    found = [finding.sentence.rstrip(".") for finding in said if not finding.warning]
    if log.left_out:
        found.append(f"{count_of(log.left_out, 'round')} without all outcomes left out")
    when = "at the end of the same round" if not delay else f"{count_of(delay, 'round')} later"
    found.append(f"policies start with the first round, know nothing, and learn outcomes {when} (--delay)")
    average = float(log.x.sum(axis=1).mean())
    if abs(average - budget) > 0.05 * budget:
        found.append(f"policies may choose {budget} arms a round, and the log chose {average:.2g} on average")
    return found


def warnings_of(facts: Facts, answers: Sequence[Answer]) -> list[str]:
    """List what makes the answers doubtful."""
    said = facts.assessment.decisive(sees_rewards=facts.sees_rewards)
    found = [finding.sentence for finding in said if finding.warning]
    if bool(facts.assessment.moved.any()):
        found.append("Effects seem to depend on the context, but are taken to be the same in every context here.")
    untried = dict.fromkeys(arm for answer in answers for arm in answer.untried)
    if untried:
        found.append(f"Never chosen in the log: {join_names(list(untried))}. What is said of them is assumed.")
    return found
