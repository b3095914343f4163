"""The paper's grid of gamma and xi as a batch axis, scored as in the paper and by other scoring rules."""

from typing import Any, NamedTuple

import numpy as np

from spillover.graph import AUTO_GRID
from spillover.policies.ndcsem import NDCSEM
from spillover.rng import Rng
from spillover.simulation import rounds
from spillover.types import Array, IntArray
from spillover_studies.covid.plan import LITERAL, OTHER_SEED, UNIT, CovidPlan
from spillover_studies.covid.play import Sets, world_of
from spillover_studies.covid.scores import Rulers, cumulative_rewards, weights_of

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
