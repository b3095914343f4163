"""The base of policies that are written for one learner."""

import math
from abc import abstractmethod
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from spillover import validate
from spillover.contracts import HISTORY, ROUND, CompiledRounds, Policy, methods_of, unchanged
from spillover.contracts.hyperparameters import check_grid
from spillover.core.driver import Details, Functions, Lesson, Rings, Scene, Turn, drivers
from spillover.core.live import LiveCore
from spillover.core.record import fields_of, table_of
from spillover.core.use import Use, in_one_piece
from spillover.rng import Purpose, Rng
from spillover.state import copy_state, leaves
from spillover.types import Array, Batch, BoolArray, Choice, Feedback, Problem, State, Stretch
from spillover.validate import OBSERVES

KINDS = {"b": np.bool_, "i": np.int64, "u": np.int64}  # of hyperparameters; others are float64
MOST_BYTES = 1 << 18  # of a live learner that is copied before each change


class CorePolicy(Policy):
    """A policy written for one learner: a few small functions without a batch axis, which run everywhere.

    The hyperparameters are the fields of a frozen dataclass. `start` makes the state of a learner, a NamedTuple of
    arrays and numbers: `rounds`, `n_arms`, `budget` and `reward_range`, and what the policy learns. The functions see
    one learner: `s.sums` is an array, `s.clock` a number that may be assigned. `decide`, `remember` and `index` fill
    in what they are given, the others change `s`; nothing else may be changed.

    With `compiled = True` the same functions are compiled: they use numbers, arrays, NumPy, and functions decorated by
    `inner`, or compiled by Numba. Of `self` they see the fields that are numbers, and `constants`. Compiled code does
    not check that the index of an array is within its bounds: try a policy uncompiled first.

    >>> import spillover as sp
    >>> sp.policies.CTS.compiled
    True
    """

    compiled: ClassVar[bool] = False
    allocates: ClassVar[bool] = True  # whether compiled functions make arrays; a fifth faster if they do not
    constants: ClassVar[Mapping[str, int]] = {}  # further attributes that the functions use: name -> axes, 0: a number
    unchanged_by_play: ClassVar[tuple[str, ...]] = ()  # fields of the state that `note_play` leaves as they are
    memos: ClassVar[int] = 0  # lines of n numbers that `remember` notes down

    def start(self, problem: Problem, rng: Rng) -> State:
        """The state of one learner before the first round; a policy may write `init` instead, for a whole batch."""
        raise NotImplementedError(f"policy = {self!r}: must implement start(problem, rng)")

    @abstractmethod
    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        """Set the arms to play in the coming round in x, (n,), which is all False; `core.draws` has random numbers."""

    @abstractmethod
    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        """Learn the outcome of an earlier round: lesson.x, z, y, round and memo."""

    # Optional: methods of the same form.
    # note_play(self, s, x): a round was played with this decision; s.rounds is its number
    # derive(self, s, turn): derive what decisions need, after outcomes were learned
    # settle(self, s, turn): the same at the end of a history, if it is not the same
    # remember(self, s, turn, memo): note down what `learn_outcome` will want to know of today, (memos, n), after
    #     `decide`, which may have left it in the room of the same turn
    # index(self, s, turn, found): the index of each arm, for explanations
    # prepare(self, s): make room to work in, a tuple of arrays, which is `turn.room` for a number of turns
    # show(self, s, adjacency): fill in the estimated graph, (n, n), if the policy learns one
    note_play: ClassVar[Any] = None
    derive: ClassVar[Any] = None
    settle: ClassVar[Any] = None
    remember: ClassVar[Any] = None
    index: ClassVar[Any] = None
    prepare: ClassVar[Any] = None
    show: ClassVar[Any] = None

    # --- the four functions of all policies, from these -----------------------------------------------------------

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        validate.problem(problem)
        self.check_numbers(batch)
        rows = list(np.ndindex(batch))
        made = [self.start(problem_of_row(problem, batch, row), rng.take(row) if batch else rng) for row in rows]
        return stacked(made, batch)

    def select(self, state: State, rng: Rng) -> Choice:
        use = Use(self, state)
        x = np.empty((use.count, use.n), np.bool_)
        memo = np.zeros((use.count, self.memos, use.n))
        use.run("decide", *use.turn(rng), x, memo)
        shape = (*use.batch, use.n)
        return self.choice_with(x.reshape(shape), memo.reshape(*use.batch, self.memos, use.n))

    def choice_with(self, x: BoolArray, memo: Array) -> Choice:
        """The choice of a decision x, (*batch, n), with what `remember` noted down, (*batch, memos, n)."""
        return Choice(x, memo=memo if self.memos else None)

    def memo_with(self, given: Choice | Feedback, seen: BoolArray) -> Any:
        """What `remember` noted down, from what came back with an outcome; seen: the arms that it is about."""
        return given.memo

    def played(self, state: State, x: BoolArray) -> State:
        # only `update` may rewrite the state that it is given
        state = copy_state(state)._replace(**{name: getattr(state, name) for name in self.unchanged_by_play})
        use = Use(self, state)
        given = validate.decision("x", x, (*use.batch, use.n))
        use.run("play", use.flat(given, (use.n,)))
        return state

    def observe(self, state: State, context: Array) -> State:
        if not self.uses_context:
            return state
        given = validate.numbers("context", context, "numbers")
        return state._replace(context=np.broadcast_to(given, state.context.shape).copy())

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        if not unchanged(self, IN_TURN):
            return self.solve(self.learn(state, feedback, rng))
        self.learn_with(Use(self, state), state, feedback, rng, deriving=True)
        return state

    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        self.learn_with(Use(self, state), state, feedback, rng, deriving=False)
        return state

    def learn_with(self, use: Use, state: State, feedback: Feedback, rng: Rng, *, deriving: bool) -> None:
        """Learn outcomes; deriving: and derive what decisions need."""
        shape = (*use.batch, use.n)
        feedback = self.checked(feedback, shape, state.reward_range, state.rounds)
        lines = (use.flat(part, (use.n,)) for part in feedback[:3])
        played = use.flat(state.rounds - feedback.age, ())
        memo = use.memos(self.memo_with(feedback, feedback.x & feedback.arrived[..., None]))
        arrived, details = use.flat(feedback.arrived, ()), self.details_of(feedback, use, state)
        use.run("learn", *use.turn(rng), *lines, played, arrived, memo, details, deriving)

    def checked(self, given: Feedback, shape: tuple[int, ...], reward_range: Array, rounds: Any) -> Feedback:
        """Feedback that is right, whoever says that it was checked."""
        given = Feedback(*given)
        if self.accepts_missing or self.accepts_doses:
            return validate.partial_feedback(given, shape, reward_range, rounds)  # type: ignore[no-any-return]
        return validate.feedback(given, shape, reward_range, rounds, rewards=self.needs_rewards)  # type: ignore[no-any-return]

    @property
    def detailed(self) -> bool:
        """Whether it is told more of a round than its decision and outcome; see `Lesson`."""
        return self.uses_context or self.accepts_doses or self.accepts_missing

    def details_of(self, feedback: Feedback, use: Use, state: State) -> Details | None:
        """What else feedback says of rounds, (*batch,) of them."""
        if not self.detailed:
            return None
        x, count = feedback.x, feedback.arrived.size
        columns = state.context.shape[-1] if self.uses_context else 0
        context, dose = np.zeros((*x.shape[:-1], columns)), np.ones(x.shape)
        if columns:
            validate.require(feedback.context is not None, "context", None, f"{columns} numbers")
            context = validate.numbers("context", feedback.context, "numbers")
            wanted = (*x.shape[:-1], columns)
            validate.require(context.shape == wanted, "shape of context", context.shape, f"{wanted}")
            known = np.isfinite(context).all(axis=-1) | ~feedback.arrived
            validate.require(bool(known.all()), "context", context, "finite numbers")
        if feedback.dose is not None:
            dose = np.where(x, np.broadcast_to(validate.numbers("dose", feedback.dose, "numbers"), x.shape), 1.0)
            good = bool((np.isfinite(dose) & (dose > 0.0)).all())
            validate.require(good, "dose", feedback.dose, "positive numbers for the arms that are chosen")
        fresh = np.ones(x.shape, np.bool_) if feedback.fresh is None else np.asarray(feedback.fresh, np.bool_)
        told = feedback.complete is not None
        complete = np.broadcast_to(np.asarray(feedback.complete if told else True, np.bool_), x.shape[:-1])
        each = (context, dose, fresh, complete, complete & told)
        return Details(*(in_one_piece(part).reshape(count, *part.shape[x.ndim - 1 :]) for part in each))

    def solve(self, state: State) -> State:
        if self.functions.settle is not None:
            use = Use(self, state)
            use.run("settle", *use.turn(Rng(0).at(Purpose.LEARNING)))
        return state

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        in_parts = rounds.fresh is not None or rounds.complete is not None
        if state.rounds.ndim or in_parts or self.memos or not unchanged(self, LEARNING):
            return super().catch_up(state, rounds, first, rng)
        return self.learn_history(state, rounds, rng)

    def learn_history(self, state: State, rounds: Feedback, rng: Rng) -> State:
        """Learn rounds of one learner whose outcomes came in their own rounds, in one call."""
        use = Use(self, state)
        now = state.rounds + np.arange(1, len(rounds.x) + 1)
        rounds = self.checked(rounds, rounds.x.shape, state.reward_range, now)
        key, _, _, _, *room = use.turn(rng)
        x, z, y, arrived = (in_one_piece(part) for part in (*rounds[:3], rounds.arrived))
        details = self.details_of(rounds, use, state)
        use.run("take_history", key[0], *room, x, z, y, arrived, np.zeros((0, use.n)), details)
        return state

    def indices(self, state: State, rng: Rng, shape: tuple[int, ...] | None = None) -> Array:
        """The index of each arm, (*batch, n), or what `index` fills in, (*batch, *shape)."""
        if self.index is None:
            raise NotImplementedError(f"policy = {self!r}: must implement index(s, turn, found)")
        use = Use(self, state)
        shape = (use.n,) if shape is None else shape
        found = np.zeros((use.count, *shape))
        use.run("index", *use.turn(rng), found)
        return found.reshape(*use.batch, *shape)

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        if not self.runs_compiled:
            return None
        return CompiledRounds(self.play_stretch, self.memos, draws_rewards=True)

    def play_stretch(self, state: State, stretch: Stretch, rng: Rng) -> State | None:
        """Play the rounds of a stretch; None if an outcome is not valid."""
        use = Use(self, state)
        scene, rings, horizon = scene_of(stretch), rings_of(stretch, use.count), stretch.horizon
        forms = use.own_form, use.form, fields_of(scene, 1), fields_of(rings, 1)
        made = drivers(self.functions, self.allocates, self.detailed, *forms)
        keys, _, _, _, *room = use.turn(rng)
        worlds = len(scene.columns)
        snapshots = stretch.snapshots.reshape(use.count, *stretch.snapshots.shape[-3:])
        tables = table_of(scene, 1), worlds, table_of(rings, 1)
        made.play_rounds(use.own, use.state, *tables, keys, horizon, stretch.recorded, snapshots, *room)
        return None if rings.fault.any() else state

    def compact(self, state: State) -> LiveCore | None:
        small = sum(leaf.nbytes for leaf in leaves(state).values()) <= MOST_BYTES
        return LiveCore(self, state) if self.runs_compiled and small else None

    @property
    def runs_compiled(self) -> bool:
        """Whether whole rounds are compiled: not if a subclass has its own form of the functions with a batch axis."""
        return self.compiled and unchanged(self, AS_COMPILED)

    @property
    def functions(self) -> Functions:
        """The functions of one learner, as they are now: a subclass, a mixin or an assignment may replace them."""
        kind = type(self)
        given = kind.decide, kind.learn_outcome, kind.note_play, kind.derive, kind.remember, kind.index
        note_context = set_context if self.uses_context else None
        return Functions(*given, kind.prepare, kind.show, kind.settle or kind.derive, note_context)

    def own_numbers(self, batch: Batch) -> Any:
        """What functions see of `self`, for each learner: a NamedTuple of arrays."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        numbers = [name for name, value in given.items() if is_number(value) or name in self.grids]
        axes = dict.fromkeys(numbers, 0) | dict(self.constants)
        return own_type(tuple(axes))(*(spread(getattr(self, name), batch, each) for name, each in axes.items()))

    def check_numbers(self, batch: Batch) -> None:
        """Check that hyperparameters are numbers, or grids over the batch where `grids` has them."""
        check_grid(self, batch)
        for each in fields(self):  # type: ignore[arg-type]
            shape, free = np.shape(getattr(self, each.name)), each.name in (*self.grids, *self.constants)
            accepted = f"(), as {type(self).__name__}.grids does not have it"
            validate.require(shape == () or free, f"shape of {each.name}", shape, accepted)


AS_COMPILED = methods_of(CorePolicy, ROUND)
LEARNING = methods_of(CorePolicy, HISTORY)
IN_TURN = methods_of(CorePolicy, ("learn", "solve"))


def set_context(self: Any, s: Any, context: Any) -> None:
    """The context of the coming round is known."""
    for column in range(context.shape[0]):
        s.context[column] = context[column]


@lru_cache
def own_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Own", names)


def is_number(value: Any) -> bool:
    """Whether a field is a number; whether it may be a grid of them, `grids` says."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


