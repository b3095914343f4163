"""Compute the study part by part: all shifts and seeds in one batch, the paper's grid as a batch axis.

Policies play in cases or on [0, 1]; results are in cases. Everything that stored results depend on is imported here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover.graph import AUTO_GRID, SparseGraph
from spillover.policies.ndcsem import NDCSEM
from spillover.rng import Rng
from spillover.simulation import rounds
from spillover.types import Array, BoolArray, IntArray
from spillover_studies.covid.plan import (
    LITERAL,
    OTHER_SEED,
    PAPER_RULE,
    RULES,
    SPARSITY_SEED,
    UNIT,
    CovidPlan,
    Run,
    validation_days,
)
from spillover_studies.covid.record import CovidRecord
from spillover_studies.covid.scores import (
    Rulers,
    cumulative_rewards,
    predict_from_all,
    predict_from_specific,
    weights_of,
)
from spillover_studies.covid.worlds import (
    CovidData,
    fit_unmasked,
    gather,
    literal_world,
    prepare,
    semi_synthetic_world,
    shifted,
)

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
    policy = plan.policy(run.variant.name, run.rule).for_problem(world.problem, world)
    learns = policy.traits.learns_graph
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
        sparsity=AUTO_GRID[state.graph.choice] if learns and policy.graph.traits.learns else np.full(batch, np.nan),
        ahead_from_all=predict_from_all(held, z[..., at, :], y[..., at, :]),
        ahead_from_specific=predict_from_specific(held, z[..., at, :]),
        regret=np.cumsum(regret, axis=-1) * unit,
        matches=matches,
    )


def days_inside(values: Array) -> Array:
    """(days, shifts, seeds, ...) as (shifts, seeds, days, ...)."""
    return np.ascontiguousarray(np.moveaxis(values, 0, 2))


FIRST_SEED = 0
SEED_SETS = {"reported": FIRST_SEED, "others": OTHER_SEED}  # the first reported seed; one that is not reported
ONE_RUN = "one-run"  # the grid as the paper searches it
SCALES = {"cases": False, "unit": True}


class Grid(NamedTuple):
    """Total estimated reward of every cell: (discounts, explorations, shifts) for each scoring rule, in cases."""

    rewards: dict[str, Array]


def typical_sparsity(plan: CovidPlan, sets: Sets, seeds: IntArray, unit: float) -> float:
    """The final lambda of NDC-SEM with the paper's gamma and xi, on seeds that are used for nothing else."""
    world = world_of(LITERAL, sets, unit, np.empty(0))
    state: Any = None
    for played in rounds(plan.policy("ndc-sem"), world, plan.delay, Rng(plan.seed, seeds), seeds.shape):
        state = played.state
    return float(AUTO_GRID[int(np.median(state.graph.choice))])


def grid_rewards(plan: CovidPlan, sets: Sets, seeds: IntArray, unit: float, graph: Any, rulers: Rulers) -> Grid:
    """NDC-SEM with every pair of discount and exploration on one seed of each shift, all in one batch.

    sets: (shifts, 1); graph: the learner of all cells; rulers: (shifts, days, n).
    """
    world = world_of(LITERAL, sets, unit, np.empty(0))
    shape = (len(plan.discounts), len(plan.explorations), *seeds.shape)
    policy = NDCSEM(
        discount=np.array(plan.discounts)[:, None, None, None],
        exploration=np.array(plan.explorations)[:, None, None],
        unit=UNIT,
        graph=graph,
    )
    n = world.problem.n_arms
    z, x = np.empty((world.horizon, *shape, n)), np.empty((world.horizon, *shape, n), np.bool_)
    state: Any = None
    for played in rounds(policy, world, plan.delay, Rng(plan.seed, seeds), shape):
        x[played.t - 1], z[played.t - 1], state = played.x, played.outcome.z, played.state
    # (days, discounts, explorations, shifts, 1, n) as (discounts, explorations, shifts, days, n)
    z, x = np.moveaxis(z, 0, -2)[..., 0, :, :] * unit, np.moveaxis(x, 0, -2)[..., 0, :, :]
    own = weights_of(state.graph.adjacency[..., 0, :, :])
    found = cumulative_rewards(z, world.overall[:, 0] * unit, x, own, rulers)
    return Grid({name: curve[..., -1] for name, curve in found.items()})


def best_cell(values: Array) -> tuple[int, int]:
    """Position of the cell with the highest mean over the shifts; values: (discounts, explorations, shifts)."""
    mean = values.mean(axis=-1)
    row, column = np.unravel_index(int(np.argmax(mean)), mean.shape)
    return int(row), int(column)


DATA = ("specific", "overall", "expected", "unshifted_specific", "unshifted_overall")
Arrays = dict[str, Any]


def data_arrays(sets: Sets) -> Arrays:
    """The prepared data and the graphs of all regions and days, with and without the shift, by all rules."""
    arrays = {name: gather(sets, name) for name in DATA}
    for rule, learner in RULES.items():
        literal = fit_unmasked(arrays["overall"], arrays["specific"], learner)
        unshifted = fit_unmasked(arrays["unshifted_overall"], arrays["unshifted_specific"], learner)
        arrays |= {f"graph_literal_{rule}": literal, f"graph_unshifted_{rule}": unshifted}
    return arrays


def play_run(plan: CovidPlan, run: Run, sets: Sets, data: Arrays) -> Arrays:
    return play(plan, run, sets, plan.data_seeds(), data[f"graph_unshifted_{run.star}"])._asdict()


def make_rulers(data: Arrays, shifts: Sequence[int], rule: str = PAPER_RULE) -> Rulers:
    """The weights by which all policies are scored, from the data of every region and day."""
    common = weights_of(data[f"graph_literal_{rule}"])[..., None, :]
    before = weights_of(data[f"graph_unshifted_{rule}"])[..., None, :]
    still = np.broadcast_to(before, data["specific"].shape)
    moving = np.stack([shifted(row, k) for row, k in zip(still, shifts, strict=True)])
    return Rulers(common, moving)


def sparsity(record: CovidRecord, plan: CovidPlan, unit: float) -> float:
    """lambda of the grids, from seeds that are used for nothing else."""
    seeds = plan.data_seeds([SPARSITY_SEED])
    return typical_sparsity(plan, prepare_all(record, plan, seeds), seeds, unit)


def grid(record: CovidRecord, plan: CovidPlan, number: int, unit: float, chosen: float) -> Grid:
    """The grid on the data sets of one seed of each shift; chosen: the lambda of all cells."""
    seeds = plan.data_seeds([number])
    sets = prepare_all(record, plan, seeds)
    rulers = Rulers(*(ruler[:, 0] for ruler in make_rulers(data_arrays(sets), plan.shifts)))
    return grid_rewards(plan, sets, seeds, unit, SparseGraph(sparsity=chosen, row_bound=None), rulers)


def grid_of_one_run(record: CovidRecord, plan: CovidPlan, unit: float) -> Grid:
    """The grid on the run that figures show, with lambda chosen online in each cell, as in the paper."""
    at = [plan.picture]
    seeds = plan.data_seeds([FIRST_SEED])
    sets = [prepare_all(record, plan, seeds)[plan.picture]]
    rulers = Rulers(*(ruler[:, 0] for ruler in make_rulers(data_arrays(sets), [plan.shifts[plan.picture]])))
    return grid_rewards(plan, sets, seeds[at], unit, RULES[PAPER_RULE], rulers)
