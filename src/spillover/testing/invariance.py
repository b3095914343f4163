"""Contracts of runs that must agree: feedback in another order, rewards in other units, compiled forms."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover import kernels
from spillover.contracts import Delay, Policy, World, learn_rounds
from spillover.contracts.world import ForeseeableWorld, best_of_each, drawn, observed, score_each
from spillover.core.batches import learns_histories
from spillover.delays import (
    ArmDelays,
    BadNewsDelay,
    ConstantDelay,
    ConversionDelay,
    GeometricDelay,
    LossyDelay,
    UniformDelay,
)
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds
from spillover.simulation.protocol import problem_for
from spillover.simulation.stretches import fuses, play_stretches
from spillover.testing.trial import (
    SCATTERED,
    Arrays,
    Overridden,
    Skipped,
    Trial,
    Wrapper,
    demand,
    demand_equal,
    random_sets,
    rows_of,
    snapshot,
    start_trial,
)
from spillover.types import Batch, BoolArray, Explanation, Feedback, Outcome, Problem, State

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
    if not player.traits.order_free:
        raise Skipped("order_free is False")
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
    """A policy's explanation, or its state if it has none; each array with its tolerance."""
    if not player.traits.explains:
        return {name: (leaf, LEAF_AGREEMENT) for name, leaf in snapshot(state).items()}
    y = np.stack([feedback.y for feedback in log], axis=-1)  # (*batch, n, rounds)
    unique = bool((np.linalg.cond(y @ y.swapaxes(-1, -2)) < WELL_CONDITIONED).all())
    wanted = AGREEMENT | GRAPH_AGREEMENT if unique else AGREEMENT
    found = player.explain(state, rng)
    return {name: (np.array(getattr(found, name)), tolerance) for name, tolerance in wanted.items()}


def check_catch_up(policy: Any, trial: Trial) -> None:
    """A history learned in one call gives the same state as one learned round by round."""
    player, world, rng = start_trial(policy, trial, 0)
    if player.traits.randomised:
        raise Skipped("it is randomised, and learns only from its own draws")
    own = learns_histories(player)
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
    for catch_up in (own.catch_up, partial(learn_rounds, player, learn=own.learn)):
        state = player.init(problem_for(player, world), rng.at(Purpose.START))
        known.append(snapshot(own.solve(catch_up(state, rounds, 1, rng))))
    found = disagreement(*({name: (leaf, CATCH_UP_AGREEMENT) for name, leaf in one.items()} for one in known))
    remedy = "keep what is learned in the state, and nothing in the room of a turn"
    demand(found is None, f"a history learned in one call gave another state than round by round: {found}", remedy)


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


FACTORS = (2.0**10, 2.0**-10)  # powers of two: only exponents change, so rounding cannot break a tie differently
UNITS_AGREEMENT = 1e-6  # relative tolerance of estimates: the graph is solved to a tolerance of its own
IN_UNITS = (
    *("mean", "index", "score", "baseline", "context_effect", "direct_interval", "spill_interval", "total_interval"),
    *("effects", "effects_interval"),
)
WITHOUT_UNITS = ("count", "clock", "adjacency", "gain", "weights", "edge_probability", "edge_interval")


class InOtherUnits(Wrapper):
    """Gives the policy every reward, and the ranges of rewards, times a factor."""

    def __init__(self, policy: Policy, factor: float = 1.0) -> None:
        super().__init__(policy)
        self.factor = factor

    def around(self, inner: Policy) -> Policy:
        return InOtherUnits(inner, self.factor)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        overall = problem.overall_range
        scaled = problem._replace(
            reward_range=self.factor * np.asarray(problem.reward_range, float),
            overall_range=None if overall is None else self.factor * np.asarray(overall, float),
        )
        return super().init(scaled, rng, batch)

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return super().update(state, feedback._replace(z=self.factor * feedback.z, y=self.factor * feedback.y), rng)


