"""What many tests share."""

from typing import Any

import numpy as np

import spillover as sp
from spillover.graph import GraphLearner, SelfTunedGraph, SparseGraph


def explained(policy: Any, state: Any, rng: sp.Rng | None = None) -> sp.Explanation:
    """The next decision of a policy and the estimates behind it, with the streams that the simulation gives it."""
    return policy.explain_choice(state, (rng or sp.Rng(0)).at(sp.rng.Purpose.CHOICE, state.rounds + 1))


def sparse(sparsity: Any) -> GraphLearner:
    """The paper's graph learner at a sparsity; "auto" chooses it online."""
    return SelfTunedGraph() if isinstance(sparsity, str) else SparseGraph(sparsity=sparsity)


def feedback(x: Any, z: Any = None, y: Any = None, age: Any = 0, arrived: Any = True, probability: Any = None) -> Any:
    """Feedback of a decision; rewards that are not given are 0, and outcomes that are not given are the rewards."""
    x = np.asarray(x, bool)
    z = np.asarray(np.zeros(x.shape) if z is None else z, float)
    y = z if y is None else np.asarray(y, float)
    ages, here = np.full(x.shape[:-1], age, np.int64), np.full(x.shape[:-1], arrived)
    return sp.Feedback(x, z, y, ages, here, probability)
