"""BLM-LR, combinatorial causal bandits with linear models (Feng and Chen 2023, AAAI, arXiv:2206.01995)."""

import math
from dataclasses import dataclass
from typing import Any

from spillover import validate
from spillover.core import Lesson, Turn, choose_top
from spillover_studies.field.rivals.nodewise import NodewisePolicy, add_own, add_to_node, fill_bounds


@dataclass(frozen=True, kw_only=True)
class BLMLR(NodewisePolicy):
    """Optimism for interventions on at most K nodes; a node's causes are learned from rounds without its own arm.

    An intervention of the paper sets a node and cuts it off its causes; ours shifts it, so that more could be learned
    from those rounds than it does. Where rewards z are not seen, all rounds count, or nothing would be known of shifts.

    width: times the radius of the theory, sqrt(n log(1 + n t) + 2 log(n sqrt(t))) + sqrt(n).
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        validate.number("width", self.width, "a finite number >= 0", low=0, high=math.inf)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        for i in range(s.n_arms):
            if lesson.x[i] and s.nodes.sees:
                add_own(s.nodes, i, lesson, 1.0)
            else:
                add_to_node(s.nodes, i, lesson, 1.0)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        scores, n, t = turn.lines[0], s.n_arms, s.rounds + 1.0
        radius = math.sqrt(n * math.log(1.0 + n * t) + 2.0 * math.log(n * math.sqrt(t))) + math.sqrt(n)
        fill_bounds(s.nodes, turn.room, self.width * radius, scores)
        choose_top(scores, s.budget, turn, x)
