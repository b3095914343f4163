"""LinSEM-UCB and LinSEM-TS (Varıcı, Shanmugam, Sattigeri and Tajer 2023, JMLR 24)."""

import math
from dataclasses import dataclass
from typing import Any

from spillover import validate
from spillover.core import Turn, choose_top, inner, later
from spillover_studies.field.rivals.nodewise import (
    NodewisePolicy,
    add_up_effects,
    backward,
    fill_bounds,
    normal,
    solve_nodes,
)


@inner
def radius_of(n: int, parents: float, t: float) -> Any:
    """1 + sqrt(2 log(2 N t) + d log(1 + t / d)): of the ellipsoid of a node with d causes after t rounds."""
    return 1.0 + math.sqrt(2.0 * math.log(2.0 * n * t) + parents * math.log(1.0 + t / parents))


@inner
def most_causes(unknown: Any) -> Any:
    """The largest number of causes of a node, at least 1."""
    most = 1
    for i in range(unknown.shape[0]):
        count = 0
        for j in range(unknown.shape[0]):
            count += unknown[i, j]
        most = max(most, count)
    return float(most)


@dataclass(frozen=True, kw_only=True)
class LinSEMUCB(NodewisePolicy):
    """Plays the arms with the highest optimistic payoff; knows which edges there can be, and learns their weights.

    Each node is regressed on its causes (ridge 1). The payoff is optimistic over the ellipsoids of all nodes; the paper
    maximises over them exactly, which has no closed form. Here the payoff is taken to be linear around the estimates,
    and the widths of arms are added up, so that the best set is that of the highest indices.

    width: times the radius of the theory; 1 is the theory's.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        validate.number("width", self.width, "a finite number >= 0", low=0, high=math.inf)

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        radius = self.width * radius_of(s.n_arms, most_causes(s.nodes.unknown), s.rounds + 1.0)
        fill_bounds(s.nodes, turn.room, radius, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        scores = turn.lines[0]
        radius = self.width * radius_of(s.n_arms, most_causes(s.nodes.unknown), s.rounds + 1.0)
        fill_bounds(s.nodes, turn.room, radius, scores)
        choose_top(scores, s.budget, turn, x)


@dataclass(frozen=True, kw_only=True)
class LinSEMTS(NodewisePolicy):
    """Thompson sampling: draws the coefficients of each node from N(estimate, scale^2 V^-1), V = 1 + sum of squares.

    scale: standard deviation of the noise of a node that the posterior assumes, in units of the reward range.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        validate.number("scale", self.scale, "a finite number >= 0", low=0, high=math.inf)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        n, room, scores, drawn = s.n_arms, turn.room, turn.lines[0], later(turn)
        solve_nodes(s.nodes, room)
        for i in range(n):
            for j in range(n + 1):
                free = j == n or s.nodes.unknown[i, j]
                room.work[j] = self.scale * normal(drawn, i * (n + 1) + j) if free else 0.0
            backward(room.root[i], room.work)
            for j in range(n + 1):
                room.found[i, j] += room.work[j]
        add_up_effects(s.nodes, room)
        for arm in range(n):
            scores[arm] = room.total[arm] * room.found[arm, n]
        choose_top(scores, s.budget, turn, x)
