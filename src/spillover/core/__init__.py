"""Policies written for one learner, compiled or not, and every use of them."""

from spillover.core.compiled import inner
from spillover.core.draws import choose_top, later, uniform
from spillover.core.driver import Functions, Lesson, Turn
from spillover.core.policy import CorePolicy

__all__ = ["CorePolicy", "Functions", "Lesson", "Turn", "choose_top", "inner", "later", "uniform"]
