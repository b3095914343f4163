"""A run in a notebook: what was simulated, and its measures."""

from typing import TYPE_CHECKING

import numpy as np

from spillover import validate
from spillover.assessment.finding import count_of
from spillover.contracts import as_policy
from spillover.extras import needed_for
from spillover.hyperparameters import grid_settings
from spillover.metrics import Interval, mean_interval
from spillover.number_format import column_texts, estimate_text
from spillover.policy_names import described
from spillover.simulation import Run
from spillover.views.blocks import MOST_ROWS, card, facts, line, rows_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class RunView:
    """A run, or the runs of a grid."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.settings = grid_settings(as_policy(run.policy))
        self.final = run.final_regret.reshape(-1, run.regret.shape[-2])  # (settings, replications)

    def text(self) -> str:
        name, delay = type(self.run.policy).__name__, f"delay {delay_text(self.run)}"
        if not self.settings:
            return line("Run", name, self.size(), delay, f"final regret {interval_text(mean_interval(self.final[0]))}")
        lowest, *_, highest = column_texts(sorted(self.final.mean(axis=-1).tolist()))
        size = f"{count_of(len(self.settings), 'setting')} x {self.size()}"
        return line("Run", name, size, delay, f"final regret {lowest} to {highest}")

    def size(self) -> str:
        *_, replications, rounds = self.run.regret.shape
        return f"{count_of(replications, 'replication')} x {count_of(rounds, 'round')}"

    def html(self) -> str:
        run = self.run
        given = [
            ("policy", described(run.policy)),
            ("world", described(run.environment)),
            ("delay", described(run.delay)),
            ("seed", f"{run.seed}"),
        ]
        table = self.settings_table() if self.settings else self.measures_table()
        return card(f"{type(run.policy).__name__}: {self.size()}", facts(given), table)

    def settings_table(self) -> str:
        """The settings of a grid, the lowest regret first."""
        order = np.argsort(self.final.mean(axis=-1), kind="stable")
        rows = [[self.settings[k], interval_text(mean_interval(self.final[k]))] for k in order]
        return rows_table(["setting", "final regret"], rows, text=["setting"], what="settings")

    def measures_table(self) -> str:
        run = self.run
        measures = {
            "final regret": run.interval("final_regret"),
            "payoff a round": last_of(run.interval("average_payoff")),
            "optimality ratio": mean_interval(run.optimality_ratio.mean(axis=-1)),
        }
        if run.recorded.size and np.isfinite(run.graph_error).all():
            measures["error of the graph (MSE)"] = last_of(run.interval("graph_error"))
        rows = [[name, interval_text(measure)] for name, measure in measures.items()]
        return rows_table(["measure", "mean [95% interval]"], rows, text=["measure"], what="measures")

    def plot(self, *, title: str = "") -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures import figure_of, regret_figure

        accepted = f"at most {MOST_ROWS} in one figure; `spillover.experiments.tune.tune` draws a grid"
        validate.require(len(self.settings) <= MOST_ROWS, "settings of the grid", len(self.settings), accepted)
        return figure_of(regret_figure([self.run], title=title))


def delay_text(run: Run) -> str:
    """A constant delay as its number of rounds, any other with its parameters."""
    return f"{run.delay.constant}" if run.delay.constant is not None else described(run.delay)


def interval_text(interval: Interval) -> str:
    mean, low, high = (float(value) for value in interval)
    return estimate_text(mean, low, high)


def last_of(interval: Interval) -> Interval:
    """The interval at the last recorded round."""
    return Interval(*(values[..., -1] for values in interval))
