"""Worlds to learn in."""

from spillover.environments.fixed import FixedSEM, example_graph
from spillover.environments.synthetic import SyntheticSEM
from spillover.environments.world import SEMWorld

ENVIRONMENTS = {"synthetic": SyntheticSEM, "fixed": FixedSEM}

__all__ = ["ENVIRONMENTS", "FixedSEM", "SEMWorld", "SyntheticSEM", "example_graph"]
