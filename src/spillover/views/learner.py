"""A learner in a notebook: what it is, how far it is, and what it would choose next."""

from spillover.assessment.finding import count_of
from spillover.live import Learner
from spillover.policy_names import described
from spillover.views.blocks import card, facts, line, sentences
from spillover.views.reasons import ReasonsView


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
