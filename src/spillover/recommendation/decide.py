"""From a table of past decisions and outcomes to the next decision: what is asked, what is chosen, and why."""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, Unavailable
from spillover.constraints.search import EFFORT, MOST_EFFORT, check_effort, check_feasible, searched_set
from spillover.contracts import AnyPolicy, Policy, as_policy, setting_of
from spillover.contracts.hyperparameters import hyperparameters, with_values
from spillover.experiments.toml_file import origin_of
from spillover.files import Excessive, parse_toml
from spillover.formatting import first_of, short_number
from spillover.history import History, read_history, replay_history
from spillover.history.record import default_range
from spillover.history.replay import Checkpoints, known_signals, next_reasons
from spillover.learner.one import Learner
from spillover.policies import POLICIES, InstrumentalSEM, PayoffRegression, SwitchingSEM, find_policy
from spillover.reasons.decision import feasibility
from spillover.recommendation.clarity import Trial, best_trial, unclear, with_swap
from spillover.recommendation.estimates import Facts, facts_of, history_effects, is_relative, with_effects
from spillover.recommendation.result import Recommendation, arm_answers, cautions, different_units
from spillover.regression import Effects
from spillover.state import encode
from spillover.types import BoolArray, Explanation
from spillover.validate import quoted, suggestion


def to_json_types(value: Any) -> Any:
    """The same value in types that JSON has."""
    if isinstance(value, dict):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_json_types(item) for item in value]
    if isinstance(value, np.generic):
        return to_json_types(value.item())
    return encode(value) if isinstance(value, int | float | str | bool) or value is None else str(value)


NEEDS = {  # traits of policies that need what a history does not have
    "needs_world": "needs the true world",
    "knows_graph": "needs the true graph",
    "knows_structure": "needs to know which edges there can be",
    "randomised": "needs the probabilities of past decisions",
}


def lacking(policy: Policy) -> str | None:
    """Name what a policy needs and a history does not have."""
    return next((words for name, words in NEEDS.items() if getattr(policy.traits, name)), None)


def usable_names() -> list[str]:
    """Built-in policies that need no more than a history."""
    return [name for name, maker in POLICIES.items() if lacking(as_policy(maker())) is None]


def build_policy(name: str, settings: Sequence[str]) -> Policy:
    """The policy of that name (or module:Class) with the parameters set by NAME=VALUE; part.NAME for a part of it."""
    if not POLICIES.is_name(name):
        known = usable_names()
        raise ValueError(
            f"policy = {name!r}: must be one of {', '.join(known)} or module:Class{suggestion(name, known)}"
        )
    maker = find_policy(name)
    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key in given:
            raise ValueError(f"set = {setting!r}: must be NAME=VALUE, each name once")
        given[key] = parse_value(key, text)
    own = {key: value for key, value in given.items() if "." not in key}
    check_names(name, own, [f.name for f in hyperparameters(origin_of(maker))])
    try:
        policy = as_policy(maker(**own))
    except TypeError as error:  # abstract, or with a parameter that must be given
        raise ValueError(f"policy = {name!r}: must be a policy that these settings make: {error}") from error
    inner = {key: value for key, value in given.items() if "." in key}
    check_names(name, inner, part_names(policy))
    if (missing := lacking(policy)) is not None:
        raise ValueError(f"policy = {name!r}: {missing}, which a file does not have: must be another policy or setting")
    require_explanations(name, policy)
    return as_policy(with_values(policy, inner))


def require_explanations(name: str, policy: Policy) -> None:
    if not policy.traits.explains:
        accepted = "derived from spillover.Policy, with an explain(state, rng) and explains=True in its traits"
        raise ValueError(f"policy = {name!r}: must explain its decisions: {accepted}")


def check_names(policy: str, given: dict[str, Any], accepted: list[str]) -> None:
    """Refuse a parameter that the policy does not have."""
    for key, value in given.items():
        if key not in accepted:
            known = f"one of {', '.join(accepted)}" if accepted else f"left out: {policy} has no such parameters"
            raise ValueError(f"set = '{key}={value}': {key} must be {known}{suggestion(key, accepted)}")


def part_names(policy: Any) -> list[str]:
    """The parameters of a policy's parts, such as graph.sparsity."""
    parts = {f.name: vars(policy)[f.name] for f in fields(policy)} if is_dataclass(policy) else {}
    return [f"{name}.{f.name}" for name, part in parts.items() if is_dataclass(part) for f in fields(part)]


