"""The state of a policy in use, which can go back to what it was when an update fails halfway.

`update` may rewrite the arrays that it is given, so an update that is interrupted leaves half of a new state. A copy
before every update would cost more than some updates do. Instead the state is copied once in many steps, and the steps
since then are remembered: they are functions of their arguments alone, so they give the same state again, bit for bit.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol, TypeAlias

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Policy
from spillover.rng import Purpose, Rng
from spillover.types import ARRIVED, Array, BoolArray, Checked, Choice, Feedback, State

STEPS_BETWEEN_COPIES = 256


# A function that was applied to the state, its other argument, and its random numbers, if it draws any.
Step: TypeAlias = tuple[Callable[..., State], Any, Rng | None]


def to_the_end(action: Callable[[], None]) -> None:
    """Do something that may be repeated, whole even if it is interrupted; the interrupt is raised after it."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            action()
        except KeyboardInterrupt as pressed:
            interrupt = pressed
            continue
        break
    if interrupt is not None:
        raise interrupt


class Running(Protocol):
    """A policy and its state in use by one learner."""

    @property
    def state(self) -> State: ...
    def observe(self, context: Array) -> None: ...
    def select(self, rng: Rng, round: int) -> Choice: ...
    def played(self, x: BoolArray) -> None: ...
    def update(self, feedback: Feedback, rng: Rng, round: int) -> None: ...
    def learn(self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int) -> bool:
        """`update` with all outcomes of a round, unless something is wrong with them; whether it was done.

        played: the rounds so far.
        """

    def mark(self) -> Any:
        """The present, for `back_to`."""

    def mark_play(self) -> Any:
        """The same, if nothing but `observe` and `played` will be called before it is used."""

    def back_to(self, mark: Any) -> None:
        """Undo all changes since a mark; it can be repeated if it is interrupted itself."""

    def branch(self) -> "Running":
        """The same, which goes on by itself; it must not be updated."""


def running(policy: Policy, state: State) -> Running:
    """A policy and its state in the form that is fastest for one learner."""
    compact: Running | None = policy.compact(state)
    return Journal(policy, state) if compact is None else compact


class Journal:
    """A policy, the current state, an earlier copy of it, and the steps between them."""

    def __init__(self, policy: Policy, state: State) -> None:
        self.policy, self.state = policy, state
        self.copy: tuple[State, list[Step]] | None = None  # one attribute, so that both change at once; None: no steps

    def kept(self) -> tuple[State, list[Step]]:
        """The copy and the steps since then. It is made with the first step: a decision alone needs none."""
        if self.copy is None:
            self.copy = (deepcopy(self.state), [])
        return self.copy

    def observe(self, context: Array) -> None:
        self.apply(self.policy.observe, context)

    def select(self, rng: Rng, round: int) -> Choice:
        return self.policy.select(self.state, rng.at(Purpose.CHOICE, round))

    def played(self, x: BoolArray) -> None:
        self.apply(self.policy.played, x)

    def update(self, feedback: Feedback, rng: Rng, round: int) -> None:
        self.apply(self.policy.update, feedback, rng.at(Purpose.LEARNING, round))

    def learn(self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int) -> bool:
        (x, probability, memo), age = choice, np.array(played - round)
        if validate.faults_of(x, z, y, reward_range, ARRIVED, age, played) != kernels.FINE:
            return False
        self.update(Checked(x, z, y, age, ARRIVED, probability, memo), rng, round)
        return True

    def mark(self) -> tuple[State, int]:
        """The present, for `back_to`."""
        steps = [] if self.copy is None else self.copy[1]
        if len(steps) < STEPS_BETWEEN_COPIES:
            return self.state, len(steps)
        self.copy = None
        return self.state, 0

    def mark_play(self) -> tuple[State, int]:
        """The present, for `back_to` after a play."""
        return self.mark()

    def apply(self, function: Callable[..., State], argument: Any, rng: Rng | None = None) -> None:
        """Replace the state by function(state, argument[, rng]), which may rewrite it."""
        steps = self.kept()[1]
        state, self.state = self.state, None  # not a state until it is complete
        state = function(state, argument) if rng is None else function(state, argument, rng)
        steps.append((function, argument, rng))
        self.state = state

    def back_to(self, mark: tuple[State, int]) -> None:
        """Undo all steps since a mark; it can be repeated if it is interrupted itself."""
        state, length = mark
        steps = [] if self.copy is None else self.copy[1]
        if self.state is not state or len(steps) > length:  # a step may return the state that it was given
            self.state = None
            del steps[length:]
            self.state = self.repeated()

    def repeated(self) -> State:
        """The state from its copy and the steps since then."""
        before, steps = self.kept()
        state = deepcopy(before)
        for function, argument, rng in steps:
            state = function(state, argument) if rng is None else function(state, argument, rng.restarted())
        return state

    def branch(self) -> "Journal":
        """A journal that goes on by itself from the same state."""
        other = object.__new__(Journal)
        before, steps = self.kept()
        other.policy, other.state, other.copy = self.policy, self.state, (before, list(steps))
        return other


class Restorable(Protocol):
    """Something that can put back what it was."""

    def mark(self, round: int) -> Any: ...
    def restore(self, mark: Any) -> None: ...


def put_back(learner: Restorable, mark: Any) -> None:
    """Undo changes that failed or were interrupted."""
    while True:
        try:
            learner.restore(mark)
        except KeyboardInterrupt:  # a second one: all of it can be repeated, and the first is raised after this
            continue
        return


class AllOrNothing:
    """Around changes of a learner that are about one round: if they fail or are interrupted, none is made."""

    __slots__ = ("learner", "mark")

    def __init__(self, learner: Restorable, round: int = 0) -> None:
        self.learner, self.mark = learner, learner.mark(round)

    def __enter__(self) -> None:
        pass

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            put_back(self.learner, self.mark)


def with_entry(table: dict[int, Any], key: int, value: Any) -> dict[int, Any]:
    """A table in which a key has a value, or is missing if the value is None; keys stay in order."""
    if table.get(key) is value:
        return table
    rest = {known: entry for known, entry in table.items() if known != key}
    return rest if value is None else dict(sorted((rest | {key: value}).items()))
