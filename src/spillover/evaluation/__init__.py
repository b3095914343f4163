"""Evaluate past decisions: what was earned, what others would have earned, and whether the log can tell."""

from spillover.evaluation.evaluate import Answer, Evaluation, evaluate
from spillover.evaluation.worlds import Estimate, Weighed, weighed

__all__ = ["Answer", "Estimate", "Evaluation", "Weighed", "evaluate", "weighed"]
