"""Base class of policies around another policy."""

from abc import abstractmethod
from typing import Any

from spillover.contracts import HISTORY, Policy, ScoredWorld, Setting, methods_of, unchanged
from spillover.rng import Rng
from spillover.types import Feedback, Problem, State


def passed_on(name: str) -> Any:
    """A member of the contract as the policy inside has it."""
    return property(lambda self: getattr(self.inner, name))


class PolicyWrapper(Policy):
    """Passes the members of the contract on to `inner`; subclasses override some of them.

    `explain_choice` is the contract's own, so that it shows what the wrapper selects. `grids` are empty: a wrapper with
    a field for the policy lists them under the field's name, as `Constrained` does. `compiled_rounds` is not passed on
    either: rounds are played by the wrapper's own functions.
    """

    @property
    @abstractmethod
    def inner(self) -> Policy:
        """The policy inside."""

    @abstractmethod
    def around(self, inner: Policy) -> Policy:
        """The same wrapper around another policy."""

    init = passed_on("init")
    select = passed_on("select")
    played = passed_on("played")
    update = passed_on("update")
    order_free = passed_on("order_free")
    quantity = passed_on("quantity")
    scores_have_units = passed_on("scores_have_units")
    randomised = passed_on("randomised")
    needs_world = passed_on("needs_world")
    knows_graph = passed_on("knows_graph")
    knows_structure = passed_on("knows_structure")
    needs_overall_range = passed_on("needs_overall_range")
    learns_graph = passed_on("learns_graph")
    explains = passed_on("explains")
    needs_rewards = passed_on("needs_rewards")
    needs_outcomes = passed_on("needs_outcomes")
    uses_context = passed_on("uses_context")
    fits_baseline = passed_on("fits_baseline")
    accepts_missing = passed_on("accepts_missing")
    accepts_doses = passed_on("accepts_doses")
    deferrable = passed_on("deferrable")
    reuses_memo = passed_on("reuses_memo")
    kernels = passed_on("kernels")
    observe = passed_on("observe")
    learn = passed_on("learn")
    solve = passed_on("solve")
    explain = passed_on("explain")
    outline = passed_on("outline")
    adjacency = passed_on("adjacency")
    edges = passed_on("edges")
    signals = passed_on("signals")
    changes_seen = passed_on("changes_seen")

    @property
    def setting(self) -> Setting:
        found = self.inner.setting
        return found._replace(policy=self.around(found.policy))

    def for_problem(self, problem: Problem) -> Policy:
        inner = self.inner.for_problem(problem)
        return self if inner is self.inner else self.around(inner)

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        if not unchanged(self, LEARNING):
            return super().catch_up(state, rounds, first, rng)
        return self.inner.catch_up(state, rounds, first, rng)

    def with_world(self, world: ScoredWorld) -> Policy:
        return self.around(self.inner.with_world(world))


LEARNING = methods_of(PolicyWrapper, HISTORY)
