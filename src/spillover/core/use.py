"""A policy and the state of some learners, as the drivers take them."""

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover.core.driver import Drivers, drivers, plain_drivers
from spillover.core.record import fields_of, table_of
from spillover.kernels.drawing import SMALL_BUDGET
from spillover.rng import Rng
from spillover.scratch import SCRATCH
from spillover.state import NUMBERS, map_leaves
from spillover.types import Batch, State
from spillover.validate import shown

if TYPE_CHECKING:
    from spillover.core.policy import CorePolicy

LAST = threading.local()
REQUIRED = ("rounds", "n_arms", "budget", "reward_range")
ARRAYS = "a C-contiguous array of numbers that can be written, with the axes {batch} of the batch first"


def check_state(policy: str, state: State) -> None:
    """Check what the drivers rely on: compiled code sees nothing but addresses."""
    fields = getattr(state, "_fields", ())
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        raise ValueError(f"fields of the state of {policy} = {fields}: must include {', '.join(missing)}")
    batch = np.shape(state.rounds)
    check_arrays(policy, state, batch)
    forms = [(np.int64, batch)] * 3 + [(np.float64, (*batch, 2))]
    for name, (kind, shape) in zip(REQUIRED, forms, strict=True):
        part = getattr(state, name)
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
    """The `Use` of a policy and a state: that of the last call of this thread, if they are the same."""
    last = getattr(LAST, "use", None)
    if last is None or last.given is not state or last.policy is not policy or last.reached != policy.reached():
        last = LAST.use = Use(policy, state)
    return last


class Use:
    """A policy and the state of some learners, as the drivers take them."""

    def __init__(self, policy: "CorePolicy", state: State) -> None:
        check_state(type(policy).__name__, state)
        self.policy, self.given, self.reached = policy, state, policy.reached()
        self.batch: Batch = state.rounds.shape
        self.count, self.n = state.rounds.size, int(state.n_arms.flat[0])
        self.lines, own = policy.lines, policy.own_numbers(self.batch)
        self.plain = not policy.compiled
        if self.plain:
            self.drivers: Drivers = plain_drivers(policy.functions, policy.detailed)
            self.own, self.state = own, map_leaves(self.flat_leaf, state)
        else:
            self.own_form, self.form = fields_of(own, 1), fields_of(state, len(self.batch))
            self.drivers = drivers(policy.functions, policy.allocates, policy.detailed, self.own_form, self.form)
            self.own, self.state = table_of(own, 1), table_of(state, len(self.batch))
            self.kept = own  # whose addresses are in the table

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
        return np.empty((self.lines, self.n)), np.empty(SMALL_BUDGET)

    def room(self) -> tuple[Any, Any]:
        """Room to work in, the same for all calls of a thread."""
        return SCRATCH.array(f"{self.lines} lines", (self.lines, self.n)), SCRATCH.array("best", (SMALL_BUDGET,))

    def memos(self, memo: Any) -> Any:
        lines = (self.count, 0, self.n) if memo is None else (self.count, *np.shape(memo)[-2:])
        return np.zeros(lines) if memo is None else in_one_piece(memo).reshape(lines)

    def run(self, name: str, *given: Any) -> None:
        getattr(self.drivers, name)(self.own, self.state, *given)
