"""A policy that records what it is given, and decides by fixed scores."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import spillover as sp
from spillover.policies.scale import graph_free_explanation


class Seen(NamedTuple):
    """The state: rounds played, outcomes seen, the context of the coming round."""

    rounds: Any
    outcomes: Any
    context: Any
    budget: Any


@dataclass(frozen=True, kw_only=True)
class Recorder(sp.Policy):
    """Plays the first arms; every call is appended to `log`."""

    missing: bool = True
    rewards: bool = False
    log: Any = field(default_factory=list, compare=False, repr=False)

    @property
    def traits(self) -> sp.Traits:
        return sp.Traits(
            needs_rewards=self.rewards,
            needs_outcomes=False,
            uses_context=True,
            accepts_missing=self.missing,
            accepts_doses=True,
            order_free=False,
            explains=True,
        )

    def init(self, problem, rng, batch=()):
        zero = np.zeros(batch, np.int64)
        budget = np.full(batch, problem.budget, np.int64)
        return Seen(zero, np.zeros((*batch, problem.n_arms)), np.zeros((*batch, problem.context)), budget)

    def observe(self, state, context):
        self.log.append(("observe", np.array(context)))
        return state._replace(context=np.array(context))

    def select(self, state, rng):
        n = state.outcomes.shape[-1]
        return sp.Choice(np.broadcast_to(np.arange(n) < state.budget[..., None], state.outcomes.shape).copy())

    def played(self, state, x):
        self.log.append(("played", np.array(x)))
        return state._replace(rounds=state.rounds + 1)

    def update(self, state, feedback, rng):
        self.log.append(("update", feedback))
        known = feedback.arrived[..., None] & ~np.isnan(feedback.y)
        fresh = known if feedback.fresh is None else feedback.fresh
        return state._replace(outcomes=state.outcomes + np.where(fresh, feedback.y, 0.0))

    def explain(self, state, rng):
        n = state.outcomes.shape[-1]
        index = np.broadcast_to(np.arange(n, 0, -1.0), state.outcomes.shape)
        return graph_free_explanation(
            mean=state.outcomes, count=state.outcomes, clock=state.rounds.astype(float), index=index
        )

    def calls(self, name):
        return [value for kind, value in self.log if kind == name]
