"""Assess a table of past decisions and outcomes: what can be learned from it, what not, and a reference estimate."""

from spillover.assessment.assess import Assessment, Pooled, assess
from spillover.assessment.findings import Finding
from spillover.assessment.reduced_form import ArmAverages, Comparison, Groups, ReducedForm

__all__ = ["ArmAverages", "Assessment", "Comparison", "Finding", "Groups", "Pooled", "ReducedForm", "assess"]
