"""The first N rounds of NDC-SEM, played again: what the initialisation alone shows of the graph."""

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from spillover.environments import SyntheticSEM
from spillover.experiments import Results
from spillover.metrics import graph_mse
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds
from spillover.types import Array, BoolArray


class Start(NamedTuple):
    """After round N, with all of its feedback, (worlds,) each."""

    every_arm_pulled: BoolArray
    full_rank: BoolArray  # of the N decisions
    own_reward: BoolArray  # (worlds, N): whether arm i has a reward other than 0 in round i
    graph_error: Array

    @property
    def identified(self) -> BoolArray:
        """Whether the outcomes admit only one graph, for decisions that make up a triangular H.

        Row i of A solves y[i] - z[i] = sum over j > i of A[i, j] y[j] in every round, so it is unique if these y[j] are
        linearly independent over the rounds. They are if the z[j] are, because y = (I - A)^-1 z with a triangular
        matrix. Arm j is not played before round j, so the z[j], j > i, are independent if and only if z[j] is not 0 in
        round j for each of them. Row 1 has the most: arms 2 to N.
        """
        return np.asarray(self.own_reward[:, 1:].all(axis=-1))


def play_start(policy: Any, environment: SyntheticSEM, seed: int, worlds: int) -> Start:
    """Play N rounds without a delay."""
    n = environment.n_arms
    rng = Rng(seed, np.arange(worlds))
    world = environment.draw(rng.at(Purpose.WORLD), (worlds,))
    played = list(islice(rounds(policy, world, 0, rng, (worlds,)), n))
    x = np.stack([r.x for r in played], axis=-2).astype(float)
    z = np.stack([r.outcome.z for r in played], axis=-2)
    return Start(
        every_arm_pulled=np.asarray(x.any(axis=-2).all(axis=-1)),
        full_rank=np.asarray(np.linalg.matrix_rank(x) == n),
        own_reward=np.asarray(np.diagonal(z, axis1=-2, axis2=-1) != 0),
        graph_error=graph_mse(policy.adjacency(played[-1].state), world.adjacency(n)),
    )


def fresh_worlds(results: Results) -> SyntheticSEM:
    environment = results.experiment.worlds["fresh"]
    assert isinstance(environment, SyntheticSEM)
    return environment


def study_start(results: Results, policy: str, environment: SyntheticSEM | None = None) -> Start:
    """The start of a policy of the study in its fresh worlds, or in others drawn from the same seed."""
    count = len(results.record("fresh", "50", policy).replications)
    player = results.experiment.policies[policy].policy("50")
    return play_start(player, environment or fresh_worlds(results), results.experiment.seed, count)
