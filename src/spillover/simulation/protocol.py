"""Rounds one after another: a policy, a world, and outcomes in flight; and a recorded log, replayed."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.contracts import (
    AnyPolicy,
    Delay,
    Policy,
    ScoredWorld,
    StructuredWorld,
    World,
    require_context,
    require_explains,
    suited,
)
from spillover.delays import NEVER, as_delay
from spillover.rng import Purpose, Rng
from spillover.simulation.stretches import Foreseen, takes_parts
from spillover.tabular import in_columns, shared_names
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Outcome, Problem, State


class Mailbox:
    """Outcomes posted with a delay for each replication and delivered in the round in which they arrive.

    Rounds in flight are stored in a ring buffer that grows with the longest delay. Outcomes that are lost, or would
    arrive after the last round, are not stored. If several arrive in one round of a replication, they are delivered in
    the order in which they were played.

    in_parts: whether the arms of a round have delays of their own. Then it is delivered whenever one of them reports,
    with all outcomes that are known by then; the others are NaN.
    """

    def __init__(self, horizon: int, batch: Batch, *, in_parts: bool = False) -> None:
        self.horizon, self.in_parts = horizon, in_parts
        self.batch = batch
        self.size = int(np.prod(batch, dtype=int))
        self.all_rows = np.arange(self.size)
        self.rings: dict[str, NDArray[Any]] = {}  # each (capacity, rows, ...); a row is a replication
        self.capacity = 0
        self.due: dict[int, list[tuple[int, IntArray]]] = {}  # round of arrival -> (round of play, rows)
        self.in_flight: dict[int, int] = {}  # round of play -> number of rows still waiting for it, oldest first

    def post(self, t: int, choice: Choice, outcome: Outcome, delay: IntArray) -> None:
        """Round t was played; its outcome arrives at the end of round t + delay."""
        validate.require(bool((delay >= 0).all()), f"delay of round {t}", delay, "0 or more rounds")
        latest = self.horizon - t
        parts = [(rounds, rows) for rounds, rows in self.arrivals(delay) if rounds <= latest]
        if not parts:
            return
        carried = {"probability": choice.probability, "memo": choice.memo, "context": outcome.context}
        if self.in_parts:  # the round in which each outcome arrives; NEVER if it is lost
            carried["arrival"] = np.where(delay > NEVER - t, NEVER, np.minimum(delay, NEVER - t) + t)
        self.store(t, {"x": choice.x, "z": outcome.z, "y": outcome.y} | carried)
        self.in_flight[t] = sum(len(rows) for _, rows in parts)
        for rounds, rows in parts:
            self.due.setdefault(t + rounds, []).append((t, rows))

    def arrivals(self, delay: IntArray) -> list[tuple[int, IntArray]]:
        """The rows in which something arrives after so many rounds, for each such number."""
        late = delay.reshape(self.size, -1)
        if (late == late[0]).all():
            return [(int(rounds), self.all_rows) for rounds in np.unique(late[0])]
        return [(int(rounds), np.flatnonzero((late == rounds).any(axis=-1))) for rounds in np.unique(late)]

    def feedback(self, t: int, found: dict[str, Any], age: IntArray, arrived: BoolArray) -> Feedback:
        """The stored arrays as feedback at the end of round t."""
        if not self.in_parts:
            return Feedback(**found, age=age, arrived=arrived)
        arrival, here = found.pop("arrival"), arrived[..., None]
        unknown = here & (arrival > t)
        for name in ("z", "y"):
            found[name][unknown] = np.nan
        outstanding = (arrival > t) & (arrival < NEVER)
        complete = arrived & ~outstanding.any(axis=-1)
        return Feedback(**found, age=age, arrived=arrived, fresh=here & (arrival == t), complete=complete)

    def store(self, t: int, arrays: dict[str, Any]) -> None:
        oldest = next(iter(self.in_flight), t)
        if t - oldest >= self.capacity:
            self.grow(2 * (t - oldest + 1), oldest, t)
        absent = {name for name, array in arrays.items() if array is None}
        if self.rings and absent != arrays.keys() - self.rings.keys():
            raise ValueError(f"context, probability and memo of round {t}: must be arrays in every round, or in none")
        for name, array in arrays.items():
            if array is not None:
                if name not in self.rings:
                    shape = (self.capacity, self.size, *array.shape[len(self.batch) :])
                    kind = np.result_type(array, float) if name in ("z", "y") else array.dtype
                    self.rings[name] = np.empty(shape, kind)
                self.rings[name][t % self.capacity] = array.reshape(self.rings[name].shape[1:])

    def grow(self, capacity: int, oldest: int, t: int) -> None:
        held = np.arange(oldest, t)
        for name, ring in self.rings.items():
            larger = np.empty((capacity, *ring.shape[1:]), ring.dtype)
            larger[held % capacity] = ring[held % self.capacity]
            self.rings[name] = larger
        self.capacity = capacity

    def deliver(self, t: int) -> Iterator[tuple[Feedback, IntArray]]:
        """What arrives at the end of round t, with the rounds of play; each item has at most one outcome a row."""
        arrivals = self.due.pop(t, [])  # in the order of play
        if all(rows is self.all_rows for _, rows in arrivals):
            for played, _ in arrivals:
                yield self.for_all_rows(t, played)
        else:
            yield from self.in_turns(t, arrivals)
        for played, rows in arrivals:
            self.in_flight[played] -= len(rows)
            if not self.in_flight[played]:
                del self.in_flight[played]

    def for_all_rows(self, t: int, played: int) -> tuple[Feedback, IntArray]:
        """The feedback of one round for all rows."""
        found: dict[str, Any] = {}
        for name, ring in self.rings.items():
            found[name] = ring[played % self.capacity].reshape(*self.batch, *ring.shape[2:]).copy()
        age, played_at = np.full(self.batch, t - played), np.full(self.batch, played)
        return self.feedback(t, found, age, np.ones(self.batch, np.bool_)), played_at

    def in_turns(self, t: int, arrivals: list[tuple[int, IntArray]]) -> Iterator[tuple[Feedback, IntArray]]:
        """The first arrival of each row, then the second of those that have one, and so on."""
        row = np.concatenate([rows for _, rows in arrivals])
        played = np.repeat([p for p, _ in arrivals], [len(rows) for _, rows in arrivals])
        order = np.argsort(row, kind="stable")  # keeps the order of play
        played, row = played[order], row[order]
        starts = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        turn = np.arange(len(row)) - np.repeat(starts, np.diff(np.r_[starts, len(row)]))
        for k in range(int(turn.max()) + 1):
            yield self.for_rows(t, played[turn == k], row[turn == k])

    def for_rows(self, t: int, played: IntArray, row: IntArray) -> tuple[Feedback, IntArray]:
        """The feedback of one round for each of these rows, and none for the others."""
        arrived, played_at = np.zeros(self.size, np.bool_), np.zeros(self.size, np.int64)
        arrived[row], played_at[row] = True, played
        found: dict[str, Any] = {}
        for name, ring in self.rings.items():
            values = np.zeros(ring.shape[1:], ring.dtype)
            values[row] = ring[played % self.capacity, row]
            found[name] = values.reshape(*self.batch, *ring.shape[2:])
        age = np.where(arrived, t - played_at, 0).reshape(self.batch)
        return self.feedback(t, found, age, arrived.reshape(self.batch)), played_at.reshape(self.batch)


class FeedbackQueue:
    """Takes the outcome of each round and returns what arrives at its end, for any delay.

    in_parts: whether the arms of a round may be delivered at different times; otherwise it arrives with the last one.
    """

    def __init__(self, delay: Delay, horizon: int, rng: Rng, batch: Batch, in_parts: bool = False) -> None:
        self.delay, self.rng, self.batch = delay, rng, batch
        self.mailbox = Mailbox(horizon, batch, in_parts=delay.per_arm and in_parts)

    def exchange(self, t: int, choice: Choice, outcome: Outcome) -> Iterator[tuple[Feedback, Any]]:
        """Post the outcome of round t; yields what arrives at its end, with the rounds of play."""
        self.mailbox.post(t, choice, outcome, self.late(t, choice, outcome))
        return self.mailbox.deliver(t)

    def late(self, t: int, choice: Choice, outcome: Outcome) -> IntArray:
        """The delay of the outcome, or of each arm's."""
        if self.delay.constant is not None:
            return np.full(self.batch, self.delay.constant)
        late = self.delay.draw_given(t, choice.x, outcome.z, self.rng.at(Purpose.DELAY, t), self.batch)
        if not self.delay.per_arm:
            return late
        validate.require(late.shape == choice.x.shape, "shape of delays", late.shape, f"{choice.x.shape}, as x has")
        return late if self.mailbox.in_parts else np.asarray(late.max(axis=-1))


