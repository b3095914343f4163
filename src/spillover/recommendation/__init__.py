"""From a table to the next decision: the choice, the same by what is known alone, and how far to trust it."""

from spillover.recommendation.decide import RECOMMENDED, Question, decide, next_decision
from spillover.recommendation.estimates import Facts, facts_of
from spillover.recommendation.result import ArmAnswer, Recommendation

__all__ = ["RECOMMENDED", "ArmAnswer", "Facts", "Question", "Recommendation", "decide", "facts_of", "next_decision"]
