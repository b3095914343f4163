"""What is asked of a history: the options of `spillover next`, also the settings of a stream of the service."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spillover import validate
from spillover.constraints import Constraint
from spillover.constraints.exact import EFFORT, MOST_EFFORT
from spillover.constraints.search import check_effort
from spillover.contracts import Policy
from spillover.history import History
from spillover.history.replay import Checkpoints
from spillover.recommendation.choose import RECOMMENDED, Chosen, Learned, choose_from, learn
from spillover.recommendation.decide import decide
from spillover.recommendation.policy_by_name import build_policy
from spillover.recommendation.result import Recommendation
from spillover.types import Explanation

MORE_EFFORT = 10  # times the effort to suggest where it was not enough


@dataclass(frozen=True, kw_only=True)
class Question:
    """What to choose next, how, and under which limits."""

    budget: int | None = None
    policy: str | None = None  # by name, or module:Class; None: one that suits the history
    settings: tuple[str, ...] = ()  # NAME=VALUE: parameters of the policy
    reward_range: tuple[float, float] | None = None
    overall_range: tuple[float, float] | None = None
    constraints: tuple[Constraint, ...] = ()
    effort: int | None = None
    seed: int = 0
    explore: bool = False  # choose as the policy explores, instead of by what is known alone
    round: str | None = None  # the name of the round to decide; None: the one that follows in the calendar

    def built_policy(self) -> Policy:
        """The policy, checked; the recommended one if none is named."""
        return build_policy(self.policy or RECOMMENDED, self.settings)

    def check(self) -> None:
        """Refuse what no history could make right."""
        built = self.built_policy()
        for name, given in (("range", self.reward_range), ("overall-range", self.overall_range)):
            if given is not None:
                validate.value_range(name, given)
        if self.budget is not None:
            validate.whole("budget", self.budget, 1)
        if built.needs_overall_range and self.overall_range is None:
            needs = "needs the range of y from the start: must be given with --overall-range LOW HIGH"
            raise ValueError(f"policy = {self.policy!r}: {needs}")

    @property
    def named_policy(self) -> Policy | None:
        """The policy that was asked for; None if the history is to say which one suits it."""
        return self.built_policy() if self.policy is not None or self.settings else None

    @property
    def steps(self) -> int:
        return EFFORT if self.effort is None else self.effort


def answer(
    history: History,
    question: Question,
    *,
    source: str,
    progress: Callable[[int], None] = lambda rounds: None,
    known: Chosen | None = None,
) -> Recommendation:
    """The answer to a question; the same whoever asks. known: what `chosen` returned, if it was called before."""
    return decide(
        history if question.round is None else replace(history, following=question.round),
        budget=question.budget,
        policy=question.named_policy,
        name=question.policy or RECOMMENDED,
        source=source,
        constraints=question.constraints,
        explore=question.explore,
        effort=question.steps,
        effort_hint=effort_hint(question.steps),
        seed=question.seed,
        progress=progress,
        reward_range=question.reward_range,
        overall_range=question.overall_range,
        known=known,
    )


def learned(history: History, question: Question, checkpoints: Checkpoints | None = None) -> Learned:
    """What `answer` learns from a history before it chooses."""
    return learn(
        history,
        budget=question.budget,
        policy=question.named_policy,
        name=question.policy or RECOMMENDED,
        seed=question.seed,
        reward_range=question.reward_range,
        overall_range=question.overall_range,
        checkpoints=checkpoints,
    )


def chosen(found: Learned, history: History, question: Question, known: Explanation | None = None) -> Chosen:
    """What `answer` chooses, without its reasons. known: see `choose_from`."""
    with_limits = question.constraints
    return choose_from(found, history, with_limits, explore=question.explore, effort=question.steps, known=known)


def search_effort(effort: int | None, *, constrained: bool) -> int:
    """How many steps the search for a set may take; there is no search without constraints."""
    if effort is None:
        return EFFORT
    check_effort(effort)
    accepted = "left out without --limits or --unavailable: there is nothing to search"
    validate.require(constrained, "effort", effort, accepted)
    return effort


def effort_hint(effort: int) -> str:
    """Which option makes the search longer."""
    return f"--effort {min(max(MORE_EFFORT * effort, EFFORT), MOST_EFFORT)} may settle it."
