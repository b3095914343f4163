"""The base of policies that are written for one learner."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from spillover import validate
from spillover.contracts import HISTORY, ROUND, Policy, learn_rounds, methods_of, unchanged
from spillover.contracts.hyperparameters import check_grid
from spillover.core.driver import ARGUMENTS, Details, Functions, Lesson, Rings, Scene, Turn, drivers
from spillover.core.own import is_number, spread
from spillover.core.record import fields_of, record_class, table_of
from spillover.core.use import Use, in_one_piece, use_of
from spillover.kernels.outcomes import NEVER
from spillover.rng import Purpose, Rng
from spillover.state import copy_state
from spillover.types import Array, Batch, BoolArray, Choice, Feedback, IntArray, Problem, State, Stretch
from spillover.validate import OBSERVES


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
    parts: ClassVar[tuple[str, ...]] = ()  # attributes, such as a graph learner, whose functions the functions use
    index_lines: ClassVar[int] = 0  # of n numbers that `index` fills in, (lines, n); 0: one, (n,)
    unchanged_by_play: ClassVar[tuple[str, ...]] = ()  # fields of the state that `note_play` leaves as they are
    helpers: ClassVar[tuple[str, ...]] = ()  # further functions that the functions use
    lines: ClassVar[int] = 4  # of n numbers, in `turn.lines`
    memos: Any = 0  # lines of n numbers that `remember` notes down

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
    # remember(self, s, turn, memo): note down what `learn_outcome` will want to know of today, (memos, n), after
    #     `decide`, which may have left it in the room of the same turn
    # index(self, s, turn, found): the index of each arm, for explanations
    # prepare(self, s): make room to work in, a tuple of arrays, which is `turn.room` for a number of turns
    # show(self, s, adjacency): fill in the estimated graph, (n, n), if the policy learns one
    note_play: ClassVar[Any] = None
    derive: ClassVar[Any] = None
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
        use = use_of(self, state)
        x, memos = np.empty((use.count, use.n), np.bool_), self.memos
        memo = np.zeros((use.count, memos, use.n))
        use.run("decide", *use.turn(rng), x, memo)
        shape = (*use.batch, use.n)
        return self.choice_with(x.reshape(shape), memo.reshape(*use.batch, memos, use.n))

    def choice_with(self, x: BoolArray, memo: Array) -> Choice:
        """The choice of a decision x, (*batch, n), with what `remember` noted down, (*batch, memos, n)."""
        return Choice(x, memo=memo if memo.shape[-2] else None)

    def memo_with(self, given: Choice | Feedback, seen: BoolArray) -> Any:
        """What `remember` noted down, from what came back with an outcome; seen: the arms that it is about."""
        return given.memo

    def played(self, state: State, x: BoolArray) -> State:
        # only `update` may rewrite the state that it is given
        moved = [name for name in state._fields if name not in self.unchanged_by_play]
        state = state._replace(**{name: copied(getattr(state, name)) for name in moved})
        use = use_of(self, state)
        given = validate.decision("x", x, (*use.batch, use.n))
        use.run("play", use.flat(given, (use.n,)))
        return state

    def observe(self, state: State, context: Array) -> State:
        if not self.traits.uses_context:
            return state
        given = validate.numbers("context", context, "numbers")
        return state._replace(context=np.broadcast_to(given, state.context.shape).copy())

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        if self.learns_at_once:
            return self.learn_with(state, feedback, rng, deriving=True)
        return self.solve(self.learn(state, feedback, rng))

    @property
    def learns_at_once(self) -> bool:
        """Whether `update` need not call `learn` and `solve`: not if a subclass has its own."""
        return unchanged(self, IN_TURN)

    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.learn_with(state, feedback, rng, deriving=False)

    def learn_with(self, state: State, feedback: Feedback, rng: Rng, *, deriving: bool) -> State:
        """Learn outcomes; deriving: and derive what decisions need."""
        use = use_of(self, state)
        use.run("learn", *self.lesson_for(use, state, feedback, rng), deriving)
        return state

    def lesson_for(self, use: Use, state: State, feedback: Feedback, rng: Rng) -> tuple[Any, ...]:
        """Checked outcomes, as the drivers take them; they can be learned once."""
        feedback, arrival = self.checked(feedback, (*use.batch, use.n), state.reward_range, state.rounds)
        arrival = arrival.reshape(use.count, arrival.shape[-1])
        lines = (use.flat(part, (use.n,)) for part in feedback[:3])
        played = use.flat(state.rounds - feedback.age, ())
        memo = use.memos(self.memo_with(feedback, feedback.x & feedback.arrived[..., None]))
        arrived, details = np.array(use.flat(feedback.arrived, ())), self.details_of(feedback, state)
        return (*use.turn(rng), *lines, played, arrived, memo, arrival, details)

    def checked(
        self, given: Feedback, shape: tuple[int, ...], reward_range: Array, rounds: Any, *, whole: bool = False
    ) -> tuple[Feedback, IntArray]:
        """Feedback that is right, whoever says that it was checked, and when each arm reports; see `Lesson`.

        whole: whether it is known that no outcome is missing.
        """
        given, checks = Feedback(*given), (shape, reward_range, rounds)
        rewards = self.traits.needs_rewards
        if self.traits.accepts_missing and (given.fresh is not None or not (whole or is_whole(given, rewards))):
            feedback = validate.partial_feedback(given, *checks)
            return feedback, in_one_piece(arrival_of(feedback, rounds, rewards))
        if given.dose is not None:
            return validate.partial_feedback(given, *checks), np.zeros((*shape[:-1], 0), np.int64)
        feedback = validate.feedback(given, *checks, rewards=rewards)
        return feedback, np.zeros((*shape[:-1], 0), np.int64)

    @property
    def detailed(self) -> bool:
        """Whether it is told more of a round than its decision and outcome: see `Details`."""
        return self.traits.uses_context or self.traits.accepts_doses

    def details_of(self, feedback: Feedback, state: State) -> Details | None:
        """What else feedback says of rounds, (*batch,) of them."""
        if not self.detailed:
            return None
        x, count = feedback.x, feedback.arrived.size
        columns = state.context.shape[-1] if self.traits.uses_context else 0
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
        return Details(in_one_piece(context).reshape(count, columns), in_one_piece(dose).reshape(count, x.shape[-1]))

    # --- histories, see `HistoryPolicy` ----------------------------------------------------------------------------

    @property
    def learns_histories(self) -> bool:
        return unchanged(self, AS_LEARNED)

    @property
    def deferrable(self) -> bool:
        return True

    @property
    def reuses_memo(self) -> bool:
        return False

    def solve(self, state: State) -> State:
        if self.derive is not None:
            use = use_of(self, state)
            use.run("solve", *use.turn(NOBODY.at(Purpose.LEARNING)))
        return state

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        if self.takes_history(state, rounds) and unchanged(self, LEARNING):
            return self.learn_history(state, rounds, rng)
        return learn_rounds(self, state, rounds, first, rng, self.learn)

    def takes_history(self, state: State, rounds: Feedback) -> bool:
        """Whether rounds of a history can be learned in one call: those of one learner."""
        own_memo = self.memos > 0 and not self.reuses_memo
        in_parts = rounds.fresh is not None or rounds.complete is not None
        unseen = not self.detailed and (rounds.context is not None or rounds.dose is not None)
        return not (state.rounds.ndim or own_memo or in_parts or unseen)

    def learn_history(self, state: State, rounds: Feedback, rng: Rng) -> State:
        """Learn rounds of one learner whose outcomes came in their own rounds, in one call."""
        use = use_of(self, state)
        now = state.rounds + np.arange(1, len(rounds.x) + 1)
        rounds, arrival = self.checked(rounds, rounds.x.shape, state.reward_range, now)
        arrival = np.ascontiguousarray(np.broadcast_to(arrival, (len(rounds.x), arrival.shape[-1])))
        key, _, _, _, *room = use.turn(rng)
        x, z, y, arrived = (in_one_piece(part) for part in (*rounds[:3], rounds.arrived))
        more = use.memos(rounds.memo)[0], arrival, self.details_of(rounds, state)
        use.run("take_history", key[0], *room, x, z, y, arrived, *more)
        return state

    def indices(self, state: State, rng: Rng) -> Array:
        """The index of each arm, (*batch, n); with `index_lines`, (*batch, lines, n)."""
        if self.index is None:
            raise NotImplementedError(f"policy = {self!r}: must implement index(s, turn, found)")
        use, shape = use_of(self, state), self.index_shape(state)
        found = np.zeros((use.count, *shape))
        use.run("index", *use.turn(rng), found)
        return found.reshape(*use.batch, *shape)

    def index_shape(self, state: State) -> tuple[int, ...]:
        """The shape of what `index` fills in for each learner."""
        n = int(state.n_arms.flat[0])
        return (self.index_lines, n) if self.index_lines else (n,)

    @property
    def plays_parts(self) -> bool:
        """Whether whole stretches of rounds are played if arms report at different times, too."""
        return self.traits.accepts_missing

    def play_stretch(self, state: State, stretch: Stretch, rng: Rng) -> State | None:
        """Play the rounds of a stretch, whose rings are rewritten, exactly as by the four functions.

        None if an outcome is not valid: then all rounds are played again by those, which say what is wrong with it.
        """
        use = use_of(self, state)
        scene, rings, horizon = scene_of(stretch), rings_of(stretch, use.count), stretch.horizon
        forms = use.own_form, use.form, fields_of(scene, 1), fields_of(rings, 1)
        made = drivers(self.functions, self.allocates, self.detailed, *forms, self.traits.accepts_missing)
        keys, _, _, _, *room = use.turn(rng)
        worlds = len(scene.columns)
        snapshots = stretch.snapshots.reshape(use.count, *stretch.snapshots.shape[-3:])
        tables = table_of(scene, 1), worlds, table_of(rings, 1)
        made.play_rounds(use.own, use.state, *tables, keys, horizon, stretch.recorded, snapshots, *room)
        return None if rings.fault.any() else state

    @property
    def runs_compiled(self) -> bool:
        """Whether whole rounds are compiled: not if a subclass has its own form of the functions with a batch axis."""
        return self.compiled and unchanged(self, AS_COMPILED)

    @property
    def runs_alone(self) -> bool:
        """Whether a live learner needs nothing but the functions of one learner."""
        return self.runs_compiled

    @property
    def functions(self) -> Functions:
        """The functions of one learner, as they are now: a subclass, a mixin or an assignment may replace them."""
        kind = type(self)
        given = kind.decide, kind.learn_outcome, kind.note_play, kind.derive, kind.remember, kind.index
        note_context = set_context if self.traits.uses_context and self.detailed else None
        return Functions(*given, kind.prepare, kind.show, note_context)

    def reached(self) -> list[tuple[type, str]]:
        """All that the drivers are made of, by class and name."""
        names = ("traits", *(name for name in ARGUMENTS if name != "note_context"), *self.helpers)
        learners = (pair for part in self.parts for pair in getattr(self, part).reached())
        return [*((type(self), name) for name in names), *learners]

    def own_numbers(self, batch: Batch) -> Any:
        """What functions see of `self`, for each learner: a NamedTuple of arrays."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        numbers = [name for name, value in given.items() if is_number(value) or name in self.grids]
        axes = dict.fromkeys(numbers, 0) | dict(self.constants)
        functions = dict(zip(ARGUMENTS, self.functions, strict=True))
        functions |= {name: getattr(type(self), name) for name in self.helpers}
        methods = tuple((name, each, self.allocates) for name, each in functions.items() if each is not None)
        own = record_class((*axes, *self.parts), methods)
        learners = (getattr(self, name).own_numbers(batch) for name in self.parts)
        return own(*(spread(getattr(self, name), batch, each) for name, each in axes.items()), *learners)

    def check_numbers(self, batch: Batch) -> None:
        """Check that hyperparameters are numbers, or grids over the batch where `grids` has them."""
        check_grid(self, batch)
        for each in fields(self):  # type: ignore[arg-type]
            shape, free = np.shape(getattr(self, each.name)), each.name in (*self.grids, *self.constants)
            accepted = f"(), as {type(self).__name__}.grids does not have it"
            validate.require(shape == () or free, f"shape of {each.name}", shape, accepted)


