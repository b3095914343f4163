"""Agents of other libraries as policies: whatever answers an observation with an action."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spillover.interop.exchange import Arrival, Observation, check_actions, decision_of, observation_of
from spillover.interop.seats import Seat, SeatedPolicy
from spillover.rng import Rng
from spillover.types import BoolArray, Problem


def by_act(agent: Any, observation: Observation) -> Any:
    """Ask an agent that has a method `act`."""
    return agent.act(observation)


def not_told(agent: Any, arrival: Arrival) -> None:
    """An agent that learns from its observations alone, or not at all."""


@dataclass(frozen=True, kw_only=True)
class AgentPolicy(SeatedPolicy):
    """A Gymnasium-style agent that plays in `simulate`, next to all other policies.

    make: called with the problem and a seed, once for each replication; returns the agent. An agent that does not
        learn may be the same for all.
    act: called with the agent and an observation, as `SpilloverEnv` gives them; returns the action. By default
        `agent.act(observation)`; for a model of Stable-Baselines3 it is
        `lambda model, observation: model.predict(observation)[0]`.
    on_feedback: called with the agent and each outcome when it arrives, as in `info["feedback"]` of `SpilloverEnv`.
    actions: "set" or "top", as in `SpilloverEnv`.

    >>> import spillover as sp
    >>> import numpy as np
    >>> class Favourite:
    ...     "Plays the arms that have earned most so far."
    ...     def __init__(self, n): self.earned = np.ones(n)
    ...     def act(self, observation):
    ...         self.earned += observation["z"]
    ...         return self.earned / self.earned.max()
    >>> policy = AgentPolicy(make=lambda problem, seed: Favourite(problem.n_arms), actions="top")
    >>> sp.simulate(policy, sp.SyntheticSEM(horizon=50, changes=()), 3, replications=2).regret.shape
    (2, 50)
    """

    make: Callable[[Problem, int], Any]
    act: Callable[[Any, Observation], Any] = by_act
    on_feedback: Callable[[Any, Arrival], None] = not_told
    actions: str = "set"

    def __post_init__(self) -> None:
        check_actions(self.actions)

    def new_agent(self, problem: Problem, seed: int) -> Any:
        return self.make(problem, seed)

    def decide(self, seat: Seat, played: int, context: Any, rng: Rng) -> BoolArray:
        shown = observation_of(seat.problem, played, seat.since(played), context)
        return decision_of(self.act(seat.agent, shown), self.actions, seat.problem, rng)

    def tell(self, seat: Seat, arrival: Arrival) -> None:
        self.on_feedback(seat.agent, arrival)
