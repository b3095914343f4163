"""What learners are made with: a policy that suits the problem, and the constraints on its decisions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, Unavailable, check_constraints
from spillover.constraints.search import EFFORT, check_effort
from spillover.contracts import AnyPolicy, Policy, suited
from spillover.learner_input import check_names, same_names
from spillover.policies.constrained import Constrained
from spillover.rng import Purpose, Rng
from spillover.types import Choice, Problem, State


class Setting(NamedTuple):
    """A policy, the constraints on its decisions, the names that they use, and the effort of the search under them."""

    policy: Policy  # without constraints
    constraints: tuple[Constraint, ...]
    arms: tuple[str, ...] | None
    effort: int


def setting_of(
    policy: AnyPolicy,
    problem: Problem,
    constraints: Sequence[Constraint],
    arms: Sequence[str] | None,
    effort: int | None,
) -> Setting:
    """The setting of learners, checked; constraints of the policy itself hold too."""
    validate.problem(problem)
    given = suited(policy, problem)
    names = same_names(given.arms, arms)
    check_names(names, problem.n_arms)
    most = effort if effort is not None else given.effort or EFFORT
    check_effort(most)
    return Setting(given.unconstrained, (*given.constraints, *check_constraints(constraints)), names, most)


def player_of(setting: Setting, unavailable: tuple[int, ...] = ()) -> Policy:
    """The policy under its constraints, in a round in which some arms are not available."""
    policy, constraints, arms, effort = setting
    if unavailable:
        constraints = (*constraints, Unavailable(unavailable, label="this round"))
    if not constraints:
        return policy
    return Constrained(policy=policy, constraints=constraints, arms=arms, effort=effort)


def first_choice(policy: Policy, problem: Problem, state: State, rng: Rng) -> Choice:
    """A choice of learners before they have learned anything: all that follow have the same form."""
    if problem.context:
        state = policy.observe(state, np.zeros((*rng.keys.shape[:-1], problem.context)))
    return policy.select(state, rng.at(Purpose.CHOICE, 1))