class Round(NamedTuple):
    """A round that has been played; the policy has learned everything that arrived at its end.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=3).draw(sp.Rng(0))
    >>> for played in rounds(sp.SwitchingSEM(), world, sp.ConstantDelay(1), sp.Rng(0), ()):
    ...     print(played.t, played.x.astype(int), played.outcome.y)
    1 [0 1] [0. 0.]
    2 [0 1] [0. 0.]
    3 [1 0] [0. 0.]
    """

    t: int  # from 1
    x: BoolArray
    outcome: Outcome
    state: State  # the next round rewrites it: copy it to keep it


def rounds(policy: AnyPolicy, world: World, delay: Any, rng: Rng, batch: Batch) -> Iterator[Round]:
    """Play a policy in a world to its horizon; `rng` has the world's batch, and `batch` ends with the same axes.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=50).draw(sp.Rng(0))
    >>> payoffs = [played.outcome.y.sum() for played in rounds(sp.NDCSEM(), world, sp.ConstantDelay(1), sp.Rng(0), ())]
    >>> len(payoffs)
    50
    """
    delay = as_delay(delay)
    delay.check_reach(world.horizon, int(rng.keys[..., 1].max(initial=0)) + 1)
    return play_rounds(suited(policy, world.problem), world, delay, rng, batch)


