"""The contract of compiled forms: stretches of rounds equal the four functions, `course` equals `play`, and so on."""

from itertools import pairwise
from typing import Any

import numpy as np

from spillover import kernels
from spillover.contracts import Delay
from spillover.delays import (
    ArmDelays,
    BadNewsDelay,
    ConstantDelay,
    ConversionDelay,
    GeometricDelay,
    LossyDelay,
    UniformDelay,
)
from spillover.foresight import ForeseeableWorld, best_of_each, drawn, score_each
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds
from spillover.simulation.protocol import problem_for
from spillover.stretches import fuses, play_stretches
from spillover.testing.shared import Arrays, demand_equal, random_sets, rows_of, snapshot
from spillover.testing.trial import SCATTERED, Trial, start_trial
from spillover.types import Batch

SHORT = 4  # rounds of a stretch in the checks: so that rings end and grow within a short horizon
DELAYS = (ConstantDelay(0), ConstantDelay(7), UniformDelay(0, 6), GeometricDelay(5.0), SCATTERED)
BATCHES: tuple[Batch, ...] = ((), (3,), (2, 3))
BY_REWARDS = (BadNewsDelay(1, 9), LossyDelay(ConversionDelay(UniformDelay(0, 5)), 0.1))


def check_stretches(policy: Any, trial: Trial) -> None:
    """Rounds played by `compiled_rounds` have the decisions, outcomes, graphs and states of the four functions."""
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
    remedy = "let compiled_rounds do what select, played and update do, or be None"
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
            graphs.append(player.adjacency(state) if player.learns_graph else np.empty((*batch, 0, 0)))
    whole = {"x": np.stack(x, axis=-2), "y": np.stack(y, axis=-2), "graphs": np.stack(graphs, axis=-3)}
    return whole | snapshot(state, "state.")


def check_course(environment: Any, seed: int, draws: int) -> None:
    """What a world says in advance of many rounds is what `play` then brings; measures of many rounds are the same."""
    rng = Rng(seed, rows_of((3,)))
    world = environment.draw(rng.at(Purpose.WORLD), (3,))
    if not isinstance(world, ForeseeableWorld):
        return
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
            return
        course = drawn(course, first, end - 1, rng)
        noise, baseline = (np.broadcast_to(part, course.rewards.shape) for part in course[2:4])
        for t in range(first, end):
            row = t - first
            z, y = kernels.play(course.total, course.rewards[..., row, :], x[0, :, t - 1])
            foreseen = {"z": z, "y": y + noise[..., row, :] + baseline[..., row, :]}
            outcome = world.play(t, x[0, :, t - 1], rng.at(Purpose.WORLD, t))
            broken = f"course({first}, {end - 1}) differs from play in round {t}"
            demand_equal(foreseen, {"z": np.asarray(outcome.z), "y": np.asarray(outcome.y)}, broken, remedy)


def check_delay_rounds(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """The delays of many rounds drawn at once are those drawn round by round."""
    if delay.depends_on_rewards:
        return
    for batch in ((), (replications,), (2, replications // 2)):
        rng, numbers = Rng(seed, rows_of(batch)), np.arange(1, rounds + 1)
        together = np.asarray(delay.draw_rounds(numbers, rng, batch))
        each = [delay.draw(t, rng.at(Purpose.DELAY, t), batch) for t in range(1, rounds + 1)]
        broken = f"draw_rounds with batch {batch} differs from draw, round by round"
        remedy = "set stationary = False if draw uses the round other than through rng"
        demand_equal({"delay": together}, {"delay": np.stack(each, axis=len(batch))}, broken, remedy)
