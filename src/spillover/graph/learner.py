"""What a learner of the graph is."""

from typing import Any, Protocol, runtime_checkable

from spillover.types import Array, Batch, BoolArray, IntArray, Problem


@runtime_checkable
class GraphLearner(Protocol):
    """Exchangeable learners of the graph; a learned graph has `adjacency`, `weights`, and `gain` where F is learned.

    A learner may have more. `order_free = False`: what it learns depends on the order of arrival. `forget(graph,
    rows)`: begin anew for the learners of a mask. `remember(graph)` and `judge(graph, z, y, arrived, memo)`: what it
    wants to be reminded of when the outcome of the coming round arrives, and what it makes of that. `absorb_rounds`:
    as `absorb` for one learner and many rounds, which are the first axis of all it is given, in their order.
    """

    def init(self, problem: Problem, batch: Batch = ()) -> Any: ...
    def absorb(self, graph: Any, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray) -> Any: ...
    def solve(self, graph: Any) -> Any: ...


def absorb_rounds(
    learner: GraphLearner, graph: Any, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray
) -> Any:
    """Let one learner take in many rounds, all at once if it can."""
    at_once = getattr(learner, "absorb_rounds", None)
    if at_once is not None:
        return at_once(graph, z, y, weight, moment)
    for row in range(len(z)):
        graph = learner.absorb(graph, z[row], y[row], weight[row], moment[row])
    return graph
