"""Recommendations, evaluations, learners and reasons in a notebook."""

from typing import TYPE_CHECKING

from spillover.evaluation.result import Answer, Evaluation, left_sentence, verdict_sentence, with_interval
from spillover.formatting import count_of, join_names, short_number
from spillover.learner.many import Learners
from spillover.learner.one import Learner
from spillover.reasons import Reasons
from spillover.reasons.render import arm_table
from spillover.recommendation.result import Recommendation
from spillover.recommendation.text import context_lines, headline, note_lines
from spillover.registry import needed_for
from spillover.simulation.comparison import described
from spillover.views.blocks import card, facts, line, rows_table, sentences

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


class LearnerView:
    """A policy in use."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def text(self) -> str:
        return line("Learner", type(self.learner.policy).__name__, *self.size())

    def size(self) -> list[str]:
        learner = self.learner
        arms = f"at most {learner.problem.budget:,} of {count_of(learner.problem.n_arms, 'arm')}"
        limits = count_of(len(learner.constraints), "constraint") if learner.constraints else ""
        return [arms, limits, count_of(learner.rounds, "round"), f"{len(learner.pending):,} pending"]

    def html(self) -> str:
        title = f"{type(self.learner.policy).__name__}: {', '.join(part for part in self.size() if part)}"
        given = facts([("policy", described(self.learner.policy)), ("problem", repr(self.learner.problem))])
        return card(title, given, self.decision())

    def decision(self) -> str:
        """The next decision and its reasons, without paths and swaps, which take long for many arms."""
        learner = self.learner
        if not learner.policy.explains:
            return sentences([f"{type(learner.policy).__name__} gives no reasons."])
        try:
            reasons = learner.reasons(paths=0, swaps=0)
        except ValueError as error:  # its context is not known yet, or no set satisfies its constraints
            return sentences([f"No decision yet: {error}"])
        return ReasonsView(reasons).html()


class LearnersView:
    """Learners of one policy for many streams."""

    def __init__(self, learners: Learners) -> None:
        self.learners = learners

    def text(self) -> str:
        return line("Learners", type(self.learners.policy).__name__, *self.size())

    def size(self) -> list[str]:
        problem, (waiting, _) = self.learners.problem, self.learners.pending
        arms = f"at most {problem.budget:,} of {count_of(problem.n_arms, 'arm')}"
        return [count_of(len(self.learners), "learner"), arms, self.rounds(), f"{len(waiting):,} pending"]

    def rounds(self) -> str:
        """How many rounds they have played, from the fewest to the most."""
        played = self.learners.rounds
        fewest, most = int(played.min(initial=0)), int(played.max(initial=0))
        return count_of(most, "round") if fewest == most else f"{fewest:,} to {count_of(most, 'round')}"

    def html(self) -> str:
        given = [("policy", described(self.learners.policy)), ("problem", repr(self.learners.problem))]
        return card(f"{type(self.learners.policy).__name__}: {', '.join(self.size())}", facts(given))


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
