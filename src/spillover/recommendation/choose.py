"""The choice alone: a history is learned, and the next arms are chosen; reasons and warnings come afterwards."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spillover import validate
from spillover.constraints import Constraint
from spillover.contracts import AnyPolicy, Policy, as_policy
from spillover.history import History, replay_history
from spillover.history.checkpoints import Checkpoints
from spillover.live import Learner
from spillover.policies import InstrumentalSEM, PayoffRegression, SwitchingSEM
from spillover.recommendation.facts import Facts, facts_of
from spillover.recommendation.greedy import by_knowledge
from spillover.set_search import EFFORT, check_feasible
from spillover.types import Explanation

RECOMMENDED = "switching-sem"
NOISE = 0.1  # of what a payoff is assumed to vary by at first: with 1, intervals of short tables are twice too wide


class Learned(NamedTuple):
    """A learner that has learned from a history, and the name of its policy for the answer."""

    policy: str
    budget: int
    learner: Learner


class Chosen(NamedTuple):
    """The next decision, and the learner that made it."""

    policy: str
    budget: int
    limits: tuple[Constraint, ...]
    learner: Learner
    decision: Explanation
    alone: Explanation  # the decision by what is known alone


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
    return RECOMMENDED, SwitchingSEM()


def learn(
    history: History,
    *,
    budget: int | None,
    policy: AnyPolicy | None = None,
    name: str = "",
    seed: int = 0,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    progress: Callable[[int], None] = lambda rounds: None,
    facts: Facts | None = None,
    checkpoints: Checkpoints | None = None,
) -> Learned:
    """Learn from a history. facts: of it, if they are known already. checkpoints: see `replay_history`."""
    most = check_budget(budget, history)
    name, used = recommended_policy(history, facts) if policy is None else (name, as_policy(policy))
    given = {"reward_range": reward_range, "overall_range": overall_range}
    ranges = {key: value for key, value in given.items() if value is not None}
    learner = replay_history(
        used, history, budget=most, seed=seed, progress=progress, checkpoints=checkpoints, **ranges
    )
    suited = learner.policy is used.unconstrained
    return Learned(name if suited else f"{name} (as {type(learner.policy).__name__})", most, learner)


def choose_from(
    learned: Learned,
    history: History,
    limits: Sequence[Constraint] = (),
    *,
    greedy: bool = False,
    effort: int = EFFORT,
    known: Explanation | None = None,
) -> Chosen:
    """The next decision of a learner. known: its explanation without limits, if there is one already."""
    learner, most = learned.learner, learned.budget
    bound = learner.under(limits, arms=history.arms, effort=effort) if limits else learner
    explanation = known if known is not None and not limits else bound.explain(known)
    alone = by_knowledge(explanation, most, limits, arms=history.arms, effort=effort)
    return Chosen(learned.policy, most, tuple(limits), learner, alone if greedy else explanation, alone)


def choose(
    history: History,
    *,
    budget: int | None,
    policy: AnyPolicy | None = None,
    name: str = "",
    constraints: Sequence[Constraint] = (),
    greedy: bool = False,
    effort: int = EFFORT,
    seed: int = 0,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    progress: Callable[[int], None] = lambda rounds: None,
    facts: Facts | None = None,
) -> Chosen:
    """Learn from a history and choose; limits that no set satisfies are refused before anything is learned."""
    check_feasible(constraints, len(history.arms), check_budget(budget, history), history.arms)
    learned = learn(
        history,
        budget=budget,
        policy=policy,
        name=name,
        seed=seed,
        reward_range=reward_range,
        overall_range=overall_range,
        progress=progress,
        facts=facts,
    )
    return choose_from(learned, history, constraints, greedy=greedy, effort=effort)


def check_budget(budget: int | None, history: History) -> int:
    """The budget, if there are that many arms; a missing one is asked for, with the numbers chosen so far."""
    sizes = history.x.sum(axis=1)
    arms = len(history.arms)
    if budget is None:
        so_far = str(sizes.max()) if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        raise ValueError(
            f"budget is missing: say how many of the {arms} arms to choose at most, with --budget NUMBER "
            f"(so far {so_far} per round)"
        )
    validate.whole("budget", budget, 1)
    validate.require(budget <= arms, "budget", budget, f"at most {arms}, the number of arms")
    return budget
