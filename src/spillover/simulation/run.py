"""The result of a simulation."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover import validate
from spillover.contracts import as_policy
from spillover.contracts.hyperparameters import grid_settings
from spillover.formatting import Shown, view_of
from spillover.metrics import Interval, RegretCurve, mean_interval
from spillover.registry import needed_for
from spillover.types import Array, BoolArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_POINTS = 500  # of a line in a figure


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Run(Shown):
    """The result of a simulation; the first axes are the policy's grid (none for a single setting) and replications.

    >>> import spillover as sp
    >>> sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=200, changes=()), 5, replications=3)
    Run(NDCSEM, 3 replications x 200 rounds, delay 5, final regret 66.5 [−56.3, 189.3])
    """

    view = "spillover.views:RunView"

    policy: Any
    environment: Any
    delay: Any
    seed: int
    first: int
    changes: tuple[int, ...]
    regret: Array  # (*grid, replications, rounds): cumulative pseudo-regret
    payoff: Array  # (*grid, replications, rounds): realised payoff of each round
    optimality_ratio: Array  # (*grid, replications, periods)
    graph_error: Array  # (*grid, replications, recorded rounds): MSE of the adjacency; NaN without a graph
    recorded: IntArray  # the rounds at whose end the graph was measured
    adjacency: Any  # (*grid, replications, n, n): the estimate after the last round; sparse in a `SparseWorld`, or None
    decisions: BoolArray | None = None  # (*grid, replications, rounds, n): what was played; None unless asked for

    @property
    def final_regret(self) -> Array:
        """Regret after the last round, (*grid, replications)."""
        return self.regret[..., -1]

    @property
    def average_payoff(self) -> Array:
        """Mean realised payoff up to each round, (*grid, replications, rounds)."""
        return np.cumsum(self.payoff, axis=-1) / np.arange(1, self.payoff.shape[-1] + 1)

    def blind_regret(self, rounds: int) -> Array:
        """Regret of the first `rounds` rounds; under a delay D the first D + 1 are played without any feedback."""
        validate.whole("rounds", rounds, 1, self.regret.shape[-1])
        return self.regret[..., rounds - 1]

    def interval(self, measure: str = "regret") -> Interval:
        """Mean over replications with its 95% confidence interval, of a field of this run by name."""
        measures = ("regret", "payoff", "final_regret", "average_payoff", "optimality_ratio", "graph_error")
        validate.require(measure in measures, "measure", measure, f"one of {', '.join(measures)}")
        values = getattr(self, measure)
        return mean_interval(values, axis=-1 if measure == "final_regret" else -2)

    def regret_curves(self) -> list[RegretCurve]:
        """The regret over time of each setting of the grid, at up to `MOST_POINTS` rounds, for `report.regret_figure`.

        >>> import spillover as sp
        >>> run = sp.simulate(sp.NDCSEM(discount=[0.9, 0.99]), sp.SyntheticSEM(horizon=50, changes=()), replications=2)
        >>> [(curve.label, curve.regret.shape) for curve in run.regret_curves()]
        [('NDCSEM(discount=0.9)', (2, 50)), ('NDCSEM(discount=0.99)', (2, 50))]
        """
        name, horizon = type(self.policy).__name__, self.regret.shape[-1]
        step = -(-horizon // MOST_POINTS)
        rounds = np.arange(horizon, 0, -step)[::-1]
        cells = self.regret.reshape(-1, *self.regret.shape[-2:])[..., rounds - 1]
        settings = grid_settings(as_policy(self.policy))
        names = [f"{name}({setting})" for setting in settings] if settings else [name]
        return [RegretCurve(each, each, rounds, cell, self.changes) for each, cell in zip(names, cells, strict=True)]

    def plot(self, *, title: str = "") -> "Figure":
        """Cumulative regret over time with its 95% band; one line for each setting of a grid.

        `spillover.report.regret_figure` draws several runs on one pair of axes.

        >>> import spillover as sp
        >>> run = sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=50, changes=()), replications=2)
        >>> run.plot(title="NDC-SEM").axes[0].get_xlabel()
        'round'
        """
        drawn: Figure = view_of(self.view, self).plot(title=title)
        return drawn

    def to_frame(self, every: int = 1) -> "pd.DataFrame":
        """One row for each replication and round (of those divisible by `every`, and the last one).

        Columns: the grid's coordinates if there is a grid, replication, round, period, regret, payoff, graph_error
        (NaN where it was not recorded).

        >>> import spillover as sp
        >>> run = sp.simulate(sp.Uniform(), sp.SyntheticSEM(horizon=100, changes=()), 5, replications=2)
        >>> run.to_frame(every=50)[["replication", "round", "period"]]
           replication  round  period
        0            0     50       1
        1            0    100       1
        2            1     50       1
        3            1    100       1
        """
        with needed_for("a data frame", "research"):
            import pandas as pd

        validate.whole("every", every, 1)
        horizon = self.regret.shape[-1]
        kept = np.array([t for t in range(1, horizon + 1) if t % every == 0 or t == horizon])
        error = np.full(self.regret.shape, np.nan)
        error[..., self.recorded - 1] = self.graph_error
        names = [f"grid_{k}" for k in range(self.regret.ndim - 2)]
        index = np.indices((*self.regret.shape[:-1], len(kept))).reshape(self.regret.ndim, -1)
        columns: dict[str, Any] = dict(zip(names, index[:-2], strict=True))
        columns["replication"] = self.first + index[-2]
        columns["round"] = kept[index[-1]]
        columns["period"] = np.searchsorted(self.changes, kept, side="right")[index[-1]] + 1
        for name, values in (("regret", self.regret), ("payoff", self.payoff), ("graph_error", error)):
            columns[name] = values[..., kept - 1].ravel()
        return pd.DataFrame(columns)