def check_units(policy: Any, trial: Trial) -> None:
    """Rewards and their ranges times a factor give the same decisions, and estimates times that factor."""
    player = start_trial(policy, trial, 0)[0]
    if player.traits.needs_world:
        raise Skipped("it is told the world, in whose units the rewards are")
    remedy = "let bonuses, penalties and priors grow with the width of problem.reward_range"
    usual, known = run_in_units(policy, trial, 1.0)
    for factor in FACTORS:
        decisions, estimates = run_in_units(policy, trial, factor)
        broken = f"with rewards and ranges times {factor:g}"
        demand_equal({"x": decisions}, {"x": usual}, f"{broken} it decides differently", remedy)
        found = disagreement(estimates, known)
        demand(found is None, f"{broken} its estimates, divided by that, differ: {found}", remedy)


def run_in_units(policy: Any, trial: Trial, factor: float) -> tuple[BoolArray, dict[str, tuple[Any, float]]]:
    """The decisions of a run, (rounds, *batch, n), and the estimates after it, converted back, with a tolerance."""
    batch = (3,)
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    wrapped = InOtherUnits(player, factor)
    played = [(np.array(round.x), round.state) for round in rounds(wrapped, world, SCATTERED, rng, batch)]
    decisions = np.array([x for x, _ in played])
    if not player.traits.explains:
        return decisions, {}
    found = player.explain(played[-1][1], rng.spread(batch).at(Purpose.CHOICE, len(played) + 1))
    return decisions, dict(estimates_of(found, factor if player.traits.scores_have_units else 1.0))


def estimates_of(found: Explanation, factor: float) -> Iterator[tuple[str, tuple[Any, float]]]:
    """The arrays of an explanation, those in units of the reward divided by the factor."""
    for name in (*IN_UNITS, *WITHOUT_UNITS):
        value = getattr(found, name)
        if value is not None:
            yield name, (np.asarray(value, float) / (factor if name in IN_UNITS else 1.0), UNITS_AGREEMENT)


SHORT = 4  # rounds of a stretch in the checks: so that rings end and grow within a short horizon
DELAYS = (ConstantDelay(0), ConstantDelay(7), UniformDelay(0, 6), GeometricDelay(5.0), SCATTERED)
BATCHES: tuple[Batch, ...] = ((), (3,), (2, 3))
BY_REWARDS = (BadNewsDelay(1, 9), LossyDelay(ConversionDelay(UniformDelay(0, 5)), 0.1))


def check_stretches(policy: Any, trial: Trial) -> None:
    """Stretches of rounds have the decisions, outcomes, graphs and states of the four functions."""
    player, world, rng = start_trial(policy, trial, 0)
    late = tuple(UniformDelay(0, 1 + arm % 4) for arm in range(world.problem.n_arms))
    in_parts = ArmDelays((*late[1:], LossyDelay(late[0], 0.3))), LossyDelay(ArmDelays(late), 0.1)
    cases: list[tuple[Delay, Batch]] = [(delay, batch) for delay in DELAYS for batch in BATCHES]
    cases += [(delay, BATCHES[-1]) for delay in (*BY_REWARDS, *in_parts)]
    for delay, batch in cases:
        if fuses(world, player, delay) and world.course(1, 1, rng) is not None:
            demand_same_stretches(policy, trial, delay, batch)


def demand_same_stretches(policy: Any, trial: Trial, delay: Delay, batch: Batch, most: int = SHORT) -> None:
    """Play the same rounds both ways."""
    remedy = "keep what is learned in the state, nothing in the room of a turn, and indices within arrays"
    broken = f"stretches of rounds with batch {batch} and {delay!r} differ from the four functions"
    demand_equal(
        in_stretches(policy, trial, delay, batch, most), one_by_one(policy, trial, delay, batch), broken, remedy
    )


