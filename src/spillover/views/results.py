"""The results of an experiment in a notebook."""

from typing import TYPE_CHECKING

from spillover import validate
from spillover.assessment.finding import count_of
from spillover.experiments.results import Missing, Record, Results
from spillover.extras import needed_for
from spillover.metrics import mean_interval
from spillover.views.blocks import MOST_ROWS, card, facts, line, rows_table
from spillover.views.run import interval_text

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
            from spillover.report.sections import studies

        worlds = list(dict.fromkeys(world for world, _, _ in self.results.cell_ids))
        shown = worlds[0] if world is None else world
        validate.require(shown in worlds, "world", shown, f"one of {', '.join(worlds)}")
        found = studies(self.results, shown)
        return figure_of(regret_panels(found)[0])
