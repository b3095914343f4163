"""Policies in live use: one learner, or many in one call, and their files."""

from spillover.learner.many import Learners
from spillover.learner.one import Learner

__all__ = ["Learner", "Learners"]