def parse_value(key: str, text: str) -> Any:
    """A number, true or false, or a list, as in a TOML file; anything else is text."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except Excessive as error:
        raise ValueError(f"set = {key}=...: {error}") from None


RECOMMENDED = "switching-sem"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question: what to choose next, with which policy and under which limits.

    >>> Question(budget=2).named_policy is None  # the history says which policy suits it
    True
    """

    budget: int | None = None
    policy: str | AnyPolicy | None = None  # a name, module:Class or the policy; None: one that suits the history
    name: str | None = None  # of the policy, in the answer
    settings: tuple[str, ...] = ()  # NAME=VALUE: parameters of a policy that is named
    reward_range: tuple[float, float] | None = None
    overall_range: tuple[float, float] | None = None
    constraints: tuple[Constraint, ...] = ()
    effort: int | None = None
    seed: int = 0
    explore: bool = False  # choose as the policy explores, instead of by what is known alone
    round: str | None = None  # the name of the round to decide; None: the one that follows in the calendar
    by_command: bool = True  # whether hints name the options of the command

    def built_policy(self) -> Policy:
        """The policy, checked; the recommended one if none is named."""
        if self.policy is None or isinstance(self.policy, str):
            return build_policy(self.policy or RECOMMENDED, self.settings)
        return as_policy(self.policy)

    def check(self) -> None:
        """Refuse what no history could make right."""
        built = self.built_policy()
        for name, given in (("range", self.reward_range), ("overall-range", self.overall_range)):
            if given is not None:
                validate.value_range(name, given)
        if self.budget is not None:
            validate.whole("budget", self.budget, 1)
        if built.traits.needs_overall_range and self.overall_range is None:
            needs = "needs the range of y from the start: must be given with --overall-range LOW HIGH"
            raise ValueError(f"policy = {self.policy!r}: {needs}")

    @property
    def named_policy(self) -> Policy | None:
        """The policy that was asked for; None if the history is to say which one suits it."""
        return self.built_policy() if self.policy is not None or self.settings else None

    @property
    def policy_name(self) -> str:
        """The name of the policy that was asked for, in the answer."""
        return self.name if self.name is not None else str(self.policy or RECOMMENDED)

    @property
    def ranges(self) -> dict[str, Any]:
        """The ranges that were given."""
        given = {"reward_range": self.reward_range, "overall_range": self.overall_range}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def steps(self) -> int:
        """The number of steps that the search for a set may take."""
        return EFFORT if self.effort is None else self.effort


def search_effort(effort: int | None, *, constrained: bool) -> int:
    """Check the number of steps of the search for a set; there is no search without constraints."""
    if effort is None:
        return EFFORT
    check_effort(effort)
    accepted = "left out without --limits or --unavailable: there is nothing to search"
    validate.require(constrained, "effort", effort, accepted)
    return effort


ABOVE_NOTHING = 1e-3  # of the range of effects: what the worst of relative effects counts more than choosing nothing


def known_arms(explanation: Explanation) -> BoolArray:
    """Arms with data."""
    return np.asarray(np.isfinite(explanation.mean) & (explanation.count > 0))


def by_knowledge(
    explanation: Explanation,
    budget: int,
    constraints: Sequence[Constraint] = (),
    *,
    arms: Sequence[str] | None = None,
    effort: int = EFFORT,
    relative: bool = False,
) -> Explanation:
    """The same estimates with the exploration bonus left out, and the set that is best by them.

    relative: whether effects are known only relative to each other, so that none is a reason to choose fewer arms.
    """
    mean = np.where(known_arms(explanation), explanation.mean, 0.0)  # an arm without data is worth nothing yet
    effects = explanation.weights * mean
    lowest = float(effects.min()) - ABOVE_NOTHING * float(np.ptp(effects)) - 1e-300 if relative else 0.0
    chosen, more = searched_set(effects - lowest, budget, constraints, arms=arms, effort=effort)
    could_gain = more if constraints else None
    return replace(explanation, index=mean, score=effects, chosen=chosen, plan="", could_gain=could_gain)


REGRESSION = "a regression"  # the name of what tables without own rewards are answered by
SWITCHING = SwitchingSEM()
NOISE = 0.1  # of what a payoff is assumed to vary by at first: with 1, intervals of short tables are twice too wide


class Learned(NamedTuple):
    """A learner that has learned from a history, and the name of its policy for the answer."""

    policy: str
    budget: int
    learner: Learner
    effects: Effects | None = None  # by a regression of the whole table; None: the learner's own estimates count


class Chosen(NamedTuple):
    """The next decision, and the learner that made it."""

    policy: str
    budget: int
    limits: tuple[Constraint, ...]
    learner: Learner
    decision: Explanation
    alone: Explanation  # the decision by what is known alone
    explores: bool  # whether the decision is not the best by what is known, but to learn
    by_regression: bool = False  # whether its estimates are those of a regression of the whole table
    trial: Trial | None = None  # an arm that is worth trying; the decision contains it if it explores


