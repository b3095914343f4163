"""Robust causal bandits for linear models (Yan, Mukherjee, Varıcı and Tajer 2023, arXiv:2310.19794)."""

import math
from dataclasses import dataclass
from typing import Any

from spillover import validate
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, choose_top
from spillover_studies.field.rivals.linsem import most_causes, radius_of
from spillover_studies.field.rivals.nodewise import NodewisePolicy, add_to_node, fill_bounds, leverage_of, solve_node


@dataclass(frozen=True, kw_only=True)
class RobustSEMUCB(NodewisePolicy):
    """LinSEM-UCB whose regressions weight an outcome less, the more it would move them.

    The weight is min(1, sqrt(d) / (C v)), where v is the length of the regressors in the inverse of the node's matrix
    and d the largest number of causes: the rule for corrupted linear bandits. The paper weights by the same length; its
    constants were not available to us.

    deviation: C, how far the model may deviate in all rounds together, in units of the reward range; 0 weights equally.
    width: as in `LinSEMUCB`.
    """

    deviation: float = 10.0
    width: float = 1.0

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=False)  # weights depend on what is known when an outcome arrives

    def __post_init__(self) -> None:
        for name in ("deviation", "width"):
            validate.number(name, getattr(self, name), "a finite number >= 0", low=0, high=math.inf)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        nodes, room = s.nodes, turn.room
        most = math.sqrt(most_causes(nodes.unknown))
        for i in range(s.n_arms):
            solve_node(nodes, i, room)
            square = leverage_of(nodes, room, i, lesson)
            length = self.deviation * math.sqrt(square)
            add_to_node(nodes, i, lesson, most / length if length > most else 1.0)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        scores, most = turn.lines[0], most_causes(s.nodes.unknown)
        radius = self.width * (radius_of(s.n_arms, most, s.rounds + 1.0) + math.sqrt(most))
        fill_bounds(s.nodes, turn.room, radius, scores)
        choose_top(scores, s.budget, turn, x)
