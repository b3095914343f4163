"""SwitchingSEM for many arms: a round takes time for the arms that are active in it, and little for the others."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Policy
from spillover.policies.graph_policy import GraphPolicy
from spillover.policies.switching import SwitchingSEM
from spillover.policies.switching_model import CHANGE_PRIOR, OTHER_WORLD
from spillover.policies.switching_outcomes import decision_arguments
from spillover.policies.switching_state import (
    DRIFT_PRIOR,
    DRIFT_SCALE,
    DRIFT_VARIANCE,
    SwitchingState,
    empty_crowd,
    observations,
)
from spillover.rng import Rng
from spillover.scratch import SCRATCH
from spillover.types import Array, Batch, BoolArray, Choice, IntArray, Problem

TURNS = 8
DRIFT_SETTINGS = np.array([DRIFT_SCALE, DRIFT_VARIANCE, DRIFT_PRIOR, OTHER_WORLD])


@dataclass(frozen=True, kw_only=True)
class SwitchingOfMany(SwitchingSEM):
    """What `SwitchingSEM` becomes with more than 500 arms.

    Arms without rewards share one set of hypotheses, and the bonus of weights that are about equal. An arm with rewards
    is brought up to date when it reports, and otherwise in turn: in one of `turns` outcomes, or at once if an outcome
    moves a fifth of the probability between the hypotheses. With turns=1 all decisions are those of `SwitchingSEM`.

    >>> import spillover as sp
    >>> SwitchingSEM().for_problem(sp.Problem(n_arms=1000, budget=10)).turns
    8
    """

    turns: int = TURNS

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("turns", self.turns, 1)

    def for_problem(self, problem: Problem) -> Policy:
        suited = super().for_problem(problem)
        return suited if problem.observes != "both" or problem.context > 0 else GraphPolicy.for_problem(self, problem)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SwitchingState:
        return super().init(problem, rng, batch)._replace(crowd=empty_crowd(problem.n_arms, batch))

    def for_kernels_of_index(self, state: SwitchingState) -> tuple[Any, ...]:
        """What the kernels of an index take, with memory that they work in."""
        belief, drift = state.belief, state.drift
        return (
            belief.mass,
            belief.untried,
            belief.counts,
            belief.changed,
            belief.changes,
            belief.redrawn,
            belief.mean,
            belief.seen,
            belief.latest[..., 0],
            state.crowd.shared,
            drift.track,
            drift.probability[..., 0],
            drift.latest[..., 0],
            DRIFT_SETTINGS,
            *decision_arguments(state),
            line_for(state, "places", np.int64),
            line_for(state, "scores"),
        )

    def means_and_index(self, state: SwitchingState) -> tuple[Array, Array, Array]:
        weights, mean, index = kernels.crowd_index(*self.for_kernels_of_index(state))
        return weights, mean, index

    def select(self, state: SwitchingState, rng: Rng) -> Choice:
        room = line_for(state, "weights"), line_for(state, "index")
        x = np.asarray(kernels.crowd_choice(*self.for_kernels_of_index(state), *room, *rng.address()))
        return Choice(x, memo=self.graph.remember(state.graph))

    def learn_means(
        self, state: SwitchingState, x: BoolArray, reward: Array, weight: Any, played_at: IntArray, arrived: BoolArray
    ) -> Array:
        known = *state.belief, *state.crowd, *state.drift
        outcome = x, reward, weight, played_at
        kernels.crowd_arrival(*known, *outcome, *CHANGE_PRIOR, DRIFT_SETTINGS, self.turns, arrived)
        return reward  # the kernel has put what was expected in its place

    def believed(self, state: SwitchingState) -> tuple[Array, Array]:
        seen, shared = state.belief.seen > 0, state.crowd.shared
        mean, square = state.belief.mean, state.belief.square
        return np.where(seen, mean, shared[..., :1]), np.where(seen, square, shared[..., 1:])

    def observations(self, state: SwitchingState) -> Array:
        """As in `SwitchingSEM`; of one learner for the arms with rewards only, whose counts may be few."""
        if state.rounds.ndim > 0:
            return super().observations(state)
        seen, found = np.flatnonzero(state.belief.seen), np.zeros(state.belief.seen.shape)
        of_arms = {name: state.belief._asdict()[name][seen] for name in ("counts", "changed", "seen")}
        found[seen] = observations(state.belief._replace(**of_arms))
        return found


def line_for(state: SwitchingState, name: str, dtype: Any = float) -> Array:
    """Memory for a number of each arm, which no call leaves anything in for the next one."""
    *batch, n = state.in_flight.shape
    return SCRATCH.array(name, (n,), dtype, tuple(batch))
