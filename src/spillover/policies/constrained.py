"""Any policy under constraints: the feasible set with the highest total score."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spillover import validate
from spillover.constraints import check_constraints
from spillover.constraints.search import EFFORT, best_set, check_effort, check_feasible, searched_set
from spillover.contracts import Policy, Setting, as_policy, require_explains, setting_of
from spillover.policy_wrapper import PolicyWrapper
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, IntArray, Problem, State

RESAMPLES = 100  # at most so many redraws to estimate a probability, which is therefore at least 1%


@dataclass(frozen=True, kw_only=True)
class Constrained(PolicyWrapper):
    """A policy under constraints. The state is the inner policy's, so constraints can change from round to round.

    policy: any policy with explanations, which give its scores, and a `budget` in its state; if it is constrained
        itself, its constraints hold too.
    constraints: of `spillover.constraints`, in addition to the problem's budget.
    arms: the names of the arms, if the constraints use them.
    effort: limit on the steps of the search for the best set; if it is reached, `explain_choice` says by how much
        another set could be better (`could_gain`).

    In a round decided by a plan (initialisation, forced exploration) as many of the planned arms are played as the
    constraints allow. An override by a person is recorded as it is, even if it violates the constraints.

    For a policy that draws its sets at random and learns from their probabilities (FTRL), the draw is made feasible:
    the best set if an arm's score is its probability, plus 1 if it was drawn. The resulting probability of an arm has
    no closed form. Its inverse is estimated by the number of redraws until the arm is chosen again, which is unbiased
    (geometric resampling, Neu and Bartok 2013) except for the cut-off at 100.

    >>> import spillover as sp
    >>> from spillover.constraints import Exclusive
    >>> policy = Constrained(policy=sp.NDCSEM(), constraints=(Exclusive([0, 1]),))
    >>> state = policy.init(sp.Problem(n_arms=3, budget=2), sp.Rng(0))
    >>> state = policy.played(state, np.array([True, False, False]))
    >>> policy.select(state, sp.Rng(0)).x.astype(int)  # the plan says 1, 1, 0
    array([1, 0, 0])
    """

    policy: Any
    constraints: Any = ()
    arms: Any = None
    effort: int = EFFORT

    def __post_init__(self) -> None:
        inner, arms = as_policy(self.policy), self.arms
        require_explains(inner, "to be constrained")
        check_effort(self.effort)
        # two layers are merged into one with the constraints of both
        free, constraints, named, _ = setting_of(inner)
        arms = named if arms is None else tuple(arms)
        accepted = f"the names that the inner constraints use, {named}"
        validate.require(named is None or arms == named, "arms", arms, accepted)
        object.__setattr__(self, "policy", free)
        object.__setattr__(self, "constraints", (*constraints, *check_constraints(self.constraints)))
        object.__setattr__(self, "arms", arms)

    @property
    def setting(self) -> Setting:
        return Setting(self.policy, self.constraints, self.arms, self.effort)

    @property
    def grids(self) -> tuple[str, ...]:
        return tuple(f"policy.{name}" for name in self.inner.grids)

    @property
    def inner(self) -> Policy:
        policy: Policy = self.policy
        return policy

    def around(self, inner: Policy) -> Policy:
        return replace(self, policy=inner)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        validate.problem(problem)
        self.check(problem)
        return self.inner.init(problem, rng, batch)

    def check(self, problem: Problem) -> None:
        """Raise a ValueError if the constraints do not fit the problem, or if no set satisfies them."""
        if self.arms is not None:
            accepted = f"{problem.n_arms} different names, one for each arm"
            validate.require(len(set(self.arms)) == len(self.arms) == problem.n_arms, "arms", self.arms, accepted)
        check_feasible(self.constraints, problem.n_arms, problem.budget, self.arms)

    def select(self, state: State, rng: Rng) -> Choice:
        return self.choose_and_bound(state, rng)[0]

    def choose_and_bound(self, state: State, rng: Rng, known: Explanation | None = None) -> tuple[Choice, Array | None]:
        """The choice, and an upper bound on what another set could add: NaN under a plan, None without a search.

        known: the estimates of the policy, if they were asked for already.
        """
        choice = self.inner.select(state, rng)
        if not self.constraints:
            return choice, None
        if self.traits.randomised:  # a random draw does not maximise a score
            return self.redraw(state, choice, rng), None
        found = known or self.inner.explain(state, rng.restarted())
        scores = np.where(found.planned[..., None], choice.x, found.score)
        x, more = searched_set(scores, state.budget, self.constraints, rng, arms=self.arms, effort=self.effort)
        return choice._replace(x=x), np.where(found.planned, np.nan, more)

    def feasible(self, scores: Array, budget: IntArray, rng: Rng) -> BoolArray:
        return best_set(scores, budget, self.constraints, rng, arms=self.arms, effort=self.effort)

    def redraw(self, state: State, drawn: Choice, rng: Rng) -> Choice:
        """The draw made feasible, with the estimated probabilities of its arms."""
        x = self.feasible(drawn.x + drawn.probability, state.budget, rng)
        tries, missing = np.ones(x.shape), x.copy()
        for _ in range(RESAMPLES - 1):
            again = self.inner.select(state, rng)
            missing &= ~self.feasible(again.x + again.probability, state.budget, rng)
            if not missing.any():
                break
            tries += missing
        return drawn._replace(x=x, probability=1.0 / tries)

    def explain_choice(self, state: State, rng: Rng, known: Explanation | None = None) -> Explanation:
        """The estimates of the policy, and the feasible set chosen from them."""
        found = known or self.inner.explain(state, rng.restarted())
        choice, more = self.choose_and_bound(state, rng, found)
        return replace(found, chosen=choice.x, could_gain=found.could_gain if more is None else more)
