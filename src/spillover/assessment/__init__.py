"""What can be learned from a table of past decisions and outcomes, and what not; and an independent reference."""

from spillover.assessment.assess import Assessment, assess
from spillover.assessment.averages import ArmAverages, Comparison
from spillover.assessment.finding import Finding
from spillover.assessment.groups import Groups
from spillover.assessment.pooled import Pooled
from spillover.assessment.reduced_form import ReducedForm

__all__ = ["ArmAverages", "Assessment", "Comparison", "Finding", "Groups", "Pooled", "ReducedForm", "assess"]
