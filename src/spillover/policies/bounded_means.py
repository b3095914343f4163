"""The base of NDC-SEM and SEM-UCB: means with an exploration bonus on a graph, written for one learner."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover.core import Turn
from spillover.kernels.averages import add_pulls, bounds_of_means
from spillover.policies.averages import empty_pulls, in_flight
from spillover.policies.graph_policy import MeansOnGraph, MeansState
from spillover.rng import Rng
from spillover.types import Batch, BoolArray, Explanation, Problem


class Bonus(NamedTuple):
    """The bonus unit sqrt(width (s + 1) log(m) / M)."""

    width: Any  # a number, or an array that broadcasts over the batch
    pending: bool = False  # M counts pulls in flight too
    in_range: bool = True  # an arm is forgotten if its bonus is a million times as wide as the range; or as 1


@dataclass(frozen=True, kw_only=True)
class BoundedMeans(MeansOnGraph):
    """Ranks arms by the weights of a learned graph times an upper bound of their means; a subclass has a `bonus`."""

    @property
    @abstractmethod
    def bonus(self) -> Bonus:
        """The exploration bonus."""

    # --- what functions of one learner see of it --------------------------------------------------------------------

    @property
    def bonus_width(self) -> Any:
        return self.bonus.width

    @property
    def bonus_unit(self) -> float:
        """The unit, or 0 for the width of the reward range."""
        return 0.0 if self.unit is None else float(self.unit)

    @cached_property
    def rules(self) -> BoolArray:
        """The settings of `bounds_of_means`, in the order of `kernels/averages.py`."""
        return np.array([self.bonus.pending, self.bonus.in_range])

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        state = super().init(problem, rng, batch)
        return state._replace(pulls=empty_pulls(problem.n_arms if self.bonus.pending else 0, batch))

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """The mean of each arm plus the bonus; +inf for an arm never observed (never played, if pulls count)."""
        known = s.averages
        bounds_of_means(
            known.sums, known.counts, known.stamps, s.pulls.counts, s.pulls.stamps, s.rounds, s.clock, s.budget,
            s.reward_range, self.log_discount, self.bonus_width, self.bonus_unit, self.rules, self.growths, found,
        )  # fmt: skip

    def note_play(self, s: Any, x: Any) -> None:
        s.clock = self.discount * s.clock + 1.0
        if s.pulls.counts.shape[0] > 0:
            add_pulls(s.pulls.counts, s.pulls.stamps, x, s.rounds, self.log_discount, self.powers)

    def explain(self, state: MeansState, rng: Rng) -> Explanation:
        found = super().explain(state, rng)
        if not self.bonus.pending:
            return found
        return replace(found, pending=in_flight(state.averages, state.pulls, state.rounds, self.discount))
