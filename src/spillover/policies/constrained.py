"""Any policy under constraints: its scores, and the best feasible set by them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spillover import validate
from spillover.constraints import check_constraints
from spillover.exact import EFFORT
from spillover.oracle import best_set, check_effort, check_feasible, searched_set
from spillover.rng import Purpose, Rng
from spillover.types import (
    Array,
    Batch,
    BoolArray,
    Choice,
    Explains,
    Explanation,
    Feedback,
    IntArray,
    Problem,
    State,
    learns_graph,
)

RESAMPLES = 100  # at most so many redraws for the probability of an arm: probabilities below 1% count as 1%


@dataclass(frozen=True, kw_only=True)
class Constrained:
    """A policy whose decisions keep constraints. The state is the policy's own: constraints can change from day to day.

    policy: any policy that explains itself, so that its scores are known; of a constrained one all constraints hold.
    constraints: of `spillover.constraints`; the problem's budget always holds too.
    arms: the names of the arms, if the constraints use them.
    effort: steps after which the search for the best set ends with the best one so far, in hard cases; `explain` says
    how much better another could then be (`could_gain`).

    In a round that a plan decides (initialisation, forced exploration) as many of the planned arms are played as the
    constraints allow. What a person plays instead is taken as it is: the record stays true, feasible or not.

    A policy that draws its sets at random and weighs outcomes by the probability of that (FTRL) has its draw made
    feasible: the best set when every arm scores its probability, and 1 more if it was drawn. How likely that makes an
    arm has no formula. Its inverse is estimated by how many redraws it takes until the arm comes up again, which is
    right on average (geometric resampling, Neu and Bartok 2013) but for the cut after 100.

    >>> import spillover as sp
    >>> from spillover.constraints import Exclusive
    >>> policy = Constrained(policy=sp.NDCSEM(), constraints=(Exclusive([0, 1]),))
    >>> state = policy.init(sp.Problem(n_arms=3, budget=2), sp.Rng(0))
    >>> state = policy.played(state, np.array([True, False, False]))
    >>> policy.select(state, sp.Rng(0)).x.astype(int)  # the plan says 1, 1, 0
    array([1, 0, 0])
    """

    policy: Any
    constraints: Sequence[Any] = ()
    arms: Sequence[str] | None = None
    effort: int = EFFORT

    def __post_init__(self) -> None:
        if isinstance(self.policy, type) or not isinstance(self.policy, Explains):
            raise TypeError(f"policy = {self.policy!r}: must be a policy that has an explain(state)")
        check_effort(self.effort)
        given, inner, arms = check_constraints(self.constraints), self.policy, self.arms
        if isinstance(inner, Constrained):  # two layers are one with the constraints of both
            arms = inner.arms if arms is None else arms
            accepted = f"the names that the constraints within have, {inner.arms}"
            validate.require(inner.arms is None or tuple(arms or ()) == inner.arms, "arms", arms, accepted)
            object.__setattr__(self, "policy", inner.policy)
            given = (*inner.constraints, *given)
        object.__setattr__(self, "constraints", given)
        object.__setattr__(self, "arms", None if arms is None else tuple(arms))

    @property
    def order_free(self) -> bool:
        return bool(self.policy.order_free)

    @property
    def told_graph(self) -> bool:
        return bool(getattr(self.policy, "told_graph", False))

    @property
    def learns_graph(self) -> bool:
        return learns_graph(self.policy)

    @property
    def quantity(self) -> str | None:
        """What the scores are, where the policy says so."""
        return getattr(self.policy, "quantity", None)

    def signals(self, state: State) -> dict[str, Any]:
        """What the policy itself tells of its health."""
        told: dict[str, Any] = self.policy.signals(state) if hasattr(self.policy, "signals") else {}
        return told

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        validate.problem(problem)
        self.check(problem)
        return self.policy.init(problem, rng, batch)

    def check(self, problem: Problem) -> None:
        """Refuse constraints that do not fit the problem, or that no set can keep."""
        if self.arms is not None:
            accepted = f"{problem.n_arms} different names, one for each arm"
            validate.require(len(set(self.arms)) == len(self.arms) == problem.n_arms, "arms", self.arms, accepted)
        check_feasible(self.constraints, problem.n_arms, problem.budget, self.arms)

    def select(self, state: State, rng: Rng) -> Choice:
        return self.decide(state, rng)[0]

    def decide(self, state: State, rng: Rng) -> tuple[Choice, Array | None]:
        """The choice, and how much more another set could score at most: NaN by a plan, None if nothing is searched."""
        choice: Choice = self.policy.select(state, rng)
        if not self.constraints:
            return choice, None
        if getattr(self.policy, "randomised", False):  # a draw is not meant to be the best
            return self.redraw(state, choice, rng), None
        told = self.policy.explain(state, rng)
        scores = np.where(told.planned[..., None], told.chosen, told.score)
        x, more = searched_set(scores, state.budget, self.constraints, rng, arms=self.arms, effort=self.effort)
        return Choice(x, choice.memo), np.where(told.planned, np.nan, more)

    def feasible(self, scores: Array, budget: IntArray, rng: Rng) -> BoolArray:
        return best_set(scores, budget, self.constraints, rng, arms=self.arms, effort=self.effort)

    def redraw(self, state: State, drawn: Choice, rng: Rng) -> Choice:
        """The draw made feasible, with the estimated probabilities of its arms."""
        x = self.feasible(drawn.x + drawn.memo, state.budget, rng)
        tries, missing = np.ones(x.shape), x.copy()
        for _ in range(RESAMPLES - 1):
            again = self.policy.select(state, rng)
            missing &= ~self.feasible(again.x + again.memo, state.budget, rng)
            if not missing.any():
                break
            tries += missing
        return Choice(x, 1.0 / tries)

    def played(self, state: State, x: BoolArray) -> State:
        return self.policy.played(state, x)

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.policy.update(state, feedback, rng)

    def explain(self, state: State, rng: Rng | None = None) -> Explanation:
        """What the policy holds, and the feasible set that it chooses."""
        ties = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        told: Explanation = self.policy.explain(state, rng)
        choice, more = self.decide(state, ties)
        return replace(told, chosen=choice.x, could_gain=told.could_gain if more is None else more)
