"""A comparison in a notebook: a table, and a figure of regret with the paired differences."""

from typing import TYPE_CHECKING

import numpy as np

from spillover.assessment.finding import count_of
from spillover.comparison import Compared, PairedComparison
from spillover.extras import needed_for
from spillover.policy_names import described
from spillover.printable import clipped
from spillover.reasons.render import align_columns
from spillover.views.blocks import WIDTH, card, facts, rows_table, sentences
from spillover.views.run import delay_text, interval_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_NAME = 26  # characters
LINES = 7  # policies in the text


class ComparisonView:
    """Policies on the same draws, the best first."""

    def __init__(self, comparison: PairedComparison) -> None:
        self.comparison = comparison
        self.run = next(iter(comparison.runs.values()))
        self.headings = ["policy", "verdict", "final regret", "optimality ratio", "difference"]

    def row(self, row: Compared) -> list[str]:
        difference = "" if row.policy == self.comparison.reference else interval_text(row.difference)
        ratio = f"{float(row.optimality_ratio.mean):.1%}"
        return [row.policy, row.verdict, interval_text(row.final_regret), ratio, difference]

    def text(self) -> str:
        rows = [self.row(row) for row in self.comparison.rows]
        shown = [[clipped(name, LONGEST_NAME), *rest] for name, *rest in rows[:LINES]]
        lines = [self.title(), *align_columns([self.headings, *shown])]
        if len(rows) > LINES:
            lines.append(f"… {len(rows) - LINES} more policies")
        return "\n".join(clipped(line.rstrip(), WIDTH) for line in lines)

    def title(self) -> str:
        replications, rounds = self.run.regret.shape
        size = f"{count_of(replications, 'replication')} x {count_of(rounds, 'round')}"
        return f"{len(self.comparison.runs)} policies on the same draws, {size}, delay {delay_text(self.run)}"

    def html(self) -> str:
        rows = [self.row(row) for row in self.comparison.rows]
        table = rows_table(self.headings, rows, text=["policy", "verdict"], what="policies")
        return card(self.title(), facts([("world", described(self.run.environment))]), table, sentences([self.note()]))

    def note(self) -> str:
        """What the differences are."""
        if len(self.run.final_regret) < 2:
            return "One replication says nothing about the others: no difference can be told."
        pairs = count_of(self.comparison.pairs, "difference")
        together = f"The intervals of {pairs} hold together with 95%" if self.comparison.pairs > 1 else "95% interval"
        return f"Difference: final regret minus that of {self.comparison.reference}, paired. {together}."

    def plot(self, *, title: str = "") -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures import (
                Difference,
                figure_legend,
                figure_of,
                forest_figure,
                new_panels,
                regret_figure,
            )
            from spillover.figures.style import WIDTH as INCHES

        comparison, reference = self.comparison, self.comparison.reference
        differences = [
            Difference(row.policy, *np.nan_to_num([float(value) for value in row.difference], nan=np.nan))
            for row in comparison.rows
            if row.policy != reference
        ]
        tall = 0.9 + 0.42 * len(differences)
        top, below = new_panels(2, 1, size=(INCHES, 3.2 + tall), gridspec_kw={"height_ratios": [3.0, tall]})
        regret_figure([comparison], ax=top, title=title)
        label = f"final regret minus that of {clipped(reference, LONGEST_NAME)} (below 0: less regret)"
        forest_figure(differences, ax=below, xlabel=label)
        figure_legend([top])
        return figure_of(top)
