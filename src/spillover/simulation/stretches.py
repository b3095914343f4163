"""Rounds played many at a time: by the compiled form of a policy, if it has one, or one after another.

What a world brings, whatever is chosen, and the delays are drawn in advance for a stretch of rounds.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Delay, Policy, World, edges_of, require_context
from spillover.contracts.world import ForeseeableWorld, drawn, observed
from spillover.core.batches import as_batches
from spillover.rng import Purpose, Rng
from spillover.types import (
    Array,
    Batch,
    BoolArray,
    Course,
    Flight,
    IntArray,
    Lateness,
    Outcome,
    Problem,
    State,
    Stretch,
)

MOST_NUMBERS = 1 << 19  # of one kind in a stretch: rounds x learners x arms; some ten megabytes in all
FEWEST_ROUNDS, MOST_ROUNDS = 8, 4096


class Unforeseen(Exception):
    """The compiled form cannot go on: play all rounds one after another, which also says if something is wrong."""


class Part(NamedTuple):
    """A stretch of rounds that has been played."""

    first: int  # its first round
    x: BoolArray  # (*batch, rounds, n)
    y: Array  # (*batch, rounds, n)
    recorded: Sequence[int]  # the rounds at whose end the graph is to be measured
    graphs: Any  # (*batch, recorded rounds, n, n): the estimates at their ends; a list of sparse ones if sparse
    state: State  # after the last round; the next stretch rewrites it


def fuses(world: World, policy: Policy, delay: Delay) -> TypeGuard[ForeseeableWorld]:
    """Whether rounds can be played by the compiled form of the policy."""
    form = as_batches(policy)
    if form is None or not form.plays_stretches or (delay.depends_on_rewards and not delay.foreseeable):
        return False
    if delay.depends_on_rewards and world.problem.observes != "both":
        return False
    if delay.per_arm and takes_parts(policy, world.problem) and not form.plays_parts:
        return False
    return isinstance(world, ForeseeableWorld)


def takes_parts(policy: Policy, problem: Problem) -> bool:
    """Whether the policy learns each arm's outcome when it arrives; a payoff is known when all have arrived."""
    return policy.traits.accepts_missing and problem.observes != "payoff"


def rounds_at_once(n_arms: int, batch: Batch, graphs: float) -> int:
    """The rounds of a stretch, a power of 2, so that its memory is bounded; graphs: how many are recorded a round."""
    numbers = int(np.prod(batch, dtype=int)) * n_arms * (1.0 + graphs * n_arms / 4)
    most = min(max(MOST_NUMBERS / max(numbers, 1), FEWEST_ROUNDS), MOST_ROUNDS)
    return 1 << int(np.log2(most))


