"""What many tests share."""

from typing import Any

import spillover as sp
from spillover.graph import GraphLearner, SelfTunedGraph, SparseGraph


def explained(policy: Any, state: Any, rng: sp.Rng | None = None) -> sp.Explanation:
    """The next decision of a policy and the estimates behind it, with the streams that the simulation gives it."""
    return policy.explain_choice(state, (rng or sp.Rng(0)).at(sp.rng.Purpose.CHOICE, state.rounds + 1))


def sparse(sparsity: Any) -> GraphLearner:
    """The paper's graph learner at a sparsity; "auto" chooses it online."""
    return SelfTunedGraph() if isinstance(sparsity, str) else SparseGraph(sparsity=sparsity)
