"""SwitchingSEM for many arms: a round takes time for the arms that are active in it, and little for the others."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts import Policy, ScoredWorld
from spillover.core import Turn, choose_top, inner
from spillover.kernels.averages import take_rewards, weigh
from spillover.kernels.drifting import drifting_forecast
from spillover.kernels.switching_many import learn_arms_of_many
from spillover.kernels.switching_many_scores import index_crowd
from spillover.policies.graph_policy import GraphPolicy
from spillover.policies.switching import SwitchingSEM, fade_of, rescale
from spillover.policies.switching_model import (
    HAZARDS,
    HORIZON,
    HORIZON_OF_DELAY,
    IDLE_HAZARD,
    OTHER_WORLD,
    SHARE_PRIOR,
)
from spillover.policies.switching_state import (
    DRIFT_PRIOR,
    DRIFT_SCALE,
    DRIFT_VARIANCE,
    SHARES,
    SwitchingState,
    empty_crowd,
    observations,
)
from spillover.rng import Rng
from spillover.types import Array, Batch, Problem

TURNS = 8


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

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> Policy:
        suited = super().for_problem(problem)
        return suited if problem.observes != "both" or problem.context > 0 else GraphPolicy.for_problem(self, problem)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SwitchingState:
        return super().init(problem, rng, batch)._replace(crowd=empty_crowd(problem.n_arms, batch))

    # --- one learner ------------------------------------------------------------------------------------------------

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        weights, mean, index = turn.lines[0], turn.lines[1], turn.lines[2]
        value_arms_of_many(s, turn, weights, mean[:0], index)
        weigh(weights, index)
        choose_top(index, s.budget, turn, x)

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        value_arms_of_many(s, turn, found[0], found[1], found[2])
        drifting_forecast(
            s.drift.track, s.rounds + 1 - s.drift.latest[0], DRIFT_SCALE, DRIFT_VARIANCE, found[3], found[4]
        )  # fmt: skip

    def learn_arms(self, s: Any, x: Any, z: Any, weight: Any, played_at: Any, turn: Turn, expected: Any) -> None:
        belief, drift, crowd, reward = s.belief, s.drift, s.crowd, turn.lines[0]
        remains = fade_of(s) ** (s.rounds - played_at)
        take_rewards(s.in_flight, s.rewards_seen, x, z, s.reward_range, remains, reward)
        learn_arms_of_many(
            belief.change_round, belief.mass, belief.untried, belief.counts, belief.ratio, belief.idle_prior,
            belief.changed, belief.mean, belief.square, belief.seen, belief.latest, belief.detected, belief.spread,
            belief.changes, belief.redrawn, crowd.checked, crowd.shared, crowd.arrivals, drift.track, drift.probability,
            drift.latest, x, reward, weight, played_at, SHARES, SHARE_PRIOR, HAZARDS, IDLE_HAZARD, DRIFT_SCALE,
            DRIFT_VARIANCE, DRIFT_PRIOR, OTHER_WORLD, self.turns, expected,
        )  # fmt: skip

    def expect(self, s: Any, x: Any, found: Any) -> None:
        for i in range(x.shape[0]):
            found[i] = s.belief.mean[i] if s.belief.seen[i] > 0 else s.crowd.shared[0]
        rescale(s.reward_range, x, found, found)

    # --- what it says -----------------------------------------------------------------------------------------------

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


@inner
def value_arms_of_many(s: Any, turn: Turn, weights: Any, mean: Any, index: Any) -> None:
    """Weights, expected rewards, and expected rewards plus the value of information."""
    belief, drift = s.belief, s.drift
    index_crowd(
        belief.mass, belief.untried, belief.counts, belief.changed, belief.changes, belief.redrawn, belief.mean,
        belief.seen, belief.latest[0], s.crowd.shared, drift.track, drift.probability[0], drift.latest[0], DRIFT_SCALE,
        DRIFT_VARIANCE, s.graph.weights, s.prior, s.rewards_seen, s.last_pull, s.in_flight, s.rounds, s.budget,
        s.reward_range, HAZARDS, SHARES, SHARE_PRIOR, IDLE_HAZARD, HORIZON + HORIZON_OF_DELAY * s.typical_delay,
        turn.room.places, turn.lines[3], weights, mean, index,
    )  # fmt: skip