def in_stretches(policy: Any, trial: Trial, delay: Delay, batch: Batch, most: int) -> Arrays:
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    if not fuses(world, player, delay):
        raise AssertionError(f"{player!r} does not fuse with {world!r} and {delay!r}")
    recorded = np.arange(3, world.horizon + 1, 5)
    played = play_stretches(player, problem_for(player, world), world, delay, rng, batch, recorded, most)
    parts = [part._replace(x=part.x.copy(), y=part.y.copy()) for part in played]
    axes = {"x": -2, "y": -2, "graphs": -3}
    whole = {name: np.concatenate([getattr(part, name) for part in parts], axis) for name, axis in axes.items()}
    return whole | snapshot(parts[-1].state, "state.")


def one_by_one(policy: Any, trial: Trial, delay: Delay, batch: Batch) -> Arrays:
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    x, y, graphs, state = [], [], [], None
    for t, decision, outcome, state in rounds(player, world, delay, rng, batch):
        x.append(np.array(decision))
        y.append(np.array(outcome.y))
        if t % 5 == 3:
            graphs.append(player.adjacency(state) if player.traits.learns_graph else np.empty((*batch, 0, 0)))
    whole = {"x": np.stack(x, axis=-2), "y": np.stack(y, axis=-2), "graphs": np.stack(graphs, axis=-3)}
    return whole | snapshot(state, "state.")


def check_course(environment: Any, seed: int, draws: int) -> None:
    """Check that a world's rounds drawn in advance are those that `play` brings, and are measured the same."""
    rng = Rng(seed, rows_of((3,)))
    world = environment.draw(rng.at(Purpose.WORLD), (3,))
    if not isinstance(world, ForeseeableWorld):
        raise Skipped("the world has no course, score_rounds and best_of_rounds")
    n, budget, last = world.problem.n_arms, world.problem.budget, world.horizon
    x = random_sets(n, budget, (2, 3, last), [seed, last])
    together, each = world.score_rounds(1, x), score_each(world, 1, x)
    remedy = "let score_rounds be foresight.score_each"
    demand_equal(together._asdict(), each._asdict(), "score_rounds differs from expected, best and matches", remedy)
    rounds = np.append(np.arange(last, 0, -3), last)  # in any order
    remedy = "let best_of_rounds be foresight.best_of_each"
    found, wanted = world.best_of_rounds(rounds), best_of_each(world, rounds)
    demand_equal({"best": found}, {"best": wanted}, "best_of_rounds differs from best", remedy)
    remedy = "draw from the rng of each round as play does, or return None"
    for first, end in pairwise([1, *world.graph_changes, last + 1]):
        course = world.course(first, end - 1, rng)
        if course is None:
            raise Skipped(f"the world cannot tell the course of rounds {first} to {end - 1}")
        course = drawn(course, first, end - 1, rng)
        noise, baseline = (np.broadcast_to(part, course.rewards.shape) for part in course[2:4])
        for t in range(first, end):
            row = t - first
            z, y = kernels.play(course.total, course.rewards[..., row, :], x[0, :, t - 1])
            seen = observed(Outcome(z, y + noise[..., row, :] + baseline[..., row, :]), world.problem.observes)
            foreseen = {"z": seen.z, "y": seen.y}
            outcome = world.play(t, x[0, :, t - 1], rng.at(Purpose.WORLD, t))
            broken = f"course({first}, {end - 1}) differs from play in round {t}"
            demand_equal(foreseen, {"z": np.asarray(outcome.z), "y": np.asarray(outcome.y)}, broken, remedy)


def check_delay_rounds(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """The delays of many rounds drawn at once are those drawn round by round."""
    if delay.depends_on_rewards:
        raise Skipped("the delay depends on rewards")
    for batch in ((), (replications,), (2, replications // 2)):
        rng, numbers = Rng(seed, rows_of(batch)), np.arange(1, rounds + 1)
        together = np.asarray(delay.draw_rounds(numbers, rng, batch))
        each = [delay.draw(t, rng.at(Purpose.DELAY, t), batch) for t in range(1, rounds + 1)]
        broken = f"draw_rounds with batch {batch} differs from draw, round by round"
        remedy = "set stationary = False if draw uses the round other than through rng"
        demand_equal({"delay": together}, {"delay": np.stack(each, axis=len(batch))}, broken, remedy)
