"""SEM-UCB (Nourani-Koliji, Ghoorchian and Maghsudi 2022): the stationary ancestor of NDC-SEM."""

from dataclasses import dataclass

from spillover.policies.bounded_means import Bonus, BoundedMeans


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
