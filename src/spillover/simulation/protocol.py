"""The protocol of the game, round by round: decide, play, learn what arrived; in a world, or by a recorded log."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

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
from spillover.delays import as_delay
from spillover.rng import Purpose, Rng
from spillover.simulation.mailbox import FeedbackQueue
from spillover.simulation.stretches import Foreseen, takes_parts
from spillover.tabular import in_columns, shared_names
from spillover.types import Array, Batch, BoolArray, Explanation, Feedback, Outcome, Problem, State


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
