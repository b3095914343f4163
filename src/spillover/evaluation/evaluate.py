"""Evaluate a table of past decisions: read it, draw worlds, and play policies and fixed sets in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, Unavailable
from spillover.constraints.search import EFFORT, best_set, check_feasible
from spillover.contracts import AnyPolicy, as_policy, require_suits
from spillover.evaluation.log import Log, decisions_on, log_of, propensities_of, weighed
from spillover.evaluation.posterior import drawn_worlds
from spillover.evaluation.result import Answer, Evaluation, answer_of, course_rounds, in_sign
from spillover.evaluation.worlds import (
    Counterfactual,
    Worlds,
    effect_of_each_arm,
    of_best_sets,
    of_decisions,
    of_policy,
)
from spillover.formatting import count_of, join_names
from spillover.history import History, read_history
from spillover.policies import Constrained
from spillover.recommendation.decide import build_policy, check_budget, recommended_policy
from spillover.recommendation.estimates import Facts, facts_of
from spillover.types import Array, BoolArray
from spillover.validate import quoted, suggestion

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
        constraints=(*constraints, *((Unavailable(list(unavailable)),) if unavailable else ())),
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
    answer = answer_of(one.name, played(one, worlds, delay, asked.seed), logged, worlds.log, sign)
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


def played(candidate: Candidate, worlds: Worlds, delay: int, seed: int) -> Counterfactual:
    """Play a candidate in the worlds that the log leaves possible."""
    if candidate.arms is not None:
        return of_decisions(worlds, every_round(candidate.arms, worlds.log))
    return of_policy(worlds, candidate.policy, delay, seed)


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
