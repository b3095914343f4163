"""Assess a table of past decisions and outcomes: what can be learned from it, what not, and a reference estimate."""

from spillover.assessment.assess import Assessment, assess
from spillover.assessment.data import ArmAverages, Comparison
from spillover.assessment.findings import Finding
from spillover.assessment.pooled import Pooled
from spillover.assessment.reduced_form import Groups, ReducedForm

__all__ = ["ArmAverages", "Assessment", "Comparison", "Finding", "Groups", "Pooled", "ReducedForm", "assess"]
