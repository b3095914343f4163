"""From a table of past decisions and outcomes to the next decision, with reasons."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spillover.constraints import Constraint, Unavailable
from spillover.constraints.search import EFFORT, MOST_EFFORT
from spillover.contracts import AnyPolicy, as_policy
from spillover.formatting import short_number
from spillover.history import History, read_history
from spillover.history.record import default_range
from spillover.history.replay import known_signals, next_reasons
from spillover.learner.one import Learner
from spillover.policies import find_policy
from spillover.recommendation.cautions import cautions, different_units
from spillover.recommendation.choose import Chosen, check_budget, choose
from spillover.recommendation.clarity import unclear
from spillover.recommendation.estimates import Facts, facts_of, is_relative
from spillover.recommendation.question import Question
from spillover.recommendation.result import Recommendation, arm_answers
from spillover.validate import quoted

LISTED_DOSES = 6
MORE_EFFORT = 10  # times the effort to suggest where it was not enough


def next_decision(
    table: Any,
    *,
    budget: int | None = None,
    policy: str | AnyPolicy | None = None,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    constraints: Sequence[Constraint] = (),
    unavailable: Sequence[str] = (),
    explore: bool = False,
    effort: int = EFFORT,
    seed: int = 0,
    **reading: Any,
) -> Recommendation:
    """Read past decisions and outcomes, and recommend the next decision.

    table: a path, or a table in memory. budget: how many arms may be chosen, at most.
    policy: its name, or the policy itself; by default one that suits the table.
    reward_range, overall_range: of z and y.
    constraints: on this decision. unavailable: arms that cannot be chosen this time.
    explore: try arms that may turn out better, as the policy does, instead of the best by what is known.
    reading: further options of `read_history`.

    >>> import spillover as sp
    >>> table = {
    ...     "week": range(1, 13),
    ...     "promo_bread": [1, 0, 1, 0] * 3,
    ...     "promo_tea": [0, 1, 1, 0] * 3,
    ...     "sales_bread": [490, 400, 480, 398, 485, 402, 492, 400, 488, 399, 491, 401],
    ...     "sales_tea": [150, 190, 195, 152, 149, 193, 188, 151, 150, 189, 192, 148],
    ... }
    >>> answer = sp.next_decision(table, budget=1)
    >>> answer.choose
    ['bread']
    """
    question = Question(
        budget=budget,
        policy=as_policy(find_policy(policy)()) if isinstance(policy, str) else policy,
        name=policy if isinstance(policy, str) else "" if policy is None else type(policy).__name__,
        constraints=with_unavailable(constraints, unavailable),
        explore=explore,
        effort=effort,
        seed=seed,
        reward_range=reward_range,
        overall_range=overall_range,
        by_command=False,
    )
    history = read_history(table, **question.ranges, **reading)
    return answer(history, question, source=str(table) if isinstance(table, str | Path) else "")


def with_unavailable(constraints: Sequence[Constraint], unavailable: Sequence[str]) -> tuple[Constraint, ...]:
    return (*constraints, *((Unavailable(list(unavailable)),) if unavailable else ()))


def decide(
    history: History,
    *,
    source: str = "",
    constraints: Sequence[Constraint] = (),
    unavailable: Sequence[str] = (),
    **asked: Any,
) -> Recommendation:
    """The next decision after a history; see `next_decision`. asked: the other fields of a `Question`.

    >>> from spillover.history import read_history
    >>> table = {"week": range(8), "promo_a": [1, 0, 1, 0] * 2, "promo_b": [0, 1, 1, 0] * 2}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5, 9, 4], "sales_b": [3, 4, 4, 3, 3, 5, 4, 3]}
    >>> decide(read_history(table), budget=1).choose
    ['a']
    """
    given: dict[str, Any] = {"name": "", "by_command": False} | asked
    return answer(history, Question(**given, constraints=with_unavailable(constraints, unavailable)), source=source)


def answer(
    history: History,
    question: Question,
    *,
    source: str,
    progress: Callable[[int], None] = lambda rounds: None,
    known: Chosen | None = None,
) -> Recommendation:
    """The answer to a question; the same whoever asks. known: what `chosen` returned, if it was called before."""
    if question.round is not None:
        history = replace(history, following=question.round)
    check_budget(question.budget, history)
    facts = facts_of(history)
    found = known or choose(history, question, progress=progress, facts=facts)
    most, limits, learner, alone = found.budget, found.limits, found.learner, found.alone
    hint = {"effort_hint": effort_hint(question.steps)} if question.by_command else {}
    if history.minimise:
        hint["quantity"] = f"{learner.policy.traits.quantity}, as a reduction"
    reasons = next_reasons(learner, history, limits, question.steps, explanation=found.decision, **hint)
    relative = found.by_regression and is_relative(history)
    best = [history.arms[j] for j in np.argsort(-alone.score, kind="stable") if alone.chosen[j]]
    return Recommendation(
        source=source,
        policy=found.policy,
        budget=most,
        history=history,
        constraints=limits,
        reasons=reasons,
        greedy=tuple(best),
        not_yet=tuple(
            unclear(
                reasons,
                alone,
                facts.assessment,
                sees_rewards=facts.sees_rewards,
                relative=relative,
                limits=limits,
            )
        ),
        arms=arm_answers(reasons, facts.assessment, set(best), facts.sign, facts.per_arm),
        cautions=tuple(warned(learner, history, facts, reasons, found.by_regression)),
        assessment=facts.assessment,
        per_arm=facts.per_arm,
        sign=facts.sign,
        without_exploration=not found.explores,
        changes=changes_seen(learner),
        taken=tuple(taken_from_data(learner, history, question, found.by_regression)),
        trial=found.trial,
        relative=relative,
    )


def effort_hint(effort: int) -> str:
    """Hint at the option that makes the search longer."""
    return f"--effort {min(max(MORE_EFFORT * effort, EFFORT), MOST_EFFORT)} may settle it."


def changes_seen(learner: Learner) -> int | None:
    """Count the changes of the world that the policy has noticed."""
    found = learner.policy.signals(learner.state).get("changes_seen")
    return None if found is None else int(np.max(found))


def taken_from_data(learner: Learner, history: History, question: Question, by_regression: bool) -> Iterator[str]:
    """Say what was estimated from the data because it was not given."""
    low, high = np.sort((-1.0 if history.minimise else 1.0) * np.asarray(learner.problem.reward_range, float))
    if question.reward_range is None and default_range(history) is None and not by_regression:
        between = f"{short_number(low)} and {short_number(high)}"
        yield f"effects are assumed to lie between about {between}, from the data (--range)"
    if history.reference_dose is not None:
        usual = [
            f"{quoted(arm)} {short_number(dose)}"
            for arm, dose in zip(history.arms, history.reference_dose, strict=True)
            if np.isfinite(dose)
        ]
        more = f" and {len(usual) - LISTED_DOSES} more" if len(usual) > LISTED_DOSES else ""
        shape = "" if by_regression else ", taken to be proportional to it: saturation is not modelled"
        yield f"effects are those of each arm's average amount ({', '.join(usual[:LISTED_DOSES])}{more}){shape}"


def warned(learner: Learner, history: History, facts: Facts, reasons: Any, by_regression: bool) -> list[Any]:
    signals = {} if by_regression else known_signals(learner, history)
    found = cautions(
        reasons,
        facts.assessment,
        facts.y,
        signals,
        sign=facts.sign,
        sees_rewards=facts.sees_rewards,
        fits_baseline=learner.policy.traits.fits_baseline,
        by_regression=by_regression,
    )
    return [*different_units(history), *found]
