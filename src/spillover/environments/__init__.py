"""Worlds to learn in."""

from spillover.environments.constrained import ConstrainedSEM
from spillover.environments.fixed import FixedSEM, example_graph
from spillover.environments.instance import Instance
from spillover.environments.synthetic import SyntheticSEM
from spillover.environments.world import SEMWorld

ENVIRONMENTS = {"synthetic": SyntheticSEM, "instance": Instance, "fixed": FixedSEM}

__all__ = ["ENVIRONMENTS", "ConstrainedSEM", "FixedSEM", "Instance", "SEMWorld", "SyntheticSEM", "example_graph"]
