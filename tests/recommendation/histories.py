"""Histories, and a policy that says what it is made to say."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import spillover as sp
from spillover.constraints.search import top_arms
from spillover.history import History
from spillover.recommendation import decide
from tests.assessment.worlds import days, table
from tests.recommendation.answers import explanation


class Nothing(NamedTuple):
    budget: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class Says(sp.Policy):
    """A policy with a fixed explanation: it learns nothing, and chooses the highest scores."""

    said: Any

    traits = sp.Traits(
        needs_rewards=False, needs_outcomes=False, accepts_missing=True, accepts_doses=True, explains=True
    )

    def init(self, problem, rng, batch=()):
        return Nothing(np.full(batch, problem.budget, np.int64))

    def select(self, state, rng):
        return sp.Choice(top_arms(self.said.score, state.budget, rng))

    def played(self, state, x):
        return state

    def update(self, state, feedback, rng):
        return state

    def explain(self, state, rng):
        return replace(self.said, chosen=None)


EFFECTS = np.array([[1.0, 0.0, 0.3], [0.5, 0.6, 0.0], [0.0, 0.0, 0.4]])


def history(seed=0, *, effects=EFFECTS, rounds=120, level=0.0, **more):
    """A history of y only; names a, b, c."""
    x, y, _ = table(seed, rounds=rounds, arms=len(effects), effects=effects, baseline=level)
    given = {
        "arms": tuple("abcdefgh"[: len(effects)]),
        "rounds": days(rounds),
        "x": x,
        "z": np.zeros_like(y),
        "y": y,
        "arrived": np.ones(rounds, np.bool_),
        "has_overall": True,
        "following": "2020-05-01",
        "notes": (),
        "observes": "overall",
    }
    return History(**given | more)


def answer(past=None, *, effects=EFFECTS, budget=1, explore=True, constraints=(), **said):
    past = history(effects=effects) if past is None else past
    policy = Says(said=explanation(effects, **said))
    return decide(past, budget=budget, policy=policy, name="says", explore=explore, constraints=constraints)
