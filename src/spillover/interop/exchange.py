"""What an agent is shown and what it answers: the same in a Gymnasium environment and inside a policy."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from spillover import validate
from spillover.rng import Rng
from spillover.set_search import top_arms
from spillover.types import Array, BoolArray, Feedback, Problem

ACTIONS = ("set", "top")
Observation: TypeAlias = dict[str, Array]
Arrival: TypeAlias = dict[str, Any]  # of one round: round, x, z (if it is observed), y, context (if there is any)


def check_actions(actions: str) -> None:
    """Raise a ValueError unless it is a kind of action."""
    validate.require(actions in ACTIONS, "actions", actions, f"one of {', '.join(map(repr, ACTIONS))}")


def decision_of(action: Any, actions: str, problem: Problem, rng: Rng) -> BoolArray:
    """The decision that an action stands for.

    A set with more than `budget` arms is cut off after the first ones. Of scores, the highest positive ones are chosen.

    >>> problem = Problem(n_arms=4, budget=2)
    >>> decision_of([1, 0, 1, 1], "set", problem, Rng(0)).astype(int)
    array([1, 0, 1, 0])
    >>> decision_of([0.2, -0.5, 0.9, 0.4], "top", problem, Rng(0)).astype(int)
    array([0, 0, 1, 1])
    """
    n, budget = problem.n_arms, problem.budget
    if actions == "set":
        x = validate.decision("action", action, (n,))
        return x & (np.cumsum(x) <= budget)
    scores = validate.numbers("action", action, f"{n} scores, one for each arm")
    validate.require(scores.shape == (n,), "shape of action", scores.shape, f"({n},): a score for each arm")
    validate.require(bool(np.isfinite(scores).all()), "action", scores, "finite numbers")
    return top_arms(scores, budget, rng)


def arrival_of(feedback: Feedback, played_at: int, problem: Problem) -> Arrival:
    """The outcome of one round, in arrays of its own; NaN where an arm has not reported yet."""
    found: Arrival = {"round": played_at, "x": np.array(feedback.x)}
    if problem.observes == "both":
        found["z"] = np.array(feedback.z)
    found["y"] = np.array(feedback.y)
    if feedback.context is not None:
        found["context"] = np.array(feedback.context)
    if feedback.fresh is not None:
        found["fresh"] = np.array(feedback.fresh)
    return found


def observation_of(problem: Problem, played: int, arrivals: Sequence[Arrival], context: Any) -> Observation:
    """What an agent sees before a round: sums over the rounds whose outcomes have arrived since the one before.

    >>> arrival = {"round": 1, "x": np.array([True, False]), "z": np.array([1.0, 0.0]), "y": np.array([1.0, 0.5])}
    >>> shown = observation_of(Problem(n_arms=2, budget=1), 3, [arrival], None)
    >>> {name: value.tolist() for name, value in shown.items()}
    {'round': [3.0], 'arrived': [1.0], 'x': [1.0, 0.0], 'z': [1.0, 0.0], 'y': [1.0, 0.5]}
    """
    n = problem.n_arms
    found = {"round": np.array([float(played)]), "arrived": np.array([float(len(arrivals))])}
    for name in ("x", "z", "y") if problem.observes == "both" else ("x", "y"):
        found[name] = np.sum([fresh_part(arrival, name) for arrival in arrivals], axis=0) if arrivals else np.zeros(n)
    if context is not None:
        found["context"] = np.array(context, float)
    return found


def fresh_part(arrival: Arrival, name: str) -> Array:
    """What is new in the outcome of a round; 0 elsewhere."""
    values = np.asarray(arrival[name], float)
    return np.where(arrival["fresh"], values, 0.0) if "fresh" in arrival else values
