"""The answer of `next_decision` in a notebook: what to choose, the arms with their numbers, what to watch out for."""

from spillover.assessment.finding import count_of, join_names
from spillover.recommendation.result import Recommendation
from spillover.recommendation.text import context_lines, headline, note_lines
from spillover.views.blocks import card, line, sentences
from spillover.views.reasons import arms_html

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
