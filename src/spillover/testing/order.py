"""The contract of order_free: the order in which feedback arrives does not matter."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.contracts import Policy, World
from spillover.delays import ConstantDelay
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds
from spillover.simulation.protocol import problem_for
from spillover.testing.shared import demand, random_sets, rows_of, snapshot
from spillover.testing.trial import Trial, start_trial
from spillover.testing.wrappers import Overridden
from spillover.types import Feedback, State

# Relative tolerances for the explanations after the same feedback in another order. The graph is solved to a tolerance
# of its own; statistics differ by rounding only. `chosen` is left out, because rounding may break a tie.
AGREEMENT = {"mean": 1e-12, "count": 1e-12, "clock": 1e-12, "index": 1e-9}
GRAPH_AGREEMENT = {"adjacency": 1e-6, "weights": 1e-6, "score": 1e-6}
LEAF_AGREEMENT = 1e-9
CATCH_UP_AGREEMENT = 1e-7  # sums over a history may be added in another order
WELL_CONDITIONED = 1e4  # condition number of the Gram matrix up to which the estimated graph is comparable


def check_order(policy: Any, trial: Trial) -> None:
    """A policy with order_free = True learns the same from the same feedback in any order of arrival."""
    batch = (3,)
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    if not player.order_free:
        return
    wrapped = Overridden(player)
    outcomes = [played.outcome for played in rounds(wrapped, world, ConstantDelay(0), rng, batch)]
    log = [
        Feedback(
            choice.x, outcome.z, outcome.y, np.zeros(batch, np.int64), np.ones(batch, np.bool_), *choice[1:]
        )._replace(context=outcome.context)
        for choice, outcome in zip(wrapped.script, outcomes, strict=True)
    ]
    known: dict[str, Any] = {}
    for name, arrivals in arrival_orders(len(log), trial.seed).items():
        state = learn(player, world, rng, log, arrivals)
        streams = rng.spread(batch).at(Purpose.CHOICE, len(log) + 1)
        known[name] = knowledge(player, state, log, streams)
        found = disagreement(known[name], known["at once"])
        remedy = "weight feedback by its round of play (now - feedback.age), not of arrival, or set order_free = False"
        demand(found is None, f"feedback that arrived {name} gave another state than feedback at once: {found}", remedy)


def arrival_orders(horizon: int, seed: int) -> dict[str, list[list[int]]]:
    """The rounds that arrive after each round; by the end all have arrived."""
    generator = np.random.default_rng([seed, horizon])
    everything = list(range(1, horizon + 1))
    scattered: list[list[int]] = [[] for _ in everything]
    for played_at in generator.permutation(everything).tolist():
        scattered[int(generator.integers(played_at, horizon, endpoint=True)) - 1].append(played_at)
    nothing: list[list[int]] = [[] for _ in everything[1:]]
    return {
        "at once": [[t] for t in everything],
        "in the last round": [*nothing, everything],
        "backwards": [*nothing, everything[::-1]],
        "scattered": scattered,
    }


def learn(player: Policy, world: World, rng: Rng, log: list[Feedback], arrivals: list[list[int]]) -> State:
    """Play the rounds of a log; after round t the outcomes of rounds arrivals[t - 1] arrive, in that order."""
    batch = log[0].arrived.shape
    own = rng.spread(batch)
    state = player.init(problem_for(player, world), own.at(Purpose.START), batch)
    for t, arriving in enumerate(arrivals, 1):
        if log[t - 1].context is not None:
            state = player.observe(state, log[t - 1].context)
        state = player.played(state, log[t - 1].x)
        for played_at in arriving:
            feedback = log[played_at - 1]._replace(age=np.full(batch, t - played_at))
            state = player.update(state, feedback, own.at(Purpose.LEARNING, np.full(batch, played_at)))
    return state


def knowledge(player: Policy, state: State, log: list[Feedback], rng: Rng) -> dict[str, tuple[NDArray[Any], float]]:
    """What a policy has learned, each array with its tolerance: its explanation, or its state if it has none."""
    if not player.explains:
        return {name: (leaf, LEAF_AGREEMENT) for name, leaf in snapshot(state).items()}
    y = np.stack([feedback.y for feedback in log], axis=-1)  # (*batch, n, rounds)
    unique = bool((np.linalg.cond(y @ y.swapaxes(-1, -2)) < WELL_CONDITIONED).all())
    wanted = AGREEMENT | GRAPH_AGREEMENT if unique else AGREEMENT
    found = player.explain(state, rng)
    return {name: (np.array(getattr(found, name)), tolerance) for name, tolerance in wanted.items()}


def check_catch_up(policy: Any, trial: Trial) -> None:
    """catch_up on a history gives the same state as learning it round by round."""
    player, world, rng = start_trial(policy, trial, 0)
    if player.randomised:  # it learns only from its own draws
        return
    count, draw = world.horizon, np.random.default_rng([trial.seed, world.horizon])
    x = random_sets(world.problem.n_arms, world.problem.budget, (count,), [trial.seed])
    outcomes = [world.play(t, x[t - 1], rng.at(Purpose.WORLD, t)) for t in range(1, count + 1)]
    z, y = np.array([outcome.z for outcome in outcomes]), np.array([outcome.y for outcome in outcomes])
    context = np.array([outcome.context for outcome in outcomes]) if world.problem.context else None
    rounds = Feedback(x, z, y, np.zeros(count, np.int64), draw.uniform(size=count) < 0.8, context=context)
    first = player.init(problem_for(player, world), rng.at(Purpose.START))
    first = first if context is None else player.observe(first, context[0])
    rounds = rounds._replace(memo=player.select(first, rng.at(Purpose.CHOICE, 1)).memo)
    known = []
    for catch_up in (player.catch_up, partial(Policy.catch_up, player)):
        state = player.init(problem_for(player, world), rng.at(Purpose.START))
        known.append(snapshot(player.solve(catch_up(state, rounds, 1, rng))))
    found = disagreement(*({name: (leaf, CATCH_UP_AGREEMENT) for name, leaf in one.items()} for one in known))
    remedy = "override catch_up together with played and learn, or leave the default"
    demand(found is None, f"catch_up gave another state than learning round by round: {found}", remedy)


def disagreement(ours: dict[str, tuple[NDArray[Any], float]], theirs: dict[str, Any]) -> str | None:
    """A description of the first array that does not agree, relative to its largest entry; None if all do."""
    for name, (one, tolerance) in ours.items():
        other = theirs[name][0]
        if one.dtype.kind != "f":
            good = one == other
        else:
            finite = np.isfinite(one) & np.isfinite(other)
            scale = np.max(np.abs(other), where=finite, initial=np.finfo(float).tiny)
            good = np.isclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
        if not good.all():
            where = tuple(int(k) for k in np.argwhere(~good)[0])
            return f"{name}{list(where)} is {one[where]!r} against {other[where]!r}"
    return None
