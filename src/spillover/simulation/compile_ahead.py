"""Compile the functions of policies in advance, by using each of them for a few rounds."""

from typing import Any

import numpy as np

from spillover.core import CorePolicy
from spillover.core.batches import as_batches
from spillover.environments import SyntheticSEM
from spillover.graph import CandidateGraph
from spillover.policies import NDCSEM, POLICIES
from spillover.policies.switching_many import SwitchingOfMany
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import problem_for
from spillover.simulation.replications import simulate
from spillover.types import Feedback

MANY = SwitchingOfMany(graph=CandidateGraph()), NDCSEM(graph=CandidateGraph())  # as the defaults become
OTHERS = (NDCSEM(graph="none"), NDCSEM(graph="adaptive"), *MANY)  # compiled apart from the defaults


def compile_policies() -> None:
    """Compile the built-in policies that are written for one learner, with one process for each core."""
    from joblib import Parallel, cpu_count, delayed

    built_in = [POLICIES[name]() for name in POLICIES.built_in]
    wanted = [policy for policy in (*built_in, *OTHERS) if isinstance(policy, CorePolicy) and policy.compiled]
    Parallel(n_jobs=cpu_count(), batch_size=1)(delayed(use_for_a_moment)(policy) for policy in wanted)


def use_for_a_moment(policy: Any) -> None:
    """Simulate some rounds, and decide, play, learn, explain and catch up once."""
    environment = SyntheticSEM(horizon=12, changes=())
    simulate(policy, environment, 1, replications=2, threads=1)
    rng = Rng(0)
    world = environment.draw(rng.at(Purpose.WORLD))
    problem = problem_for(policy, world)
    player = policy.for_problem(problem, world)
    state = player.init(problem, rng.at(Purpose.START))
    for t in (1, 2):
        choice = player.select(state, rng.at(Purpose.CHOICE, t))
        state, z = player.played(state, choice.x), np.where(choice.x, 0.5, 0.0)
        outcome = Feedback(choice.x, z, z, np.array(0), np.array(True), choice.probability, choice.memo)
        state = player.update(state, outcome, rng.at(Purpose.LEARNING, t))
    if player.traits.explains:
        player.explain(state, rng.at(Purpose.CHOICE, 3))
    own = as_batches(player)
    if own is not None and not player.traits.randomised:
        x, y = np.stack([choice.x] * 2), np.stack([z] * 2)
        past = Feedback(x, y, y, np.zeros(2, np.int64), np.ones(2, np.bool_))
        own.solve(own.catch_up(state, past, 3, rng))
