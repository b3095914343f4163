"""Recommendations and evaluations in a notebook."""

from typing import TYPE_CHECKING

from spillover.evaluation.result import Answer, Evaluation
from spillover.evaluation.text import left_sentence, verdict_sentence, with_interval
from spillover.formatting import count_of, join_names, short_number
from spillover.recommendation.result import Recommendation
from spillover.recommendation.text import context_lines, headline, note_lines
from spillover.registry import needed_for
from spillover.views.blocks import card, line, rows_table, sentences
from spillover.views.learners import arms_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WARNINGS, NOTES = 5, 4  # that are shown


class RecommendationView:
    """What to choose next."""

    def __init__(self, answer: Recommendation) -> None:
        self.answer = answer

    def text(self) -> str:
        answer = self.answer
        warnings = count_of(len(answer.warnings), "warning") if answer.warnings else ""
        rounds = count_of(len(answer.history.rounds), "round")
        choose = f"choose {join_names(answer.choose) or 'nothing'}"
        most = f"choose at most {answer.budget}"
        return line("Recommendation", answer.policy, rounds, most, warnings, choose)

    def html(self) -> str:
        answer = self.answer
        fewer = ["Outcomes are minimised: positive effects are reductions."] if answer.sign < 0 else []
        score = f"Score: {answer.reasons.quantity}, including exploration."
        return card(
            headline(answer),
            sentences([score, *fewer]),
            arms_html(answer.reasons),
            sentences(context_lines(answer)),
            sentences([f"Warning: {sentence}" for sentence in answer.warnings], WARNINGS),
            sentences(note_lines(answer), NOTES),
        )


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
