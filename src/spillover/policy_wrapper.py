"""Base class of policies around another policy."""

from abc import abstractmethod
from typing import Any

from spillover.contracts import HISTORY, Policy, ScoredWorld, methods_of, unchanged
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, Problem, State


class PolicyWrapper(Policy):
    """Delegates the methods and traits of the contract to `inner`; subclasses override some of them.

    `explain_choice` is the contract's own, so that it shows what the wrapper selects. `grids` are empty: a wrapper with
    a field for the policy lists them under the field's name, as `Constrained` does. `compiled_rounds` and `compact`
    are not delegated either: rounds are played by the wrapper's own functions.
    """

    @property
    @abstractmethod
    def inner(self) -> Policy:
        """The policy inside."""

    @abstractmethod
    def around(self, inner: Policy) -> Policy:
        """The same wrapper around another policy."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        return self.inner.init(problem, rng, batch)

    def select(self, state: State, rng: Rng) -> Choice:
        return self.inner.select(state, rng)

    def played(self, state: State, x: BoolArray) -> State:
        return self.inner.played(state, x)

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.inner.update(state, feedback, rng)

    @property
    def unconstrained(self) -> Policy:
        return self.around(self.inner.unconstrained)

    @property
    def constraints(self) -> tuple[Any, ...]:
        return self.inner.constraints

    @property
    def arms(self) -> tuple[str, ...] | None:
        return self.inner.arms

    @property
    def effort(self) -> int | None:
        return self.inner.effort

    @property
    def order_free(self) -> bool:
        return self.inner.order_free

    @property
    def quantity(self) -> str:
        return self.inner.quantity

    @property
    def scores_have_units(self) -> bool:
        return self.inner.scores_have_units

    @property
    def randomised(self) -> bool:
        return self.inner.randomised

    @property
    def needs_world(self) -> bool:
        return self.inner.needs_world

    @property
    def knows_graph(self) -> bool:
        return self.inner.knows_graph

    @property
    def knows_structure(self) -> bool:
        return self.inner.knows_structure

    @property
    def needs_overall_range(self) -> bool:
        return self.inner.needs_overall_range

    @property
    def learns_graph(self) -> bool:
        return self.inner.learns_graph

    @property
    def explains(self) -> bool:
        return self.inner.explains

    @property
    def needs_rewards(self) -> bool:
        return self.inner.needs_rewards

    @property
    def needs_outcomes(self) -> bool:
        return self.inner.needs_outcomes

    @property
    def uses_context(self) -> bool:
        return self.inner.uses_context

    @property
    def fits_baseline(self) -> bool:
        return self.inner.fits_baseline

    @property
    def accepts_missing(self) -> bool:
        return self.inner.accepts_missing

    @property
    def accepts_doses(self) -> bool:
        return self.inner.accepts_doses

    @property
    def deferrable(self) -> bool:
        return self.inner.deferrable

    @property
    def reuses_memo(self) -> bool:
        return self.inner.reuses_memo

    @property
    def kernels(self) -> tuple[str, ...]:
        return self.inner.kernels

    def for_problem(self, problem: Problem) -> Policy:
        inner = self.inner.for_problem(problem)
        return self if inner is self.inner else self.around(inner)

    def observe(self, state: State, context: Array) -> State:
        return self.inner.observe(state, context)

    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.inner.learn(state, feedback, rng)

    def solve(self, state: State) -> State:
        return self.inner.solve(state)

    def solve_briefly(self, state: State) -> State:
        return self.inner.solve_briefly(state) if unchanged(self, SOLVING) else super().solve_briefly(state)

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        if not unchanged(self, LEARNING):
            return super().catch_up(state, rounds, first, rng)
        return self.inner.catch_up(state, rounds, first, rng)

    def explain(self, state: State, rng: Rng) -> Explanation:
        return self.inner.explain(state, rng)

    def outline(self, state: State, rng: Rng) -> Explanation:
        return self.inner.outline(state, rng)

    def adjacency(self, state: State) -> Array:
        return self.inner.adjacency(state)

    def edges(self, state: State) -> Any:
        return self.inner.edges(state)

    def signals(self, state: State) -> dict[str, Any]:
        return self.inner.signals(state)

    def changes_seen(self, state: State) -> Any:
        return self.inner.changes_seen(state)

    def with_world(self, world: ScoredWorld) -> Policy:
        return self.around(self.inner.with_world(world))


SOLVING, LEARNING = methods_of(PolicyWrapper, ("solve",)), methods_of(PolicyWrapper, HISTORY)
