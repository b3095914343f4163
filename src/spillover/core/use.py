"""A policy and the state of some learners, as the drivers take them."""

import threading
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover.core.driver import Drivers, Functions, drivers, plain_drivers
from spillover.core.own import FUNCTIONS, makes_arrays, named_by, own_numbers, reached
from spillover.core.record import Fields, fields_of, record_class, table_of
from spillover.kernels.drawing import SMALL_BUDGET
from spillover.rng import Rng
from spillover.state import NUMBERS, map_leaves
from spillover.types import Batch, State
from spillover.validate import require, shown

if TYPE_CHECKING:
    from spillover.core.policy import CorePolicy

LAST = threading.local()  # of each thread: the use of its last call, and room to work in
LINES = 8  # of one number for each arm, in `Turn.lines`
COMPILED = (True, False, "without arrays")
REQUIRED = ("rounds", "n_arms", "budget", "reward_range")
ARRAYS = "a C-contiguous array of numbers that can be written, with the axes {batch} of the batch first"


def check_form(policy: str, state: State) -> None:
    """Check what every state has; `check_arrays` checks the rest: compiled code sees nothing but addresses."""
    fields = getattr(state, "_fields", ())
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        raise ValueError(f"fields of the state of {policy} = {fields}: must include {', '.join(missing)}")
    batch = np.shape(state.rounds)
    forms = [(np.int64, batch)] * 3 + [(np.float64, (*batch, 2))]
    for name, (kind, shape) in zip(REQUIRED, forms, strict=True):
        part = getattr(state, name)
        check_arrays(policy, record_class((name,))(part), batch)
        if (part.dtype, part.shape) != (kind, shape):
            raise ValueError(
                f"{name} in the state of {policy} = {shown(part)}: must be {kind.__name__} of shape {shape}"
            )


def check_arrays(policy: str, arrays: Any, batch: Batch, path: str = "") -> None:
    for name, part in zip(arrays._fields, arrays, strict=True):
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            check_arrays(policy, part, batch, f"{path}{name}.")
        elif not (
            isinstance(part, np.ndarray)
            and part.flags.carray
            and part.dtype.kind in NUMBERS
            and part.dtype.isnative
            and part.shape[: len(batch)] == batch
        ):
            raise ValueError(
                f"{path}{name} in the state of {policy} = {shown(part)}: must be {ARRAYS.format(batch=batch)}"
            )


def in_one_piece(values: Any) -> Any:
    """An array that can be written, in one piece: for others the drivers would be compiled again."""
    given = np.asarray(values)
    return given if given.flags.carray else given.copy()


def use_of(policy: "CorePolicy", state: State) -> "Use":
    """The `Use` of a policy and a state: that of the last call of this thread, as far as they are the same."""
    last = getattr(LAST, "use", None)
    if last is None or last.policy is not policy or last.functions != now(last.reached):
        last = LAST.use = Use(policy, state)
    elif last.given is not state:
        last = LAST.use = Use(policy, state, last if type(last.given) is type(state) else None)
    return last


def functions_of(policy: "CorePolicy", contextual: bool) -> Functions:
    """The functions of one learner, as they are now: a subclass, a mixin or an assignment may replace them."""
    given = [getattr(type(policy), name, None) for name in FUNCTIONS]
    return Functions._make([*given, set_context if contextual else None])


def set_context(self: Any, s: Any, context: Any) -> None:
    """The context of the coming round is known."""
    for column in range(context.shape[0]):
        s.context[column] = context[column]


def moved_fields(policy: "CorePolicy", names: tuple[str, ...]) -> list[str]:
    """The fields of a state that a round of play may change: all that `note_play` names."""
    if not policy.compiled and policy.note_play is not None:
        return list(names)
    named = named_by(type(policy)).by_play
    return [name for name in names if name == "rounds" or name in named]


def now(reached: tuple[tuple[type, str], ...]) -> list[Any]:
    """Functions by class and name, as they are now."""
    return [getattr(kind, name, None) for kind, name in reached]


class Part(NamedTuple):
    """A field of a state, as compiled functions see it."""

    value: Any
    form: Any
    words: list[int]  # of the table of addresses