def play_rounds(policy: Policy, world: World, delay: Delay, rng: Rng, batch: Batch) -> Iterator[Round]:
    own, problem = rng.spread(batch), problem_for(policy, world)
    queue = FeedbackQueue(delay, world.horizon, own, batch, takes_parts(policy, problem))
    context_of, foreseen = known_context(world, batch), Foreseen(world, rng)
    state = policy.init(problem, own.at(Purpose.START), batch)
    for t in range(1, world.horizon + 1):
        if (context := context_of(t)) is not None:
            state = policy.observe(state, context)
        choice = policy.select(state, own.at(Purpose.CHOICE, t))
        validate.own_decision(policy, choice.x, (*batch, problem.n_arms), problem.budget)
        state = policy.played(state, choice.x)
        outcome = foreseen.play(t, choice.x)
        if context is not None:
            outcome = outcome._replace(context=context)
        for feedback, played_at in queue.exchange(t, choice, outcome):
            state = policy.update(state, feedback, own.at(Purpose.LEARNING, played_at))
        yield Round(t, choice.x, outcome, state)


def known_context(world: World, batch: Batch) -> Callable[[int], Array | None]:
    """The context of a round, (*batch, k), as a function of the round; None without context."""
    columns = world.problem.context
    if not columns:
        return lambda t: None
    shape, source = (*batch, columns), require_context(world)
    return lambda t: np.broadcast_to(np.asarray(source.context(t), float), shape)


def problem_for(policy: Policy, world: World) -> Problem:
    """The problem as the policy may know it: with the true structure or weights only if the policy knows them."""
    if policy.traits.knows_structure:
        return world.problem._replace(structure=structure_of(require_scored(world)))
    if not policy.traits.knows_graph:
        return world.problem
    accepted = "none for a policy that knows the graph"
    validate.require(not world.graph_changes, "graph_changes", world.graph_changes, accepted)
    return world.problem._replace(weights=require_scored(world).weights(1))


