"""Explanations to take apart: made up, and held by policies in play."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import spillover as sp
from spillover.rng import Purpose
from spillover.simulation.protocol import problem_for
from tests.support import explained


def made_up(adjacency: Any, mean: Any, chosen: Any, **changed: Any) -> sp.Explanation:
    """What a learner holds that knows the graph: weights and scores follow from it."""
    A, mean, chosen = np.array(adjacency, float), np.array(mean, float), np.array(chosen, bool)
    gain = np.array(changed.get("gain", np.ones(len(mean))), float)
    weights = np.linalg.inv(np.eye(len(mean)) - A).sum(axis=0) * gain if np.isfinite(A).all() else np.ones(len(mean))
    weights = np.array(changed.get("weights", weights), float)
    index = np.array(changed.get("index", mean + 0.1), float)
    return sp.Explanation(
        mean=mean,
        count=np.array(changed.get("count", np.where(np.isnan(mean), 0.0, 5.0)), float),
        clock=np.array(20.0),
        index=index,
        adjacency=A,
        gain=gain,
        weights=weights,
        score=weights * index,
        chosen=chosen,
        plan=changed.get("plan", ""),
    )


def held(name: str, environment: Any, delay: int, seed: int) -> Iterator[tuple[Any, Any, sp.Explanation]]:
    """A policy, its state and its explanation before every round of a game, and after the last."""
    rng = sp.Rng(seed)
    world = environment.draw(rng.at(Purpose.WORLD))
    policy: Any = sp.policies.POLICIES[name]()
    policy = policy.for_problem(world.problem, world)
    state = policy.init(problem_for(policy, world), rng.at(Purpose.START))
    yield policy, state, explained(policy, state, rng)
    for played in sp.rounds(policy, world, delay, rng, ()):
        yield policy, played.state, explained(policy, played.state, rng)
