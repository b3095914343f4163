"""Computes the blocks of a search."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import Delay, Environment, as_policy, suited
from spillover.delays import as_delay
from spillover.hyperparameters import spread_grid
from spillover.measuring import scorer
from spillover.rng import Purpose, Rng
from spillover.simulation.replications import from_parts
from spillover.stretches import Part
from spillover.types import Array

NO_GRAPHS = np.empty(0, np.int64)  # rounds in which they are recorded


class BlockTask(NamedTuple):
    """A block with everything that is needed to play it."""

    environment: Environment
    delay: Delay
    policy: Any  # its hyperparameters are arrays, (cells,)
    seed: int
    first: int
    replications: int


def final_regret(policy: Any, environment: Environment, delay: Any, rng: Rng) -> Array:
    """Regret after the last round, (*grid, replications), without storing earlier rounds."""
    replications = rng.keys.shape[:-1]
    world = environment.draw(rng.at(Purpose.WORLD), replications)
    player, grid = spread_grid(as_policy(policy))
    player, late = suited(player.with_world(world), world.problem), as_delay(delay)
    late.check_reach(world.horizon, int(rng.keys[..., 1].max(initial=0)) + 1)
    batch, score = (*grid, *replications), scorer(world)

    def added(parts: Iterator[Part]) -> Array:
        regret = np.zeros(batch)
        for part in parts:
            each = score(part.first, part.x).regret
            # one after another, so that the sum does not depend on how many rounds a part has
            regret = np.cumsum(np.concatenate([regret[..., None], each], axis=-1), axis=-1)[..., -1]
        return regret

    return from_parts(added, player, world, late, rng, batch, NO_GRAPHS)


def play(task: BlockTask) -> Array:
    """Final regret of a block, (cells, replications)."""
    rng = Rng(task.seed, np.arange(task.first, task.first + task.replications))
    return final_regret(task.policy, task.environment, task.delay, rng)
