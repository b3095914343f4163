"""Reasons in a notebook: the parts of every arm's score, swaps and health."""

from typing import TYPE_CHECKING

from spillover.assessment.finding import count_of, join_names
from spillover.extras import needed_for
from spillover.reasons import Reasons
from spillover.reasons.render import arm_table
from spillover.views.blocks import card, line, rows_table, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ReasonsView:
    """Why one decision was made."""

    def __init__(self, reasons: Reasons) -> None:
        self.reasons = reasons
        self.chosen = [arm.arm for arm in reasons.ranked() if arm.chosen]

    def text(self) -> str:
        warnings = sum(signal.warning for signal in self.reasons.health)
        size = f"{len(self.chosen):,} of {count_of(len(self.reasons.arms), 'arm')} chosen"
        told = count_of(warnings, "warning") if warnings else ""
        return line("Reasons", size, told, join_names(self.chosen))

    def html(self) -> str:
        plan = [f"A plan decided this round, not the scores: {self.reasons.plan}."] if self.reasons.planned else []
        return card(
            f"Chosen: {join_names(self.chosen) or 'none'} ({len(self.chosen):,} of {len(self.reasons.arms):,} arms)",
            sentences([*plan, f"Score: {self.reasons.quantity}, including exploration."]),
            arms_html(self.reasons),
            health_html(self.reasons),
        )

    def plot(self) -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures.decision import decision_figure

        return decision_figure(self.reasons)


def arms_html(reasons: Reasons) -> str:
    """The arms with the parts of their scores, the chosen ones first."""
    headings, *rows = arm_table(reasons, reasons.ranked())
    return rows_table(headings, rows, text=["arm", ""], what="arms")


def health_html(reasons: Reasons) -> str:
    """The health signals, warnings first; the plan, if one decided, is already told above the arms."""
    signals = [signal for signal in reasons.health if signal.code != "planned"]
    return sentences([f"{'Warning: ' if signal.warning else ''}{signal.sentence}" for signal in signals], 6)
