"""Computes the blocks of a search."""

from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import Delay, Environment, as_policy
from spillover.hyperparameters import spread_grid
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds
from spillover.types import Array


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
    regret = np.zeros((*grid, *replications))
    for t, x, _, _ in rounds(player, world, delay, rng, regret.shape):
        regret += world.expected(t, world.best(t)) - world.expected(t, x)
    return regret


def play(task: BlockTask) -> Array:
    """Final regret of a block, (cells, replications)."""
    rng = Rng(task.seed, np.arange(task.first, task.first + task.replications))
    return final_regret(task.policy, task.environment, task.delay, rng)
