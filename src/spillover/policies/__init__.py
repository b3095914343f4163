"""One file a policy; the table maps the names used in experiment files and on the command line."""

from spillover.policies.ndcsem import NDCSEM
from spillover.policies.reference import DelayedOracle, Oracle, Uniform

POLICIES = {
    "ndc-sem": NDCSEM,
    "random": Uniform,
    "oracle": Oracle,
    "delayed-oracle": DelayedOracle,
}

__all__ = ["NDCSEM", "POLICIES", "DelayedOracle", "Oracle", "Uniform"]