def recommended_policy(history: History, facts: Facts | None = None) -> tuple[str, Policy]:
    """The policy for a table, and its name: one that needs no more than the table has.

    Without own rewards, arms may take outcomes from each other (shares, cannibalisation), so effects may be negative.
    The context may move effects only where the data show that it does: otherwise it would only widen intervals.
    """
    moves = "baseline"
    if history.context is not None and (facts or facts_of(history)).assessment.moved.any():
        moves = "both"
    if history.observes == "payoff":
        return "payoff-regression", PayoffRegression(context_on=moves, noise=NOISE)
    if history.observes == "overall" or (history.observes == "both" and history.context is not None):
        return "instrumental-sem", InstrumentalSEM(signed=True, context_on=moves)
    return RECOMMENDED, SWITCHING


def learned(
    history: History,
    question: Question,
    *,
    progress: Callable[[int], None] = lambda rounds: None,
    facts: Facts | None = None,
    checkpoints: Checkpoints | None = None,
) -> Learned:
    """Learn from a history. facts: of it, if they are known already. checkpoints: see `replay_history`."""
    most, given = check_budget(question.budget, history), question.named_policy
    name, used = recommended_policy(history, facts) if given is None else (question.policy_name, given)
    learner = replay_history(
        used,
        history,
        budget=most,
        seed=question.seed,
        progress=progress,
        checkpoints=checkpoints,
        **question.ranges,
    )
    if given is None and (found := history_effects(history) if facts is None else facts.effects) is not None:
        return Learned(REGRESSION, most, learner, found)
    suited = learner.policy == setting_of(used).policy  # it may be that of an earlier replay
    return Learned(name if suited else f"{name} (as {type(learner.policy).__name__})", most, learner)


def chosen(found: Learned, history: History, question: Question, known: Explanation | None = None) -> Chosen:
    """The set that is best by what is known; at the start, or to explore, the policy's own choice.

    known: its explanation without limits, if there is one already.
    """
    learner, most, effects = found.learner, found.budget, found.effects
    limits, effort, explore = question.constraints, question.steps, question.explore
    bound = learner.under(limits, arms=history.arms, effort=effort) if limits else learner
    explanation = known if known is not None and not limits else bound.explain(known)
    if effects is not None:
        explanation = with_effects(explanation, effects)
    relative = effects is not None and is_relative(history)
    alone = by_knowledge(explanation, most, limits, arms=history.arms, effort=effort, relative=relative)
    starting = bool(np.any(explanation.planned)) or not known_arms(explanation).any()
    if effects is None or starting:
        explores = explore or starting
        return Chosen(found.policy, most, limits, learner, explanation if explores else alone, alone, explores)
    tried, trial = trial_of(explanation, alone, effects, feasibility(history.arms, most, limits), most, history.arms)
    explores = explore and trial is not None
    decision = tried if explores else alone
    return Chosen(found.policy, most, limits, learner, decision, alone, explores, True, trial)


def trial_of(
    known: Explanation,
    alone: Explanation,
    effects: Effects,
    allowed: Callable[[BoolArray], bool],
    budget: int,
    arms: Sequence[str],
) -> tuple[Explanation, Trial | None]:
    """The decision with the best trial, and the trial; the same decision and None if no trial pays."""
    found = best_trial(known.score, np.asarray(alone.chosen), budget, effects, allowed)
    if found is None:
        return alone, None
    into, out, trial = found
    named = trial._replace(arm=arms[into], instead_of=arms[out] if out >= 0 else None)
    return replace(alone, chosen=with_swap(np.asarray(alone.chosen), into, out), could_gain=None), named


def choose(
    history: History,
    question: Question,
    *,
    progress: Callable[[int], None] = lambda rounds: None,
    facts: Facts | None = None,
) -> Chosen:
    """Learn from a history and choose; limits that no set satisfies are refused before anything is learned."""
    most = check_budget(question.budget, history)
    check_feasible(question.constraints, len(history.arms), most, history.arms)
    return chosen(learned(history, question, progress=progress, facts=facts), history, question)


def check_budget(budget: int | None, history: History) -> int:
    """The budget, if there are that many arms; a missing one is asked for, with the numbers chosen so far."""
    arms = len(history.arms)
    if budget is None:
        sizes = history.x.sum(axis=1)
        so_far = str(sizes.max()) if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        raise ValueError(
            f"budget is missing: say how many of the {arms} arms to choose at most, with --budget NUMBER "
            f"(so far {so_far} per round)"
        )
    validate.whole("budget", budget, 1)
    validate.require(budget <= arms, "budget", budget, f"at most {arms}, the number of arms")
    return budget


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
    signals = {} if found.by_regression else known_signals(learner, history)
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
        cautions=(
            *different_units(history),
            *cautions(
                reasons,
                facts.assessment,
                facts.y,
                signals,
                sign=facts.sign,
                sees_rewards=facts.sees_rewards,
                fits_baseline=learner.policy.traits.fits_baseline,
                by_regression=found.by_regression,
            ),
        ),
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
        shape = "" if by_regression else ", taken to be proportional to it: saturation is not modelled"
        yield f"effects are those of each arm's average amount ({first_of(usual, LISTED_DOSES)}){shape}"