class Use:
    """A policy and the state of some learners, as the drivers take them."""

    def __init__(self, policy: "CorePolicy", state: State, last: "Use | None" = None) -> None:
        check_form(type(policy).__name__, state)
        self.policy, self.given = policy, state
        if last is None:
            require(policy.compiled in COMPILED, "compiled", policy.compiled, " or ".join(map(repr, COMPILED)))
            traits, fields = policy.traits, state._fields
            self.contextual = traits.uses_context and "context" in fields
            self.detailed, self.randomised = self.contextual or traits.accepts_doses, traits.randomised
            self.reached: tuple[tuple[type, str], ...] = reached(policy)
            self.functions: list[Any] = now(self.reached)
            self.moved: list[str] = moved_fields(policy, fields)
        else:
            self.contextual, self.detailed, self.randomised = last.contextual, last.detailed, last.randomised
            self.reached, self.functions, self.moved = last.reached, last.functions, last.moved
        self.batch: Batch = state.rounds.shape
        self.count, self.n = state.rounds.size, int(state.n_arms.flat[0])
        alike = last is not None and last.batch == self.batch
        self.plain = not policy.compiled
        parts: Sequence[Part] = last.parts if last is not None and alike and type(last.given) is type(state) else ()
        self.parts: list[Part] = [each or self.opened(*part) for each, *part in self.known(parts, state)]
        own = last.kept if last is not None and alike else own_numbers(policy, self.batch)
        self.kept: Any = own  # whose addresses are in the table
        if self.plain:
            self.drivers: Drivers = plain_drivers(functions_of(policy, self.contextual), self.detailed)
            self.own, self.state = own, map_leaves(self.flat_leaf, state)
            return
        self.own_form: Fields = last.own_form if last is not None and alike else fields_of(own, 1)
        self.form = Fields(state._fields, tuple(part.form for part in self.parts))
        if last is not None and alike and last.form == self.form:
            self.drivers = last.drivers
        else:
            given = functions_of(policy, self.contextual), makes_arrays(policy), self.detailed
            self.drivers = drivers(*given, self.own_form, self.form)
        self.own = last.own if last is not None and alike else table_of(own, 1)
        self.state = np.array([word for part in self.parts for word in part.words], np.int64)

    def known(self, parts: Sequence["Part"], state: State) -> Iterator[tuple[Any, str, Any]]:
        """Each field of a state, with what is known of it if it is still the same object."""
        for name, value, before in zip_longest(state._fields, state, parts):
            yield (before if before is not None and before.value is value else None), name, value

    def opened(self, name: str, value: Any) -> "Part":
        """A field of the state, checked, and where its arrays are."""
        one: Any = record_class((name,))(value)
        check_arrays(type(self.policy).__name__, one, self.batch)
        axes = len(self.batch)
        return Part(value, fields_of(one, axes).parts[0], table_of(one, axes).tolist())

    def flat_leaf(self, leaf: Any) -> Any:
        return leaf.reshape(self.count, *leaf.shape[len(self.batch) :])

    def flat(self, values: Any, shape: tuple[int, ...]) -> Any:
        """Values of each learner, in one piece, with one axis for the learners."""
        full = (*self.batch, *shape)
        given = values if np.shape(values) == full else np.broadcast_to(values, full)
        return in_one_piece(given).reshape(self.count, *shape)

    def turn(self, rng: Rng) -> tuple[Any, ...]:
        """Streams of random numbers, and room to work in."""
        keys, call, round, purpose = rng.address()
        return self.flat(keys, (2,)), call, self.flat(round, ()), purpose, *self.room()

    def own_room(self) -> tuple[Any, Any]:
        """Room to work in that nobody else has."""
        return np.empty((LINES, self.n)), np.empty(SMALL_BUDGET)

    def room(self) -> tuple[Any, Any]:
        """Room to work in, the same for all calls of a thread."""
        held = getattr(LAST, "room", None)
        if held is None or held[0].shape != (LINES, self.n):
            held = LAST.room = self.own_room()
        return held

    def memos(self, memo: Any) -> Any:
        lines = (self.count, 0, self.n) if memo is None else (self.count, *np.shape(memo)[-2:])
        return np.zeros(lines) if memo is None else in_one_piece(memo).reshape(lines)

    def run(self, name: str, *given: Any) -> None:
        getattr(self.drivers, name)(self.own, self.state, *given)
