"""Data for health checks: `signals(state)` of a policy returns a dictionary with any of these.

gram          (*batch, n, n)  sum of y y' of the outcomes that the graph was learned from
latest        (*batch, n)     the latest round of each arm whose outcome has arrived; 0 for none
memory        (*batch,)       roughly how many past rounds count
changes_seen  (*batch,)       how many changes of the world were detected
confounded    (*batch,)       whether z and y were found to have hidden common causes
baseline      (*batch,)       whether outcomes were found not to be 0 where nothing is chosen, although none is declared
against_order (*batch, n, n)  whether an earlier arm j clearly affects a later arm i, entry (i, j), although an order is
                              declared in which it cannot
negative_effects (*batch, n, n)  whether arm j clearly lowers the outcome of arm i, entry (i, j), although edges count
                              as positive
own_slopes    (*batch, n)     slope of each arm's y on its own z: 1 unless it clearly differs from 1, NaN if not known
graph_rejected (*batch, n)    arms whose effects by the graph contradict a regression on the decisions
learns        bool            False for a policy that learns nothing
of_sets       bool            True for a policy that learns about sets: an arm's estimate is that of its best set
"""

from typing import Any

import numpy as np

from spillover.graph import GraphLearner
from spillover.types import IntArray


def graph_signals(learner: GraphLearner, graph: Any, latest: IntArray, discount: Any = 1.0) -> dict[str, Any]:
    """The signals of a policy that learns a graph."""
    rate = 1.0 - np.asarray(discount, float)
    memory = np.divide(1.0, rate, out=np.full(rate.shape, np.inf), where=rate > 0)
    return {"latest": latest, "memory": memory} | learner.signals(graph)
