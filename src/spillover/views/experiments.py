"""The results of an experiment and of tuning in a notebook."""

from typing import TYPE_CHECKING

import numpy as np

from spillover import validate
from spillover.assessment.finding import count_of
from spillover.experiments.experiment import Place
from spillover.experiments.results import Missing, Record, Results
from spillover.experiments.tune import Tuned
from spillover.extras import needed_for
from spillover.metrics import mean_interval
from spillover.types import Array
from spillover.views.blocks import MOST_ROWS, card, facts, line, rows_table
from spillover.views.runs import interval_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ResultsView:
    """Results in a store."""

    def __init__(self, results: Results) -> None:
        self.results = results

    def text(self) -> str:
        records = count_of(len(self.results.cell_ids), "record")
        return line("Results", repr(self.results.experiment.name), records, f"in {self.results.store.folder}")

    def html(self) -> str:
        experiment, keys = self.results.experiment, list(self.results.cell_ids)
        rows = [self.row(key) for key in keys[:MOST_ROWS]]
        rows += [[""] * 5] * (len(keys) - len(rows))  # only what is shown is read
        headings = ["world", "delay", "policy", "replications", "final regret"]
        table = rows_table(headings, rows, text=headings[:3], what="records")
        given = [("experiment", experiment.name), ("folder", str(self.results.store.folder))]
        return card(experiment.title or experiment.name, facts([*given, ("seed", f"{experiment.seed}")]), table)

    def row(self, key: tuple[str, str, str]) -> list[str]:
        """The cells of a record; without numbers if it is not computed."""
        world, delay, policy = key
        try:
            record: Record = self.results.record(*key)
        except Missing:
            return [world, delay, policy, "0", "not computed"]
        final = interval_text(mean_interval(record.regret[:, -1]))
        return [world, delay, record.label, f"{len(record.replications):,}", final]

    def plot(self, world: str | None = None) -> "Figure":
        with needed_for("a figure", "research"):
            from spillover.figures import figure_of, regret_panels
            from spillover.report.page import studies

        worlds = list(dict.fromkeys(world for world, _, _ in self.results.cell_ids))
        shown = worlds[0] if world is None else world
        validate.require(shown in worlds, "world", shown, f"one of {', '.join(worlds)}")
        found = studies(self.results, shown)
        return figure_of(regret_panels(found)[0])


class TunedView:
    """The result of a search."""

    def __init__(self, tuned: Tuned) -> None:
        self.tuned = tuned

    def text(self) -> str:
        regret, *others = self.tuned.regret.values()
        if others:
            return line("Tuned", self.size(), f"{len(others) + 1} places", "the best settings: see best()")
        return line("Tuned", self.size(), f"final regret {self.final(regret)}", self.best(regret))

    def size(self) -> str:
        search = self.tuned.search
        return f"{count_of(len(search.cells), 'setting')} x {count_of(search.replications, 'replication')}"

    def best(self, regret: Array) -> str:
        """The hyperparameters of the best cell."""
        cell = self.tuned.search.cells[int(regret.mean(axis=-1).argmin())]
        return ", ".join(f"{name}={value:g}" for name, value in zip(self.tuned.search.grid, cell, strict=True))

    def final(self, regret: Array) -> str:
        return interval_text(mean_interval(regret[int(regret.mean(axis=-1).argmin())]))

    def html(self) -> str:
        rows = [[*place, self.best(regret), self.final(regret)] for place, regret in self.tuned.regret.items()]
        headings = [*Place._fields, "best setting", "final regret"]
        search = self.tuned.search
        grid = [(name, ", ".join(f"{value:g}" for value in np.ravel(values))) for name, values in search.grid.items()]
        table = rows_table(headings, rows, text=headings[:4], what="places")
        return card(f"Search: {self.size()}", facts([*grid, ("seed", f"{search.seed}")]), table)

    def plot(self) -> "Figure":
        with needed_for("a figure", "research"):
            from spillover.figures import figure_of
            from spillover.figures.grid import grid_panels

        drawn = grid_panels(self.tuned.to_frame())
        accepted = "a grid with at least two values of discount and of exploration"
        validate.require(len(drawn) > 0, "grid", dict(self.tuned.search.grid), accepted)
        return figure_of(drawn[0])
