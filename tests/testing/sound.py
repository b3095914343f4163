"""Sound policies that the contract must accept, and that broken ones are made from."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import spillover as sp
from spillover.constraints.search import top_arms
from spillover.contracts import Policy
from spillover.types import Explanation

SMALL = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=30, changes=(12,), law="beta")


class GreedyState(NamedTuple):
    rounds: Any
    sums: Any
    counts: Any
    budget: Any
    ceiling: Any


class Greedy(Policy):
    """A sound policy without a graph: the highest means, a little optimistic about arms that were played rarely."""

    grids = ("optimism",)
    optimism: Any

    def init(self, problem, rng, batch=()):
        line = (*batch, problem.n_arms)
        ceiling = np.broadcast_to(problem.overall_range, (*batch, 2))[..., 1].copy()
        budget = np.full(batch, problem.budget)
        return GreedyState(np.zeros(batch, np.int64), np.zeros(line), np.zeros(line), budget, ceiling)

    def score(self, state):
        return (state.sums + (np.asarray(self.optimism) * state.ceiling)[..., None]) / (state.counts + 1.0)

    def select(self, state, rng):
        return sp.Choice(top_arms(self.score(state), state.budget, rng))

    def played(self, state, x):
        return state._replace(rounds=state.rounds + 1)

    def update(self, state, feedback, rng):
        arrived = feedback.arrived[..., None]
        sums = state.sums + np.where(arrived, feedback.z, 0.0)
        return state._replace(sums=sums, counts=state.counts + (arrived & feedback.x))


@dataclass(frozen=True, kw_only=True)
class Sound(Greedy):
    optimism: Any = 0.5


@dataclass(frozen=True, kw_only=True)
class SoundAndOpen(Sound):
    """The same with an explanation."""

    traits = sp.Traits(explains=True)

    def explain(self, state, rng):
        n = state.sums.shape[-1]
        score = self.score(state)
        return Explanation(
            mean=state.sums / np.maximum(state.counts, 1.0),
            count=state.counts.copy(),
            clock=np.asarray(state.rounds, float),
            index=score,
            adjacency=np.zeros((*state.sums.shape, n)),
            gain=np.ones_like(score),
            weights=np.ones_like(score),
            score=score,
        )


@dataclass(frozen=True, kw_only=True)
class SoundWithMemo(Sound):
    """The same, reminded of how sure it was."""

    def select(self, state, rng):
        return super().select(state, rng)._replace(memo=self.score(state))

    def update(self, state, feedback, rng):
        known = np.where(feedback.arrived[..., None], feedback.memo, 0.0)
        return super().update(state, feedback, rng)._replace(ceiling=state.ceiling + known.max(axis=-1))


@dataclass(frozen=True, kw_only=True)
class FourFunctionsAlone:
    """The four functions, without the base class."""

    optimism: float = 0.5

    init, score, select = Greedy.init, Greedy.score, Greedy.select
    played, update = Greedy.played, Greedy.update


def broken(base=Sound, **methods):
    """A policy or another part with some methods or fields replaced."""
    for name, method in methods.items():
        if callable(method):
            method.__name__ = name
    return dataclass(frozen=True, kw_only=True)(type("Broken", (base,), methods))


def then(name, change, base=Sound):
    """A method that does something to what the sound one returns; `change` gets the policy, that and the arguments."""

    def method(self, *given, **named):
        return change(self, getattr(base, name)(self, *given, **named), *given)

    return method


def first(name, change, base=Sound):
    """A method that does something else before what the sound one does."""

    def method(self, *given, **named):
        change(self, *given)
        return getattr(base, name)(self, *given, **named)

    return method


def demand_caught(make, check, message, checks, contract, *arguments):
    """A broken part is caught by the check that is meant for it, and by the contract as a whole."""
    if "raised" not in message:
        with pytest.raises(AssertionError, match=message):
            {function.__name__: function for function in checks}[check](make(), *arguments)
    with pytest.raises(AssertionError, match=r"\[check_\w+\]$") as caught:
        contract(make())
    if "raised" in message:
        assert caught.match(message)
