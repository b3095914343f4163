"""Evaluate past decisions: what was earned, what others would have earned, and whether the log can tell."""

from spillover.evaluation.evaluate import evaluate
from spillover.evaluation.log import Estimate, Weighed, weighed
from spillover.evaluation.result import Answer, Evaluation

__all__ = ["Answer", "Estimate", "Evaluation", "Weighed", "evaluate", "weighed"]
