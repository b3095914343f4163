"""SEM-UCB (Nourani-Koliji, Ghoorchian and Maghsudi 2022): the stationary ancestor of NDC-SEM."""

from dataclasses import dataclass

from spillover.policies.averages import upper_index
from spillover.policies.graph_policy import MeansOnGraph, MeansState
from spillover.types import Array


@dataclass(frozen=True, kw_only=True)
class SEMUCB(MeansOnGraph):
    """Undiscounted means of z plus sqrt((s+1) ln t / M_i), weighted by a learned graph.

    Initialisation and graph learning are those of NDC-SEM, whose index tends to this one at delay 0 and exploration
    1/4 as the discount tends to 1.

    unit, graph: as in `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(SEMUCB(), sp.SyntheticSEM(horizon=300, changes=()), 10, replications=2)
    >>> bool((run.final_regret < sp.simulate(sp.Uniform(), run.environment, 10, replications=2).final_regret).all())
    True
    """

    def index(self, state: MeansState) -> Array:
        unit = self.reward_unit(state)
        index = upper_index(state.averages, state.rounds, state.clock, width=state.budget + 1.0, unit=unit)
        return index * unit[..., None]
