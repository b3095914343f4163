"""A problem in a notebook."""

from spillover.types import Problem
from spillover.views.blocks import card, facts

OBSERVED = {"both": "rewards and outcomes of each arm", "overall": "outcomes of each arm", "payoff": "their sum only"}


class ProblemView:
    """What a policy knows before the first round."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def text(self) -> str:
        return repr(self.problem)

    def html(self) -> str:
        problem = self.problem
        told = ("reward_range", "overall_range", "weights", "context", "baseline", "acyclic")
        more = [(name.replace("_", " "), problem.short(name)) for name in told if not problem.is_usual(name)]
        title = f"Problem: choose at most {problem.budget:,} of {problem.n_arms:,} arms"
        return card(title, facts([("observed", OBSERVED[problem.observes]), *more]))