def structure_of(world: ScoredWorld) -> Array:
    """Which edges there are in any round, as NaN, as their weights are not known; 0 where there never is one.

    A world that has fixed entries besides 0 tells them by a method `structure()`.
    """
    if isinstance(world, StructuredWorld):
        return world.structure()
    there = np.any([world.adjacency(t) != 0 for t in (1, *world.graph_changes)], axis=0)
    return np.where(there, np.nan, 0.0)


def require_scored(world: World) -> ScoredWorld:
    """Raise a TypeError for a world that does not know expected payoffs."""
    if not isinstance(world, ScoredWorld):
        raise TypeError(f"world = {type(world).__name__}: must be a ScoredWorld, in which regret is defined")
    return world


def replay(
    policy: AnyPolicy,
    problem: Problem,
    x: Any,
    z: Any,
    y: Any,
    *,
    context: Any = None,
    delay: Any = 0,
    seed: int = 0,
) -> Iterator[Explanation]:
    """Let a policy learn a recorded log; yields its explanations of rounds 1 to T + 1.

    x, z, y: the recorded decisions and outcomes, `(T, n)`. They are checked before the first round. z is None if the
    problem does not observe it. Outcomes may be NaN if the policy accepts missing ones. Tables (pandas, Polars, Arrow)
    have a column for each arm: those of z and y are put into the order of x.
    context: `(T + 1, k)`, the last row that of the coming round; with `(T, k)` the explanations end with round T.

    >>> import spillover as sp
    >>> x = z = y = np.array([[1.0, 0.0], [0.0, 1.0]])  # two rounds: each arm was played once, and brought 1
    >>> *past, coming = replay(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), x, z, y)
    >>> len(past), coming.mean
    (2, array([1., 1.]))
    """
    validate.problem(problem)
    player = suited(policy, problem)
    require_explains(player, "to be replayed")
    late = as_delay(delay)
    arms = shared_names(x, z, y)
    x, z, y = (in_columns(name, given, arms) for name, given in (("x", x), ("z", z), ("y", y)))
    context = in_columns("context", context, None)
    decisions = np.asarray(x)
    shape = (len(decisions) if decisions.ndim else 0, problem.n_arms)
    log = validate.decision("x", decisions, shape)
    late.check_reach(len(log), 1)
    rewards = validate.observed_rewards(z, problem.observes, shape)
    given = Feedback(log, rewards, y, np.zeros(len(log), np.int64), np.ones(len(log), np.bool_))
    partial = problem.observes != "both" or player.traits.accepts_missing
    check = validate.partial_feedback if partial else validate.feedback
    checked = check(given, shape, np.asarray(problem.reward_range, float), np.arange(1, len(log) + 1))
    if not player.traits.accepts_missing and np.isnan(checked.y).any():
        row = int(np.isnan(checked.y).any(axis=-1).argmax())
        accepted = "numbers: the policy does not accept missing outcomes"
        validate.require(False, f"y of round {row + 1}", checked.y[row], accepted)
    table = validate.context(context, problem.context, (len(log), len(log) + 1))
    return replay_checked(player, problem, log, Outcome(checked.z, checked.y, table), late, Rng(seed))


def replay_checked(
    policy: Policy, problem: Problem, log: BoolArray, outcome: Outcome, delay: Delay, rng: Rng
) -> Iterator[Explanation]:
    queue = FeedbackQueue(delay, len(log), rng, (), takes_parts(policy, problem))
    state = policy.init(problem, rng.at(Purpose.START))
    z, y, table = outcome
    last = len(log) + 1 if table is None else len(table)
    for t in range(1, last + 1):
        context = None if table is None else table[t - 1]
        if context is not None:
            state = policy.observe(state, context)
        decision = policy.explain_choice(state, rng.at(Purpose.CHOICE, t))
        validate.own_decision(policy, decision.chosen, (problem.n_arms,), problem.budget)
        yield decision
        if t > len(log):
            return
        choice = policy.select(state, rng.at(Purpose.CHOICE, t))._replace(x=log[t - 1])
        state = policy.played(state, choice.x)
        for feedback, played_at in queue.exchange(t, choice, Outcome(z[t - 1], y[t - 1], context)):
            state = policy.update(state, feedback, rng.at(Purpose.LEARNING, played_at))