NOBODY = Rng(0)  # for what draws nothing
AS_COMPILED = methods_of(CorePolicy, ROUND)
LEARNING = methods_of(CorePolicy, HISTORY)
AS_LEARNED = methods_of(CorePolicy, ("update", "observe"))
IN_TURN = methods_of(CorePolicy, ("learn", "solve"))


def set_context(self: Any, s: Any, context: Any) -> None:
    """The context of the coming round is known."""
    for column in range(context.shape[0]):
        s.context[column] = context[column]


def copied(part: Any) -> Any:
    return copy_state(part) if isinstance(part, tuple) else np.array(part)


def is_whole(feedback: Feedback, rewards: bool) -> bool:
    """Whether no outcome that has arrived is missing, as far as they are numbers: what is not is refused by name.

    rewards: whether z is needed; if not, all of it may be unknown.
    """
    try:
        with np.errstate(all="ignore"):
            if np.isfinite(np.sum(feedback.y) + np.sum(feedback.z)):  # most are: this is faster
                return True
        missing = np.isnan(feedback.z)
        missing = np.isnan(feedback.y) | (missing & (rewards or not missing.all()))
    except (TypeError, ValueError):
        return True
    return not missing.any() or not missing[np.asarray(feedback.arrived, np.bool_)].any()


def arrival_of(feedback: Feedback, now: IntArray, rewards: bool) -> IntArray:
    """The round in which each arm reports: this one, an earlier one, a later one, or never.

    rewards: whether an arm has reported only if both z and y are known.
    """
    known: Any = ~np.isnan(feedback.z), ~np.isnan(feedback.y)
    known = known[0] & known[1] if rewards else known[0] | known[1]
    fresh = known & (True if feedback.fresh is None else feedback.fresh)
    closed = known.all(axis=-1) if feedback.complete is None else feedback.complete
    rest = np.where(np.asarray(closed)[..., None], NEVER, NEVER - 1)
    return np.where(fresh, now[..., None], np.where(known, 0, rest))


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
    )


def rings_of(stretch: Stretch, count: int) -> Rings:
    """The rings of the learners, for the drivers; those of `stretch.flight` are rewritten."""
    flight, late = stretch.flight, stretch.lateness
    axes = len(flight.first.shape) - 1
    delays = (np.ascontiguousarray(part) for part in late)
    flat = [part.reshape(count, *part.shape[axes:]) for part in (*flight, *delays)]
    return Rings._make([*flat, np.zeros(count, np.int64)])
