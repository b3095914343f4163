"""Policies with context, without z and with missing outcomes: sound ones pass, broken ones are caught."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import spillover as sp
from spillover.constraints.search import top_arms
from spillover.testing import check_policy


class SeasonalState(NamedTuple):
    rounds: Any
    sums: Any
    counts: Any
    budget: Any
    context: Any
    top: Any


@dataclass(frozen=True, kw_only=True)
class Seasonal(sp.Policy):
    """Prefers arms by their mean outcome, and by their position where the first context column is positive."""

    traits = sp.Traits(
        needs_rewards=False, needs_outcomes=False, uses_context=True, accepts_missing=True, fits_baseline=True
    )

    def init(self, problem, rng, batch=()):
        line = (*batch, problem.n_arms)
        context = np.zeros((*batch, problem.context))
        top = np.broadcast_to(problem.reward_range, (*batch, 2))[..., 1].copy()
        budget = np.full(batch, problem.budget)
        return SeasonalState(np.zeros(batch, np.int64), np.zeros(line), np.zeros(line), budget, context, top)

    def observe(self, state, context):
        return state._replace(context=np.array(context))

    def select(self, state, rng):
        late = np.arange(state.sums.shape[-1]) * np.maximum(state.context, 0.0).sum(axis=-1)[..., None]
        hoped = (state.sums + state.top[..., None]) / (state.counts + 1.0)
        return sp.Choice(top_arms(hoped + state.top[..., None] * late, state.budget, rng))

    def played(self, state, x):
        return state._replace(rounds=state.rounds + 1)

    def update(self, state, feedback, rng):
        known = feedback.arrived[..., None] & ~np.isnan(feedback.y)
        fresh = known if feedback.fresh is None else feedback.fresh
        sums = state.sums + np.where(fresh, feedback.y, 0.0)
        return state._replace(sums=sums, counts=state.counts + fresh)


def test_a_sound_policy_passes():
    check_policy(Seasonal())


@dataclass(frozen=True, kw_only=True)
class ForgetsToLook(Seasonal):
    """Lets NaN into its state."""

    def update(self, state, feedback, rng):
        arrived = feedback.arrived[..., None]
        return state._replace(sums=state.sums + np.where(arrived, feedback.y, 0.0), counts=state.counts + arrived)


@dataclass(frozen=True, kw_only=True)
class NeedsZ(Seasonal):
    """Says that it can do without z, and uses it."""

    def update(self, state, feedback, rng):
        state = super().update(state, feedback, rng)
        return state._replace(sums=state.sums + np.where(feedback.arrived[..., None], feedback.z, 0.0))


@dataclass(frozen=True, kw_only=True)
class Overwrites(Seasonal):
    """Rewrites the state in observe."""

    def observe(self, state, context):
        state.context[...] = context
        return state


@dataclass(frozen=True, kw_only=True)
class LooksAtOthers(Seasonal):
    """Subtracts the mean context of the batch."""

    def observe(self, state, context):
        return state._replace(context=np.asarray(context - (context.mean(axis=0) if context.ndim > 1 else 0.0)))


@dataclass(frozen=True, kw_only=True)
class Shrinks(Seasonal):
    """Keeps one context column only."""

    def observe(self, state, context):
        return state._replace(context=np.array(context[..., :1]))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (ForgetsToLook(), r"there is NaN in sums.*\[check_parts\]"),
        (NeedsZ(), r"there is NaN in sums.*\[check_(parts|feasible)\]"),
        (Overwrites(), r"observe changed the state in round 1: context.*\[check_pure\]"),
        (LooksAtOthers(), r"row .* of a batch .* differs from the same replication alone.*\[check_rows\]"),
        (Shrinks(), r"the state has state.context: .*\[check_state\]"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, sp.Policy) else "",
)
def test_a_broken_one_is_caught(policy, message):
    with pytest.raises(AssertionError, match=message):
        check_policy(policy, edge_shapes=False)
