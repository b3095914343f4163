"""NDC-SEM (Algorithm 1): discounted upper confidence bounds on a causal graph learned from delayed feedback."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spillover import validate
from spillover.graph import SparseGraph
from spillover.policies.bounded_means import Bonus, BoundedMeans

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