def spread(value: Any, batch: Batch, axes: int) -> Any:
    """A number or an array of so many axes, or a grid of them, with one axis for the learners; it is read-only."""
    given: Any = np.asarray(value)
    given = np.ascontiguousarray(given, KINDS.get(given.dtype.kind, np.float64)).reshape(given.shape)
    inside = given.shape[given.ndim - axes :]
    if given.ndim == axes:  # the same for all
        return np.broadcast_to(given, (math.prod(batch), *inside))
    whole: Any = np.ascontiguousarray(np.broadcast_to(given, (*batch, *inside))).reshape(-1, *inside)
    whole.flags.writeable = False
    return whole


def problem_of_row(problem: Problem, batch: Batch, row: tuple[int, ...]) -> Problem:
    """The problem of one learner of a batch."""
    shapes = {"reward_range": (2,), "overall_range": (2,), "weights": (problem.n_arms,)}
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


def scene_of(stretch: Stretch) -> Scene:
    """What the worlds bring, for the drivers."""
    course = stretch.course
    n = course.total.shape[-1]
    added = course.noise.ndim > 1 or course.baseline.ndim > 1
    of_arms, columns = np.ascontiguousarray(np.swapaxes(course.total, -1, -2)), stretch.context.shape[-1]
    of_arms = of_arms.reshape(-1, n, n)
    worlds, rounds = len(of_arms), len(stretch.recorded)

    def lines(part: Any, count: int, numbers: int = n) -> Any:
        of_worlds = part.reshape(-1, *part.shape[-2:]) if part.ndim > 1 else part
        return np.ascontiguousarray(np.broadcast_to(of_worlds, (worlds, count, numbers)))

    return Scene(
        np.broadcast_to(np.array([course.law, added, OBSERVES.index(stretch.observes)]), (worlds, 3)),
        np.broadcast_to(np.float64(course.concentration), (worlds,)),
        of_arms,
        lines(course.rewards, course.rewards.shape[-2]),
        lines(course.noise, rounds) if added else np.zeros((worlds, 0, n)),
        lines(course.baseline, rounds) if added else np.zeros((worlds, 0, n)),
        lines(stretch.context, rounds, columns) if columns else np.zeros((worlds, rounds, 0)),
        np.ones((worlds, n)),
        np.ones((worlds, n), np.bool_),
    )


def rings_of(stretch: Stretch, count: int) -> Rings:
    """The rings of the learners, for the drivers; those of `stretch.flight` are rewritten."""
    flight, late = stretch.flight, stretch.lateness
    axes = len(flight.first.shape) - 1
    rings = (flight.x, flight.z, flight.y, flight.first, flight.last, flight.following[..., 0])
    rings = (*rings, flight.memo, flight.context)
    delays = (np.ascontiguousarray(part) for part in late.of_rounds)
    flat = [part.reshape(count, *part.shape[axes:]) for part in (*rings, *delays)]
    return Rings._make([*flat, np.zeros(count, np.int64)])
