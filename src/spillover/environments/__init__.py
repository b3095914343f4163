"""Worlds to learn in."""

from collections.abc import Callable

from spillover.contracts import Environment
from spillover.environments.constrained import ConstrainedSEM
from spillover.environments.fixed import FixedSEM, example_graph
from spillover.environments.synthetic import Instance, SyntheticSEM
from spillover.environments.world import SEMWorld
from spillover.registry import Registry

BUILT_IN: dict[str, Callable[..., Environment]] = {
    "synthetic": SyntheticSEM,
    "instance": Instance,
    "fixed": FixedSEM,
}
ENVIRONMENTS = Registry("environment", "spillover.environments", Environment, BUILT_IN)

__all__ = ["ENVIRONMENTS", "ConstrainedSEM", "FixedSEM", "Instance", "SEMWorld", "SyntheticSEM", "example_graph"]
