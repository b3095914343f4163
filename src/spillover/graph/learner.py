"""What a learner of the graph is."""

from typing import Any, Protocol, runtime_checkable

from spillover.types import Array, Batch, BoolArray, IntArray, Problem


@runtime_checkable
class GraphLearner(Protocol):
    """Exchangeable learners of the graph; a learned graph has `adjacency`, `weights`, and `gain` where F is learned.

    A learner may have more. `order_free = False`: what it learns depends on the order of arrival. `forget(graph, rows)`:
    begin anew for the learners of a mask. `remember(graph)` and `judge(graph, z, y, arrived, memo)`: what it
    wants to be reminded of when the outcome of the coming round arrives, and what it makes of that.
    """

    def init(self, problem: Problem, batch: Batch = ()) -> Any: ...
    def absorb(self, graph: Any, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray) -> Any: ...
    def solve(self, graph: Any) -> Any: ...
