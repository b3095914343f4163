"""What a policy may say of its own condition: `signals(state)`, a dictionary with any of these, for health signals.

gram          (*batch, n, n)  sum of y y' of the outcomes that the graph was learned from
latest        (*batch, n)     the latest round of each arm that was heard of; 0 for none
memory        (*batch,)       how many rounds count, about
changes_seen  (*batch,)       how many changes of the world it noticed
learns        bool            False for a policy that learns nothing
of_sets       bool            True for a policy that knows sets: what it says of an arm is of the best set with it
"""

from typing import Any

import numpy as np

from spillover.policies.sem import SEMState
from spillover.types import Array


def sem_signals(state: SEMState, discount: Any = 1.0) -> dict[str, Any]:
    """The signals of a policy that learns a graph."""
    told: dict[str, Any] = {"latest": state.averages.stamps}
    gram = gram_of(state.graph)
    if gram is not None:
        told["gram"] = gram
    rate = 1.0 - np.asarray(discount, float)
    told["memory"] = np.divide(1.0, rate, out=np.full(rate.shape, np.inf), where=rate > 0)
    return told


def gram_of(graph: Any) -> Array | None:
    """The sum of y y' that a learned graph holds, held-out rounds included; None for one that holds none."""
    if hasattr(graph, "sparse"):  # several learners side by side
        return gram_of(graph.sparse)
    if hasattr(graph, "held_gram"):
        return np.asarray(graph.fits.gram[..., 0, :, :] + graph.held_gram)
    return getattr(graph, "gram", None)
