"""The contract of order_free: the same feedback in another order teaches the same."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.contracts import Policy, World
from spillover.delays import ConstantDelay
from spillover.rng import Purpose, Rng
from spillover.simulation import problem_for, rounds
from spillover.testing.shared import demand, random_sets, rows_of, snapshot
from spillover.testing.trial import Trial, enter
from spillover.testing.wrappers import Overridden
from spillover.types import Feedback, State

# Of what a policy explains, how well it must agree after the same feedback in another order. The graph is solved to a
# tolerance of its own, statistics only round differently. `chosen` is left out: a rounding may settle a tie.
AGREEMENT = {"mean": 1e-12, "count": 1e-12, "clock": 1e-12, "index": 1e-9}
GRAPH_AGREEMENT = {"adjacency": 1e-6, "weights": 1e-6, "score": 1e-6}
LEAF_AGREEMENT = 1e-9
CATCH_UP_AGREEMENT = 1e-7  # sums over a history may be taken in another order
WELL_CONDITIONED = 1e4  # of the Gram matrix: above it the minimiser is not unique enough to compare graphs


def check_order(policy: Any, trial: Trial) -> None:
    """A policy that says order_free knows the same after the same feedback in whatever order it arrived."""
    batch = (3,)
    player, world, rng = enter(policy, trial, rows_of(batch))
    if not player.order_free:
        return
    watched = Overridden(player)
    outcomes = [played.outcome for played in rounds(watched, world, ConstantDelay(0), rng, batch)]
    letters = [
        Feedback(choice.x, outcome.z, outcome.y, np.zeros(batch, np.int64), np.ones(batch, np.bool_), *choice[1:])
        for choice, outcome in zip(watched.script, outcomes, strict=True)
    ]
    known: dict[str, Any] = {}
    for name, arrivals in arrival_orders(len(letters), trial.seed).items():
        state = learn(player, world, rng, letters, arrivals)
        streams = rng.spread(batch).at(Purpose.CHOICE, len(letters) + 1)
        known[name] = knowledge(player, state, letters, streams)
        found = disagreement(known[name], known["at once"])
        remedy = "weigh feedback by the round of play (now - feedback.age), not of arrival, or set order_free = False"
        demand(found is None, f"feedback that came {name} taught something else than feedback at once: {found}", remedy)


def arrival_orders(horizon: int, seed: int) -> dict[str, list[list[int]]]:
    """Which rounds arrive after each round; in the end all of them have."""
    generator = np.random.default_rng([seed, horizon])
    everything = list(range(1, horizon + 1))
    scattered: list[list[int]] = [[] for _ in everything]
    for played_at in generator.permutation(everything).tolist():
        scattered[int(generator.integers(played_at, horizon, endpoint=True)) - 1].append(played_at)
    silence: list[list[int]] = [[] for _ in everything[1:]]
    return {
        "at once": [[t] for t in everything],
        "in the last round": [*silence, everything],
        "backwards": [*silence, everything[::-1]],
        "scattered": scattered,
    }


def learn(player: Policy, world: World, rng: Rng, letters: list[Feedback], arrivals: list[list[int]]) -> State:
    """Play the rounds of the letters; after round t the rounds arrivals[t - 1] arrive, in that order."""
    batch = letters[0].arrived.shape
    own = rng.spread(batch)
    state = player.init(problem_for(player, world), own.at(Purpose.START), batch)
    for t, arriving in enumerate(arrivals, 1):
        state = player.played(state, letters[t - 1].x)
        for played_at in arriving:
            letter = letters[played_at - 1]._replace(age=np.full(batch, t - played_at))
            state = player.update(state, letter, own.at(Purpose.LEARNING, np.full(batch, played_at)))
    return state


def knowledge(player: Policy, state: State, letters: list[Feedback], rng: Rng) -> dict[str, tuple[NDArray[Any], float]]:
    """What a policy knows, each array with how well it must agree: what it explains, or else its state."""
    if not player.explains:
        return {name: (leaf, LEAF_AGREEMENT) for name, leaf in snapshot(state).items()}
    y = np.stack([letter.y for letter in letters], axis=-1)  # (*batch, n, rounds)
    unique = bool((np.linalg.cond(y @ y.swapaxes(-1, -2)) < WELL_CONDITIONED).all())
    wanted = AGREEMENT | GRAPH_AGREEMENT if unique else AGREEMENT
    found = player.explain(state, rng)
    return {name: (np.array(getattr(found, name)), tolerance) for name, tolerance in wanted.items()}


def check_catch_up(policy: Any, trial: Trial) -> None:
    """Catching up on a history in one call teaches the same as learning it round by round."""
    player, world, rng = enter(policy, trial, 0)
    if player.randomised:  # it learns from its own draws alone
        return
    count, draw = world.horizon, np.random.default_rng([trial.seed, world.horizon])
    x = random_sets(world.problem.n_arms, world.problem.budget, (count,), [trial.seed])
    outcomes = [world.play(t, x[t - 1], rng.at(Purpose.WORLD, t)) for t in range(1, count + 1)]
    z, y = (np.array(part) for part in zip(*outcomes, strict=True))
    rounds = Feedback(x, z, y, np.zeros(count, np.int64), draw.uniform(size=count) < 0.8)
    first = player.init(problem_for(player, world), rng.at(Purpose.START))
    rounds = rounds._replace(memo=player.select(first, rng.at(Purpose.CHOICE, 1)).memo)
    known = []
    for catch_up in (player.catch_up, partial(Policy.catch_up, player)):
        state = player.init(problem_for(player, world), rng.at(Purpose.START))
        known.append(snapshot(player.solve(catch_up(state, rounds, 1, rng))))
    found = disagreement(*({name: (leaf, CATCH_UP_AGREEMENT) for name, leaf in one.items()} for one in known))
    remedy = "override catch_up together with played and learn, or leave the default"
    demand(found is None, f"a history in one call taught something else than round by round: {found}", remedy)


def disagreement(ours: dict[str, tuple[NDArray[Any], float]], theirs: dict[str, Any]) -> str | None:
    """The first array that does not agree, in words; relative to its largest entry."""
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