def play_stretches(
    policy: Policy,
    problem: Problem,
    world: ForeseeableWorld,
    delay: Delay,
    rng: Rng,
    batch: Batch,
    recorded: IntArray,
    most: int = MOST_ROUNDS,
) -> Iterator[Part]:
    """Play to the horizon by the compiled form; raises `Unforeseen` if that cannot go on.

    A stretch ends where the graph changes, and where the rings end, so that its rounds are next to each other there.
    It has at most so many rounds, a power of 2.
    """
    n, horizon, own = problem.n_arms, world.horizon, rng.spread(batch)
    columns = problem.context if policy.traits.uses_context else 0
    most = min(most, rounds_at_once(n, batch, len(recorded) / horizon))
    state = policy.init(problem, own.at(Purpose.START), batch)
    in_parts = delay.per_arm and takes_parts(policy, problem)
    form = as_batches(policy)
    if form is None:
        raise Unforeseen
    flight = empty_flight(n, batch, most, form.policy.memos, columns, in_parts=in_parts)
    first = 1
    while first <= horizon:
        ends = [(first // most + 1) * most, horizon + 1, *(t for t in world.graph_changes if t > first)]
        rounds = np.arange(first, min(ends))
        last = int(rounds[-1])
        course = world.course(first, last, rng)
        late = lateness(delay, rounds, own, batch, n)
        if course is None or not is_possible(late, n):
            raise Unforeseen
        flight = grown(flight, longest_wait(late, horizon - rounds), first)
        measured = recorded[(recorded >= first) & (recorded <= last)]
        which = np.full(len(rounds), -1)
        which[measured - first] = np.arange(len(measured))
        graphs = np.empty((*batch, len(measured), *((n, n) if policy.traits.learns_graph else (0, 0))))
        context = contexts(world, rounds) if columns else np.zeros((len(rounds), 0))
        stretch = Stretch(course, late, horizon, flight, which, graphs, context, problem.observes)
        played = form.play_stretch(state, stretch, own)
        if played is None:
            raise Unforeseen
        state = played
        start = first % flight.x.shape[-2]
        now = (..., slice(start, start + len(rounds)), slice(None))
        validate.own_decision(policy, flight.x[now], (*batch, len(rounds), n), problem.budget)
        graphed = measured.tolist() if policy.traits.learns_graph else []
        seen = observed(Outcome(flight.z[now], flight.y[now]), problem.observes)  # again, if it was hidden already
        yield Part(first, flight.x[now], seen.y, graphed, graphs, state)
        first = last + 1


def contexts(world: World, rounds: IntArray) -> Array:
    """The context of some rounds, (*batch of the world, rounds, k)."""
    source = require_context(world)
    return np.stack([np.asarray(source.context(int(t)), float) for t in rounds], axis=-2)


class Foreseen:
    """A world whose rewards are drawn in advance, a stretch of rounds at a time, if it can tell; played in order."""

    def __init__(self, world: World, rng: Rng) -> None:
        self.world, self.rng = world, rng
        self.starts = sorted({1, *world.graph_changes, world.horizon + 1})
        batch = rng.keys.shape[:-1]
        self.most = rounds_at_once(world.problem.n_arms, batch, 0.0)
        self.course: Course | None = None
        self.first, self.end = 1, 1  # the rounds of the course

    def play(self, t: int, x: BoolArray) -> Outcome:
        """The outcome of round t."""
        if t == self.end:
            self.first, self.end = t, min(t + self.most, next(start for start in self.starts if start > t))
            world = self.world
            course = world.course(t, self.end - 1, self.rng) if isinstance(world, ForeseeableWorld) else None
            self.course = None if course is None else drawn(course, t, self.end - 1, self.rng)
        if self.course is None:
            return self.world.play(t, x, self.rng.at(Purpose.WORLD, t))
        total, rewards, *added = self.course[:4]
        row = t - self.first
        z, y = kernels.play(total, rewards[..., row, :], x)
        for part in added:
            if part.ndim > 1:  # otherwise it is a 0
                y = y + part[..., row, :]
        return observed(Outcome(z, y), self.world.problem.observes)


def lateness(delay: Delay, rounds: IntArray, rng: Rng, batch: Batch, n: int) -> Lateness:
    """When the outcomes of some rounds arrive."""
    if delay.constant is None:
        return delay.foresee(rounds, rng, batch, n)
    shape = (*batch, len(rounds))
    late = np.broadcast_to(np.int64(delay.constant), shape)
    return Lateness.of_all_arms(late, late)


def is_possible(late: Lateness, n: int) -> bool:
    """Whether delays are at least 0, and those of arms, if they differ, are as many as the arms."""
    late_arms = late.by_arm.shape[-1] in (0, n) and late.by_arm.min(initial=0) >= 0
    return bool(late_arms and late.delays.min(initial=0) >= 0)


def longest_wait(late: Lateness, left: IntArray) -> int:
    """The longest delay of what arrives before the end, if so many rounds are left after each round."""
    arms = late.by_arm
    # the slowest may be too late, and others that depend on the rewards just in time
    longest = np.max(np.minimum(late.slowest, left), where=late.delays <= left, initial=0)
    return int(np.max(arms, where=arms <= left[:, None], initial=longest))


def empty_flight(
    n: int, batch: Batch, slots: int, memos: int = 0, columns: int = 0, *, in_parts: bool = False
) -> Flight:
    lines, ring = (*batch, slots, n), (*batch, slots)
    outcomes = (np.zeros(lines, np.bool_), np.zeros(lines), np.zeros(lines))
    first, last, following = (np.zeros(shape, np.int64) for shape in (ring, ring, (*ring, n if in_parts else 1)))
    arrival = np.zeros((*ring, n if in_parts else 0), np.int64)
    return Flight(*outcomes, first, last, following, np.zeros((*ring, memos, n)), arrival, np.zeros((*ring, columns)))


def grown(flight: Flight, longest: int, first: int) -> Flight:
    """The rings with room for such a delay, before round `first` is played."""
    *batch, slots, n = flight.x.shape
    if longest < slots:
        return flight
    in_parts = flight.arrival.shape[-1] > 0
    lines = flight.memo.shape[-2], flight.context.shape[-1]
    larger = empty_flight(n, tuple(batch), 1 << longest.bit_length(), *lines, in_parts=in_parts)
    past = first - slots
    starts = (past, past, past, first, first, past, past, past, past)  # `first` and `last` are of rounds to come
    for new, old, start in zip(larger, flight, starts, strict=True):
        copy_rounds(new, old, start, len(batch))
    return larger


def copy_rounds(larger: Any, ring: Any, start: int, axis: int) -> None:
    """Copy as many rounds as a ring has, from `start` on, to a larger one: in pieces that end where a ring does."""
    into, source = np.moveaxis(larger, axis, 0), np.moveaxis(ring, axis, 0)
    slots, room, end = len(source), len(into), start + len(source)
    while start < end:
        there, here = start % room, start % slots
        size = min(end - start, slots - here, room - there)
        into[there : there + size] = source[here : here + size]
        start += size


def in_parts(played: Iterator[Any], policy: Policy, recorded: IntArray, sparse: bool = False) -> Iterator[Part]:
    """Rounds that are played one after another, in parts; sparse: graphs are recorded as sparse arrays."""
    wanted = set(recorded.tolist()) if policy.traits.learns_graph else set()
    x: list[BoolArray] = []
    y: list[Array] = []
    measured: list[int] = []
    graphs: list[Any] = []
    state: State = None
    t = 0
    for t, decision, outcome, state in played:
        x.append(decision)
        y.append(outcome.y)
        if t in wanted:
            measured.append(t)
            graphs.append(edges_of(policy, state) if sparse else policy.adjacency(state))
        if len(x) == rounds_at_once(decision.shape[-1], decision.shape[:-1], 0.0):
            yield part_of(t, x, y, measured, graphs, state)
            x, y, measured, graphs = [], [], [], []
    if x:
        yield part_of(t, x, y, measured, graphs, state)


def part_of(
    last: int, x: list[BoolArray], y: list[Array], measured: list[int], graphs: list[Any], state: State
) -> Part:
    dense = bool(graphs) and isinstance(graphs[0], np.ndarray)
    stacked = np.stack(graphs, axis=-3) if dense else graphs
    decisions, outcomes = np.stack(x, axis=-2), np.stack(y, axis=-2)
    return Part(last - len(x) + 1, decisions, outcomes, measured, stacked, state)
