"""Policies written for one learner, compiled or not, and every use of them."""

from spillover.core.compiled import inner
from spillover.core.policy import CorePolicy
from spillover.core.turn import Lesson, Turn, choose_top, later, uniform

__all__ = ["CorePolicy", "Lesson", "Turn", "choose_top", "inner", "later", "uniform"]
