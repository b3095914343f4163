"""The choice alone: a history is learned, and the next arms are chosen; reasons and warnings come afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint
from spillover.constraints.search import EFFORT, check_feasible, searched_set
from spillover.contracts import Policy, setting_of
from spillover.history import History, replay_history
from spillover.history.replay import Checkpoints
from spillover.learner.one import Learner
from spillover.policies import InstrumentalSEM, PayoffRegression, SwitchingSEM
from spillover.reasons.decision import feasibility
from spillover.recommendation.clarity import Trial, best_trial, with_swap
from spillover.recommendation.estimates import Facts, facts_of, history_effects, is_relative, with_effects
from spillover.recommendation.question import RECOMMENDED, Question
from spillover.regression import Effects
from spillover.types import BoolArray, Explanation

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
