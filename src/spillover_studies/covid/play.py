"""Simulate the study: all shifts and seeds in one batch, in cases or on [0, 1]; the results are in cases."""

from typing import Any, NamedTuple

import numpy as np

from spillover.graph import AUTO_GRID
from spillover.rng import Rng
from spillover.simulation import rounds
from spillover.types import Array, BoolArray, IntArray
from spillover_studies.covid.plan import LITERAL, CovidPlan, Run, validation_days
from spillover_studies.covid.record import CovidRecord
from spillover_studies.covid.scores import predict_from_all, predict_from_specific
from spillover_studies.covid.worlds import CovidData, literal_world, prepare, semi_synthetic_world

Sets = list[list[CovidData]]  # by shift, by seed


class Played(NamedTuple):
    """The results of one policy in one mode; batch = (shifts, seeds), V validation days."""

    x: BoolArray  # (*batch, days, n)
    z: Array  # (*batch, days, n): region-specific cases of the chosen regions
    y: Array  # (*batch, days, n): overall cases
    adjacency: Array  # (*batch, n, n): the graph after the last day; NaN without one
    sparsity: Array  # (*batch,): lambda chosen at the end, on the policy's own scale; NaN without a graph
    ahead_from_all: Array  # (*batch, V, n): A y + z with the graph at decision time
    ahead_from_specific: Array  # (*batch, V, n): (I - A)^-1 z likewise
    regret: Array  # (*batch, days): cumulative, in expected cases; NaN in the literal mode, where it is not defined
    matches: Array  # (*batch, days): how many chosen regions are in the best set; NaN likewise


def prepare_all(record: CovidRecord, plan: CovidPlan, seeds: IntArray) -> Sets:
    """The data sets of all shifts and seeds."""
    return [
        [prepare(record, shift=k, seed=int(seed)) for seed in row] for k, row in zip(plan.shifts, seeds, strict=True)
    ]


def unit_of(sets: Sets) -> float:
    """c: the largest smoothed regional count, which is 1 on the scale [0, 1]."""
    return float(sets[0][0].unshifted_overall.max())


def world_of(mode: str, sets: Sets, unit: float, star: Array) -> Any:
    """The world of a mode, in units of so many cases; star: A* of the unmasked data before the shift."""
    scaled = [[data.scaled(unit) for data in row] for row in sets]
    return literal_world(scaled) if mode == LITERAL else semi_synthetic_world(scaled, star)


def play(plan: CovidPlan, run: Run, sets: Sets, seeds: IntArray, star: Array) -> Played:
    """Play a policy through the days, all data sets at once; star: A* of the data sets, (*batch, n, n)."""
    unit = unit_of(sets) if run.variant.unit else 1.0
    world = world_of(run.mode, sets, unit, star)
    policy = plan.policy(run.variant.name, run.rule).with_world(world)
    learns = policy.learns_graph
    held_out, batch, n = validation_days(world.horizon), seeds.shape, world.problem.n_arms
    x, z, y = (np.empty((world.horizon, *batch, n)) for _ in range(3))
    regret, matches = np.full((2, world.horizon, *batch), np.nan)
    held = np.full((len(held_out), *batch, n, n), np.nan)
    state: Any = None
    for t, chosen, outcome, state in rounds(policy, world, plan.delay, Rng(plan.seed, seeds), batch):
        x[t - 1], z[t - 1], y[t - 1] = chosen, outcome.z, outcome.y
        if run.mode != LITERAL:
            regret[t - 1] = world.expected(t, world.best(t)) - world.expected(t, chosen)
            matches[t - 1] = world.matches(t, chosen)
        if learns and t + 1 in held_out:  # the graph after day t decides day t + 1
            held[np.searchsorted(held_out, t + 1)] = state.graph.adjacency
    x, z, y, held, regret, matches = (days_inside(values) for values in (x, z, y, held, regret, matches))
    z, y, at = z * unit, y * unit, held_out - 1
    return Played(
        x=x.astype(np.bool_),
        z=z,
        y=y,
        adjacency=np.array(state.graph.adjacency) if learns else np.full((*batch, n, n), np.nan),
        sparsity=AUTO_GRID[state.graph.choice] if learns and policy.graph.learns else np.full(batch, np.nan),
        ahead_from_all=predict_from_all(held, z[..., at, :], y[..., at, :]),
        ahead_from_specific=predict_from_specific(held, z[..., at, :]),
        regret=np.cumsum(regret, axis=-1) * unit,
        matches=matches,
    )


def days_inside(values: Array) -> Array:
    """(days, shifts, seeds, ...) as (shifts, seeds, days, ...)."""
    return np.ascontiguousarray(np.moveaxis(values, 0, 2))
