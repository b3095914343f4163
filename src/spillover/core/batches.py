"""What a policy of one learner does with the states of many, and with a live one: the contract over batches, histories,
stretches of rounds.

A policy writes none of it, and need not know it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from spillover import validate
from spillover.contracts import Policy, learn_rounds
from spillover.core.driver import Details, Rings, Scene, drivers
from spillover.core.own import makes_arrays
from spillover.core.record import fields_of, table_of
from spillover.core.use import Use, functions_of, in_one_piece, use_of
from spillover.kernels.outcomes import NEVER
from spillover.rng import Purpose, Rng
from spillover.state import copy_state
from spillover.types import Array, BoolArray, Choice, Feedback, IntArray, State, Stretch
from spillover.validate import OBSERVES

if TYPE_CHECKING:
    from spillover.core.policy import CorePolicy
from collections.abc import Callable

from spillover.core.compiled import entry
from spillover.core.driver import CHOICE, FIRST_CALL, LEARNING
from spillover.kernels.outcomes import is_plain
from spillover.state import leaves

NOBODY = Rng(0)  # for what draws nothing
DRAWN = "the probabilities that select() returned, above 0 and at most 1 for every arm that was played"


@dataclass(frozen=True)
class Batches:
    """A policy of one learner, as drivers use it for batches."""

    policy: "CorePolicy"

    @property
    def deferrable(self) -> bool:
        """Whether many outcomes may be learned before `solve`."""
        return True

    @property
    def reuses_memo(self) -> bool:
        """Whether the memo of one choice may be used for the rounds after it."""
        return False

    @property
    def runs_alone(self) -> bool:
        """Whether a live learner needs nothing but the compiled functions."""
        return bool(self.policy.compiled)

    @property
    def plays_stretches(self) -> bool:
        """Whether compiled functions can play whole stretches of rounds."""
        return self.runs_alone and (not self.policy.traits.learns_graph or hasattr(self.policy, "show"))

    @property
    def plays_parts(self) -> bool:
        """Whether they can if arms report at different times, too."""
        return self.policy.traits.accepts_missing

    # --- the four functions -----------------------------------------------------------------------------------------

    def select(self, state: State, rng: Rng) -> Choice:
        use = use_of(self.policy, state)
        x, memos = np.empty((use.count, use.n), np.bool_), self.policy.memos
        memo = np.zeros((use.count, memos, use.n))
        use.run("decide", *use.turn(rng), x, memo)
        return choice_of(use, x.reshape(*use.batch, use.n), memo.reshape(*use.batch, memos, use.n))

    def played(self, state: State, x: BoolArray) -> State:
        # only `update` may rewrite the state that it is given
        moved = use_of(self.policy, state).moved
        state = state._replace(**{name: copied(getattr(state, name)) for name in moved})
        use = use_of(self.policy, state)
        given = validate.decision("x", x, (*use.batch, use.n))
        use.run("play", use.flat(given, (use.n,)))
        return state

    def observe(self, state: State, context: Array) -> State:
        if "context" not in state._fields:
            return state
        given = validate.numbers("context", context, "numbers")
        return state._replace(context=np.broadcast_to(given, state.context.shape).copy())

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.learn(state, feedback, rng, deriving=True)

    def learn(self, state: State, feedback: Feedback, rng: Rng, *, deriving: bool = False) -> State:
        """Learn outcomes; deriving: and derive what decisions need."""
        use = use_of(self.policy, state)
        use.run("learn", *self.lesson(use, feedback, rng), deriving)
        return state

    def solve(self, state: State) -> State:
        """Derive what decisions need from the outcomes learned so far."""
        if self.policy.derive is not None:
            use = use_of(self.policy, state)
            use.run("solve", *use.turn(NOBODY.at(Purpose.LEARNING)))
        return state

    def indices(self, state: State, rng: Rng, shape: tuple[int, ...] | None = None) -> Array:
        """What `index` fills in; shape: for each learner, (n,) by default."""
        if self.policy.index is None:
            raise NotImplementedError(f"policy = {self.policy!r}: must implement index(s, turn, found)")
        use = use_of(self.policy, state)
        shape = (use.n,) if shape is None else shape
        found = np.zeros((use.count, *shape))
        use.run("index", *use.turn(rng), found)
        return found.reshape(*use.batch, *shape)

    # --- outcomes ---------------------------------------------------------------------------------------------------

    def lesson(self, use: Use, feedback: Feedback, rng: Rng) -> tuple[Any, ...]:
        """Checked outcomes, as the drivers take them; they can be learned once."""
        state = use.given
        feedback, arrival = self.checked(feedback, (*use.batch, use.n), state.reward_range, state.rounds)
        arrival = arrival.reshape(use.count, arrival.shape[-1])
        lines = (use.flat(part, (use.n,)) for part in feedback[:3])
        played = use.flat(state.rounds - feedback.age, ())
        memo = use.memos(memo_of(use, feedback, feedback.x & feedback.arrived[..., None]))
        arrived, details = np.array(use.flat(feedback.arrived, ())), details_of(use, feedback)
        return (*use.turn(rng), *lines, played, arrived, memo, arrival, details)

    def checked(
        self, given: Feedback, shape: tuple[int, ...], reward_range: Array, rounds: Any
    ) -> tuple[Feedback, IntArray]:
        """Feedback that is right, whoever says that it was checked, and when each arm reports; see `Lesson`."""
        traits = self.policy.traits
        given, checks = Feedback(*given), (shape, reward_range, rounds)
        rewards = traits.needs_rewards
        if traits.accepts_missing and (given.fresh is not None or not is_whole(given, rewards)):
            feedback = validate.partial_feedback(given, *checks)
            return feedback, in_one_piece(arrival_of(feedback, rounds, rewards))
        if given.dose is not None:
            return validate.partial_feedback(given, *checks), np.zeros((*shape[:-1], 0), np.int64)
        feedback = validate.feedback(given, *checks, rewards=rewards)
        return feedback, np.zeros((*shape[:-1], 0), np.int64)

    # --- histories --------------------------------------------------------------------------------------------------

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        """Learn many rounds of one history, as `learn_rounds` does, all but what `solve` derives."""
        if not self.takes_history(state, rounds):
            return learn_rounds(self.policy, state, rounds, first, rng, self.learn)
        use = use_of(self.policy, state)
        now = state.rounds + np.arange(1, len(rounds.x) + 1)
        rounds, arrival = self.checked(rounds, rounds.x.shape, state.reward_range, now)
        arrival = np.ascontiguousarray(np.broadcast_to(arrival, (len(rounds.x), arrival.shape[-1])))
        key, _, _, _, *room = use.turn(rng)
        x, z, y, arrived = (in_one_piece(part) for part in (*rounds[:3], rounds.arrived))
        more = use.memos(rounds.memo)[0], arrival, details_of(use, rounds)
        use.run("take_history", key[0], *room, x, z, y, arrived, *more)
        return state

    def takes_history(self, state: State, rounds: Feedback) -> bool:
        """Whether rounds of a history can be learned in one call: those of one learner."""
        own_memo = self.policy.memos > 0 and not self.reuses_memo
        in_parts = rounds.fresh is not None or rounds.complete is not None
        detailed = use_of(self.policy, state).detailed
        unseen = not detailed and (rounds.context is not None or rounds.dose is not None)
        return not (state.rounds.ndim or own_memo or in_parts or unseen)

    # --- stretches of rounds ----------------------------------------------------------------------------------------

    def play_stretch(self, state: State, stretch: Stretch, rng: Rng) -> State | None:
        """Play the rounds of a stretch, whose rings are rewritten, exactly as by the four functions.

        None if an outcome is not valid: then all rounds are played again by those, which say what is wrong with it.
        """
        policy, use = self.policy, use_of(self.policy, state)
        scene, rings, horizon = scene_of(stretch), rings_of(stretch, use.count), stretch.horizon
        forms = use.own_form, use.form, fields_of(scene, 1), fields_of(rings, 1)
        given = functions_of(policy, use.contextual), makes_arrays(policy), use.detailed
        made = drivers(*given, *forms, policy.traits.accepts_missing)
        keys, _, _, _, *room = use.turn(rng)
        worlds = len(scene.columns)
        snapshots = stretch.snapshots.reshape(use.count, *stretch.snapshots.shape[-3:])
        tables = table_of(scene, 1), worlds, table_of(rings, 1)
        made.play_rounds(use.own, use.state, *tables, keys, horizon, stretch.recorded, snapshots, *room)
        return None if rings.fault.any() else state


USUAL: dict[str, Any] = {}  # the functions with a batch axis of `CorePolicy`, by name


def as_batches(policy: Policy) -> Batches | None:
    """The policy as drivers use it for batches; None if some of the contract over batches is its own, or replaced."""
    own = getattr(policy, "batches", None)
    if not isinstance(own, Batches):
        return None
    replaced = any(getattr(getattr(policy, name), "__func__", None) is not usual for name, usual in USUAL.items())
    return None if replaced else own


class LearnsHistories(Protocol):
    """What learns a history, many rounds at a time."""

    @property
    def deferrable(self) -> bool:
        """Whether many outcomes may be learned before `solve`."""

    @property
    def reuses_memo(self) -> bool:
        """Whether the memo of one choice may be reused for the rounds after it."""

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        """Learn many rounds of one history, as `learn_rounds` does, all but what `solve` derives."""

    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        """Learn an outcome, all but what `solve` derives."""

    def solve(self, state: State) -> State:
        """Derive what decisions need, such as the graph, from the outcomes learned so far."""


class RoundByRound(NamedTuple):
    """A policy that learns a history by its four functions."""

    policy: Policy
    deferrable: bool = True
    reuses_memo: bool = False

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        return learn_rounds(self.policy, state, rounds, first, rng)

    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.policy.update(state, feedback, rng)

    def solve(self, state: State) -> State:
        return state


def learns_histories(policy: Policy) -> LearnsHistories:
    """What learns histories for a policy: its functions of one learner, or round by round its four functions."""
    return as_batches(policy) or RoundByRound(policy)


def choice_of(use: Use, x: BoolArray, memo: Array) -> Choice:
    """A decision x, (*batch, n), with what `remember` noted down: the probabilities, if they are drawn from."""
    if use.randomised:
        return Choice(x, probability=memo[..., 0, :])
    return Choice(x, memo=memo if memo.shape[-2] else None)


def memo_of(use: Use, given: Choice | Feedback, seen: BoolArray) -> Any:
    """What `remember` noted down, from what came back with an outcome; seen: the arms that it is about."""
    return probabilities(given.probability, seen)[..., None, :] if use.randomised else given.memo


def probabilities(given: Any, seen: BoolArray) -> Array:
    """The probabilities of the arms that were played, from the choice of that round; 1 for the others."""
    if given is None and not seen.any():
        return np.ones(seen.shape)
    validate.require(np.shape(given) == seen.shape, "probability", given, f"{DRAWN}, of shape {seen.shape}")
    p = np.where(seen, given, 1.0)
    validate.require(bool(((p > 0) & (p <= 1)).all()), "probability", given, DRAWN)
    return p


def details_of(use: Use, feedback: Feedback) -> Details | None:
    """What else feedback says of rounds, (*batch,) of them."""
    if not use.detailed:
        return None
    x, count = feedback.x, feedback.arrived.size
    columns = use.given.context.shape[-1] if use.contextual else 0
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


is_fine_outcome = entry(is_plain.py_func)


class LiveCore:
    """A policy and the state of one learner, which compiled code rewrites; see `running.Running`."""

    def __init__(self, batches: Batches, state: State) -> None:
        self.batches, policy = batches, batches.policy
        self.state = copy_state(state)
        self.use = use = Use(policy, self.state)
        self.room = use.own_room()  # as learners that one thread makes may be used by several
        self.given = use.own, use.state
        self.round = np.zeros(1, np.uint64)
        self.memo = np.zeros((1, policy.memos, use.n))
        self.played, self.unlearned = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        self.together = np.zeros((1, 0), np.int64)  # all arms report in one round
        none = Details(np.zeros((1, 0)), np.ones((1, use.n)))
        self.details = none if use.detailed else None
        self.range = (float(state.reward_range[0]), float(state.reward_range[1]))

    def select(self, rng: Rng, round: int) -> Choice:
        x, memo = np.empty((1, self.use.n), np.bool_), self.memo.copy() if self.memo.size else self.memo
        self.round[0] = round
        keys = rng.keys.reshape(1, 2)
        self.use.drivers.decide(*self.given, keys, FIRST_CALL, self.round, CHOICE, *self.room, x, memo)
        return choice_of(self.use, x[0], memo[0])

    def playing(self, x: BoolArray, round: int) -> Callable[[], None]:
        own = in_one_piece(x)[None]

        def write() -> None:
            if self.state.rounds < round:
                self.use.drivers.play(*self.given, own)

        return write

    def learning(
        self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int
    ) -> Callable[[], None] | None:
        x = choice.x
        if not is_fine_outcome(x, z, y, *self.range):
            return None
        noted = memo_of(self.use, choice, x)
        memo = self.memo if noted is None else noted[None]
        self.round[0] = self.played[0] = round
        self.unlearned[0] = True  # until compiled code has learned it
        given = (
            *(*self.given, rng.keys.reshape(1, 2), FIRST_CALL, self.round, LEARNING, *self.room),
            *(x[None], z[None], y[None], self.played, self.unlearned, memo, self.together, self.details, True),
        )
        return lambda: self.use.drivers.learn(*given)

    def updating(self, feedback: Feedback, rng: Rng, round: int) -> Callable[[], None]:
        given = self.batches.lesson(self.use, feedback, rng.at(Purpose.LEARNING, round))
        return lambda: self.use.run("learn", *given, True)

    def becoming(self, state: State) -> Callable[[], None]:
        pairs = list(zip(leaves(self.state).values(), leaves(state).values(), strict=True))

        def write() -> None:
            for own, new in pairs:
                own[...] = new

        return write
