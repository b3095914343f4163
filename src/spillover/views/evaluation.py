"""An evaluation in a notebook: payoffs and differences as a table, a sentence for each policy."""

from typing import TYPE_CHECKING

from spillover.assessment.finding import count_of
from spillover.evaluation.result import Answer, Evaluation
from spillover.evaluation.text import left_sentence, verdict_sentence, with_interval
from spillover.extras import needed_for
from spillover.reasons.intervals import short_number
from spillover.views.blocks import card, line, rows_table, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WARNINGS, NOTES = 5, 4  # that are shown


class EvaluationView:
    """How good past decisions were."""

    def __init__(self, found: Evaluation) -> None:
        self.found = found
        self.rounds = count_of(len(found.log.x), "round")

    def text(self) -> str:
        return line("Evaluation", self.rounds, *(f"{answer.name}: {answer.verdict}" for answer in self.found.answers))

    def html(self) -> str:
        found = self.found
        arms = count_of(len(found.log.arms), "arm")
        headings = ["", "expected payoff (95%)", "difference from the log"]
        return card(
            f"{self.rounds} with outcomes, {arms}; they brought {short_number(found.earned)}",
            rows_table(headings, [self.row(answer) for answer in found.rows], text=[""], what="policies"),
            sentences([*(verdict_sentence(found, answer) for answer in found.answers), left_sentence(found)]),
            sentences([f"Warning: {sentence}" for sentence in found.warnings], WARNINGS),
            sentences([f"Note: {note}." for note in found.notes], NOTES),
        )

    def row(self, answer: Answer) -> list[str]:
        gap = "" if answer is self.found.logged else with_interval(answer.difference, answer.difference_interval)
        return [answer.name, with_interval(answer.payoff, answer.interval), gap]

    def plot(self) -> "Figure":
        with needed_for("a figure", "plot"):
            from spillover.figures import course_figure, figure_of

        found = self.found
        lines = [(answer.name, answer.course) for answer in found.answers]
        return figure_of(course_figure(found.labels, found.earned_course, lines))
