"""SEM-UCB (Nourani-Koliji, Ghoorchian and Maghsudi 2022): the stationary ancestor of NDC-SEM."""

from dataclasses import dataclass
from typing import Any

from spillover import validate
from spillover.graph import ROW_BOUND
from spillover.policies.averages import upper_index
from spillover.policies.sem import (
    LearnsGraph,
    SEMState,
    catch_up,
    choose,
    decide,
    explanation,
    learns_in_any_order,
    pass_round,
    start,
    take_in,
)
from spillover.policies.signals import sem_signals
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, Problem


@dataclass(frozen=True, kw_only=True)
class SEMUCB(LearnsGraph):
    """Plain means of z plus sqrt((s+1) ln t / M_i), weighted by a learned graph; feedback is taken as it arrives.

    The same initialisation and graph learning as NDC-SEM, whose index tends to this one at delay 0, exploration 1/4
    and a discount that tends to 1.

    Parameters of the graph as those of `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(SEMUCB(), sp.SyntheticSEM(horizon=300, changes=()), 10, replications=2)
    >>> bool((run.final_regret < sp.simulate(sp.Uniform(), run.environment, 10, replications=2).final_regret).all())
    True
    """

    sparsity: Any = 1e-3
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    graph: Any = "sparse"
    signed: Any = False

    grids = ("sparsity",)

    @property
    def order_free(self) -> bool:
        return learns_in_any_order(self.learner)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SEMState:
        validate.grid(self, batch)
        return start(self.learner, problem, rng, batch)

    def index(self, state: SEMState) -> Array:
        return upper_index(state.averages, state.rounds, state.clock, width=state.budget + 1.0)

    def select(self, state: SEMState, rng: Rng) -> Choice:
        return decide(state, self.index(state), self.learner, rng)

    def played(self, state: SEMState, x: BoolArray) -> SEMState:
        return pass_round(state, x, 1.0)

    def update(self, state: SEMState, feedback: Feedback, rng: Rng) -> SEMState:
        return take_in(state, feedback, self.learner, 1.0)

    def catch_up(self, state: SEMState, rounds: Feedback) -> SEMState:
        """Many rounds at once; see `spillover.policies.sem.catch_up`."""
        return catch_up(state, rounds, self.learner, 1.0)

    def explain(self, state: SEMState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        index = self.index(state)
        ties = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        return explanation(state, index, 1.0, choose(state, index, ties))

    def signals(self, state: SEMState) -> dict[str, Any]:
        """What the graph was learned from; see `spillover.policies.signals`."""
        return sem_signals(state)
