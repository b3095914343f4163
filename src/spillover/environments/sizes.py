"""How large the worlds of an environment are, before one is drawn."""

from functools import singledispatch
from typing import NamedTuple

from spillover.environments.constrained import ConstrainedSEM
from spillover.environments.edges import MANY_ARMS
from spillover.environments.fixed import FixedSEM
from spillover.environments.instance import Instance
from spillover.environments.synthetic import SyntheticSEM


class WorldSize(NamedTuple):
    """The size of a world."""

    arms: int
    rounds: int
    edges: int | None = None  # if they are kept as lists; otherwise there are matrices


@singledispatch
def world_size(environment: object) -> WorldSize | None:
    """The size of the worlds of an environment; None if only drawing one tells."""
    return None


@world_size.register
def _(environment: SyntheticSEM) -> WorldSize:
    graphs, many = len(environment.graph_changes) + 1, environment.n_arms > MANY_ARMS
    return WorldSize(environment.n_arms, environment.horizon, graphs * environment.edges if many else None)


@world_size.register
def _(environment: FixedSEM) -> WorldSize:
    n = environment.n_arms
    return WorldSize(n, environment.horizon, len(environment.edges.effect) if n > MANY_ARMS else None)


@world_size.register
def _(environment: Instance) -> WorldSize | None:
    return world_size(environment.of)


@world_size.register
def _(environment: ConstrainedSEM) -> WorldSize | None:
    return world_size(environment.environment)
