"""NDC-SEM (Algorithm 1), SEM-UCB, and what they share: means with an exploration bonus, weighted by a graph."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover import validate
from spillover.core import Turn
from spillover.graph import SparseGraph
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


@dataclass(frozen=True, kw_only=True)
class SEMUCB(BoundedMeans):
    """Undiscounted means of z plus sqrt((s+1) ln t / M_i), weighted by a learned graph.

    Initialisation and graph learning are those of NDC-SEM, whose index tends to this one at delay 0 and exploration
    1/4 as the discount tends to 1.

    unit, graph: as in `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(SEMUCB(), sp.SyntheticSEM(horizon=300, changes=()), 10, replications=2)
    >>> bool((run.final_regret < sp.simulate(sp.Uniform(), run.environment, 10, replications=2).final_regret).all())
    True
    """

    @property
    def bonus(self) -> Bonus:
        return Bonus(1.0, in_range=False)


PRINTED = {50: 1e-10, 200: 1e-6, 400: 1e-18}  # the paper's exploration for each delay


@dataclass(frozen=True, kw_only=True)
class NDCSEM(BoundedMeans):
    """The policy of the paper. Feedback is discounted from the round of its action, not from its arrival.

    discount: gamma, in (0, 1): how fast the past fades. The bonus of an arm not played for k rounds grows as
        gamma^(-k/2), so discount and exploration together set how often idle arms are tried again.
    exploration: xi >= 0: size of the exploration bonus 2 sqrt(xi (s+1) log(m) / M), in units of `unit`.
    pending: count pulls in flight too: M becomes the discounted number of all pulls, arrived or in flight, so that an
        arm is not tried over and over until its first outcome arrives. The mean of an arm in flight that was never
        observed is the top of the reward range. Pulls whose feedback never arrives fade like all others, so they hold
        an arm back only for a while.
    unit: the reward that counts as 1, see `MeansOnGraph`: by default the width of the problem's reward_range.
    graph: how the graph is learned: a name ("sparse", "self-tuned", "payoff", "instrument", "adaptive", "none") or a
        graph learner with its parameters, such as SparseGraph(sparsity=0.01, signed=True); see docs/graph.md.

    discount, exploration and the graph's sparsity may be arrays that broadcast over the batch: a grid in one run.

    >>> import spillover as sp
    >>> policy = NDCSEM(discount=0.985, exploration=1e-10)
    >>> state = policy.init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> policy.select(state, sp.Rng(0)).x.astype(int)  # the first column of the initialisation matrix
    array([1, 0, 0, 0, 0])
    """

    discount: Any = 0.985
    exploration: Any = 1e-10
    pending: bool = False

    own_grids: ClassVar[tuple[str, ...]] = ("discount", "exploration")

    def __post_init__(self) -> None:
        self.check_discount()
        validate.require(isinstance(self.pending, bool), "pending", self.pending, "True or False")
        validate.number("exploration", self.exploration, "a finite number >= 0", low=0, high=np.inf)
        super().__post_init__()

    def check_discount(self) -> None:
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)

    @classmethod
    def printed(cls, delay: int) -> "NDCSEM":
        """The parameters that the paper prints for a delay of 50, 200 or 400 rounds (its Table I).

        >>> NDCSEM.printed(200).exploration
        1e-06
        """
        accepted = f"one of {', '.join(map(str, PRINTED))}, the delays that the paper has parameters for"
        validate.require(delay in PRINTED, "delay", delay, accepted)
        return cls(discount=0.985, exploration=PRINTED[delay], unit=1.0, graph=SparseGraph(sparsity=1e-3))

    @property
    def bonus(self) -> Bonus:
        """E (eq. UCB) is the discounted mean plus 2 sqrt(xi (s + 1) log(m) / M)."""
        return Bonus(4.0 * self.exploration, self.pending)


@dataclass(frozen=True, kw_only=True)
class AblatedNDCSEM(NDCSEM):
    """NDC-SEM with some parts switched off; the defaults are NDC-SEM itself. `graph="none"` removes the graph.

    discount: gamma in (0, 1], 1 for no discount.
    delay_aware: discount feedback from the round of its action; otherwise from its arrival, as if it were new.
    designed_start: begin with the initialisation matrix H; otherwise with random sets.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=200, changes=())
    >>> whole = sp.simulate(AblatedNDCSEM(), world, 20, replications=2)
    >>> bool((whole.regret == sp.simulate(sp.NDCSEM(), world, 20, replications=2).regret).all())
    True
    """

    delay_aware: bool = True
    designed_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("delay_aware", self.delay_aware), ("designed_start", self.designed_start)):
            validate.require(isinstance(value, bool | np.bool_), name, value, "True or False")
        by_action = "False if delay_aware=False: pulls in flight are discounted from the round of their action"
        validate.require(self.delay_aware or not self.pending, "pending", self.pending, by_action)

    def check_discount(self) -> None:
        number = "a number above 0, at most 1"
        validate.number("discount", self.discount, number, low=np.finfo(float).tiny, high=1)

    @property
    def assumed_delay(self) -> int | None:
        return None if self.delay_aware else 0

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        state = super().init(problem, rng, batch)
        if self.designed_start:
            return state
        n = problem.n_arms
        draws = np.stack([np.broadcast_to(rng.permutation(n), (*batch, n)) for _ in range(n)], axis=-2)
        return state._replace(plan=draws < problem.budget)
