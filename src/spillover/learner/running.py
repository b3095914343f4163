"""The parts of a learner, and the state of a policy in use.

A call that fails or is interrupted changes nothing, or is complete: whatever can fail is done first, and changes are
made at the end, by functions that may be repeated.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Protocol

import numpy as np

from spillover import kernels, validate
from spillover.constraints import Constraint, Unavailable, check_constraints
from spillover.constraints.search import EFFORT, check_effort
from spillover.contracts import AnyPolicy, Policy, Setting, setting_of, suited
from spillover.core.batches import LiveCore, as_batches
from spillover.learner.reports import check_names, same_names
from spillover.policies.constrained import Constrained
from spillover.rng import Purpose, Rng
from spillover.types import ARRIVED, Array, BoolArray, Checked, Choice, Feedback, Problem, State


def checked_setting(
    policy: AnyPolicy,
    problem: Problem,
    constraints: Sequence[Constraint],
    arms: Sequence[str] | None,
    effort: int | None,
) -> Setting:
    """The setting of learners, checked; constraints of the policy itself hold too."""
    validate.problem(problem)
    given = suited(policy, problem)
    free, own, named, searched = setting_of(given)
    names = same_names(named, arms)
    check_names(names, problem.n_arms)
    most = effort if effort is not None else searched or EFFORT
    check_effort(most)
    return Setting(free, (*own, *check_constraints(constraints)), names, most)


def player_of(setting: Setting, unavailable: tuple[int, ...] = ()) -> Policy:
    """The policy under its constraints, in a round in which some arms are not available."""
    policy, constraints, arms, _ = setting
    if unavailable:
        constraints = (*constraints, Unavailable(unavailable, label="this round"))
    if not constraints:
        return policy
    return Constrained(policy=policy, constraints=constraints, arms=arms, effort=setting.effort or EFFORT)


def first_choice(policy: Policy, problem: Problem, state: State, rng: Rng) -> Choice:
    """A choice of learners before they have learned anything: all that follow have the same form."""
    if problem.context:
        state = policy.observe(state, np.zeros((*rng.keys.shape[:-1], problem.context)))
    return policy.select(state, rng.at(Purpose.CHOICE, 1))


def to_the_end(action: Callable[[], None]) -> None:
    """Do something that may be repeated, whole even if it is interrupted; the interrupt is raised after it."""
    interrupt: BaseException | None = None
    while True:
        try:
            action()
        except BaseException as stopped:
            if isinstance(stopped, Exception) and interrupt is not None:
                raise  # it fails again and again
            interrupt = stopped
            continue
        break
    if interrupt is not None:
        raise interrupt


def nothing() -> None:
    """No change."""


def copied(state: State) -> State:
    """A deep copy; that of arrays takes little time."""
    if type(state) is np.ndarray and not state.dtype.hasobject:
        return state.copy()
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*map(copied, state))
    return deepcopy(state)


class Running(Protocol):
    """A policy and its state in use by one learner; the functions that are returned change the state."""

    @property
    def state(self) -> State: ...
    def select(self, rng: Rng, round: int) -> Choice: ...
    def playing(self, x: BoolArray, round: int) -> Callable[[], None]: ...
    def learning(
        self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int
    ) -> Callable[[], None] | None:
        """Learn all outcomes of a round; None if something is wrong with them. played: the rounds so far."""

    def updating(self, feedback: Feedback, rng: Rng, round: int) -> Callable[[], None]:
        """Learn what is known of a round."""

    def becoming(self, state: State) -> Callable[[], None]: ...


def running(policy: Policy, state: State) -> Running:
    """A policy and its state in the form that is fastest for one learner."""
    own = as_batches(policy)
    return LiveCore(own, state) if own is not None and own.runs_alone else Usual(policy, state)


class Usual:
    """A policy and its state, which the four functions of the policy replace."""

    def __init__(self, policy: Policy, state: State) -> None:
        self.policy, self.state = policy, state

    def select(self, rng: Rng, round: int) -> Choice:
        return self.policy.select(self.state, rng.at(Purpose.CHOICE, round))

    def playing(self, x: BoolArray, round: int) -> Callable[[], None]:
        return self.becoming(self.policy.played(self.state, x))

    def learning(
        self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int
    ) -> Callable[[], None] | None:
        (x, probability, memo), age = choice, np.array(played - round)
        if validate.faults_of(x, z, y, reward_range, ARRIVED, age, played) != kernels.FINE:
            return None
        return self.updating(Checked(x, z, y, age, ARRIVED, probability, memo), rng, round)

    def updating(self, feedback: Feedback, rng: Rng, round: int) -> Callable[[], None]:
        # it may rewrite the state that it is given
        return self.becoming(self.policy.update(copied(self.state), feedback, rng.at(Purpose.LEARNING, round)))

    def becoming(self, state: State) -> Callable[[], None]:
        def write() -> None:
            self.state = state

        return write
