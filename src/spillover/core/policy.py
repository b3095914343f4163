"""The base of policies that are written for one learner."""

from abc import abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from spillover import validate
from spillover.contracts import Policy
from spillover.contracts.hyperparameters import check_grid
from spillover.core.batches import USUAL, Batches
from spillover.core.turn import Lesson, Turn
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Feedback, Problem, State


class CorePolicy(Policy):
    """A policy written for one learner: a few small functions without a batch axis, which run everywhere.

    The hyperparameters are the fields of a frozen dataclass. `start` makes the state of a learner, a NamedTuple of
    arrays and numbers: `rounds`, `n_arms`, `budget` and `reward_range`, and what the policy learns; with a field
    `context`, that of the coming round. The functions see one learner: `s.sums` is an array, `s.clock` a number that
    may be assigned. `decide`, `remember` and `index` fill in what they are given, the others change `s`; nothing else
    may be changed.

    With `compiled = True` the same functions are compiled: they use numbers, arrays, NumPy, and functions decorated by
    `inner`, or compiled by Numba; of `self` its numbers and arrays, whether these are fields or not, and its other
    functions. Compiled code does not check that the index of an array is within its bounds: try a policy uncompiled
    first. With `compiled = "without arrays"` it is a fifth faster, if the functions make no arrays; `prepare` may.

    >>> import spillover as sp
    >>> bool(sp.policies.CTS.compiled)
    True
    """

    compiled: ClassVar[bool | str] = False
    memos: Any = 0  # lines of n numbers that `remember` notes down

    def start(self, problem: Problem, rng: Rng) -> State:
        """The state of one learner before the first round; a policy may write `init` instead, for a whole batch."""
        raise NotImplementedError(f"policy = {self!r}: must implement start(problem, rng)")

    @abstractmethod
    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        """Set the arms to play in the coming round in x, (n,), which is all False."""

    @abstractmethod
    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        """Learn the outcome of an earlier round: lesson.x, z, y, round and memo."""

    # Optional: methods of the same form.
    # note_play(self, s, x): a round was played with this decision; s.rounds is its number
    # derive(self, s, turn): derive what decisions need, after outcomes were learned
    # remember(self, s, turn, memo): note down what `learn_outcome` will want to know of today, (memos, n), after
    #     `decide`, which may have left it in the room of the same turn; if the policy is `randomised`, the probability
    #     of each arm
    # index(self, s, turn, found): the index of each arm, for explanations, which ask for it by `indices`
    # prepare(self, s): make room to work in, a tuple of arrays, which is `turn.room` for a number of turns
    # show(self, s, adjacency): fill in the estimated graph, (n, n), which simulations record
    note_play: ClassVar[Any] = None
    derive: ClassVar[Any] = None
    remember: ClassVar[Any] = None
    index: ClassVar[Any] = None
    prepare: ClassVar[Any] = None

    def indices(self, state: State, rng: Rng, shape: tuple[int, ...] | None = None) -> Array:
        """The index of each arm, (*batch, n); shape: of what `index` fills in, if that is more."""
        return self.batches.indices(state, rng, shape)

    # --- the contract of all policies, from these -----------------------------------------------------------------

    @property
    def batches(self) -> Batches:
        """The policy as drivers use it for batches."""
        return Batches(self)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        validate.problem(problem)
        check_numbers(self, batch)
        rows = list(np.ndindex(batch))
        made = [self.start(problem_of_row(problem, batch, row), rng.take(row) if batch else rng) for row in rows]
        return stacked(made, batch)

    def select(self, state: State, rng: Rng) -> Choice:
        return self.batches.select(state, rng)

    def played(self, state: State, x: BoolArray) -> State:
        return self.batches.played(state, x)

    def observe(self, state: State, context: Array) -> State:
        return self.batches.observe(state, context)

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.batches.update(state, feedback, rng)


USUAL.update({name: vars(CorePolicy)[name] for name in ("select", "played", "observe", "update")})


def check_numbers(policy: CorePolicy, batch: Batch) -> None:
    """Check that hyperparameters are numbers, or grids over the batch where `grids` has them."""
    check_grid(policy, batch)
    for each in fields(policy):  # type: ignore[arg-type]
        shape, usual = np.shape(getattr(policy, each.name)), np.shape(each.default)  # type: ignore[arg-type]
        accepted = f"{usual}, as {type(policy).__name__}.grids does not have it"
        validate.require(shape in ((), usual) or each.name in policy.grids, f"shape of {each.name}", shape, accepted)


def first_fields(policy: CorePolicy, problem: Problem, batch: Batch) -> dict[str, Any]:
    """What every state has before the first round; for policies that write `init`."""
    validate.problem(problem)
    check_grid(policy, batch)
    return {
        "rounds": np.zeros(batch, np.int64),
        "n_arms": np.full(batch, problem.n_arms, np.int64),
        "budget": np.full(batch, problem.budget, np.int64),
        "reward_range": validate.spread("reward_range", problem.reward_range, (*batch, 2)),
    }


def problem_of_row(problem: Problem, batch: Batch, row: tuple[int, ...]) -> Problem:
    """The problem of one learner of a batch."""
    n = problem.n_arms
    shapes = {"reward_range": (2,), "overall_range": (2,), "weights": (n,), "structure": (n, n)}
    given = {name: getattr(problem, name) for name in shapes}
    own = {
        name: np.broadcast_to(value, (*batch, *shapes[name]))[row] for name, value in given.items() if value is not None
    }
    return problem._replace(**own)


def stacked(states: list[State], batch: Batch) -> State:
    """The states of some learners as one, with the axes of the batch in front."""
    first = states[0]
    parts = []
    for at, part in enumerate(first):
        each = [state[at] for state in states]
        if isinstance(part, tuple):
            parts.append(stacked(each, batch))
        else:
            parts.append(np.array(each).reshape((*batch, *np.shape(part))))
    return type(first)(*parts)
