"""Many learners in a notebook."""

from spillover.assessment.finding import count_of
from spillover.learners import Learners
from spillover.policy_names import described
from spillover.views.blocks import card, facts, line


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
