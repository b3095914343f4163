"""Many rounds at once: every learner of the graph learns what it learns from one after the other."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.graph import (
    AdaptiveGraph,
    InstrumentGraph,
    NoGraph,
    PaperTunedGraph,
    PayoffWeights,
    SelfTunedGraph,
    SparseGraph,
)
from spillover.graph.core import learned
from spillover.state import leaves
from tests.graph.worlds import played, random_model

N = 6
LEARNERS: dict[str, Any] = {  # without "adaptive": when a graph is solved for, the candidates' doubts are raised
    "sparse": SparseGraph(),
    "tuned": SelfTunedGraph(),
    "tuned as in the paper": PaperTunedGraph(),
    "none": NoGraph(),
    "payoff": PayoffWeights(),
    "instrument": InstrumentGraph(),
}


def history(noise, *, changes, rounds=120):
    """Rounds in worlds one after the other, of which some do not arrive."""
    models = [random_model(seed, N) for seed in range(changes + 1)]
    parts = [played(seed, A, F, rounds, noise=noise) for seed, (A, F) in enumerate(models)]
    Z, Y = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Z, Y, np.random.default_rng(5).uniform(size=len(Z)) < 0.9, np.arange(1, len(Z) + 1)


def one_by_one(learner, graph, rounds):
    for z, y, arrived, played_at in zip(*rounds, strict=True):
        graph = learner.absorb(graph, z, y, np.array(arrived), np.array(played_at))
    return graph


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("changes", [0, 2])
@pytest.mark.parametrize("name", LEARNERS)
def test_at_once_as_one_by_one(name, changes, noise):
    learner, problem, rounds = LEARNERS[name], sp.Problem(N, 3, acyclic=False), history(noise, changes=changes)
    rounds = *rounds[:2], np.ones(len(rounds[2])), rounds[3]
    expected = learner.solve(one_by_one(learner, learner.init(problem), rounds))
    graph = learned(learner, learner.init(problem), *rounds[:2])
    wanted = leaves(expected)
    for field, leaf in leaves(graph).items():
        np.testing.assert_allclose(leaf, wanted[field], rtol=1e-6, atol=1e-9, err_msg=field)
        assert leaf.dtype == wanted[field].dtype, field


def test_the_round_that_gives_a_change_away_is_the_first_of_the_new_graph():
    learner, rounds = AdaptiveGraph(), history(0.0, changes=1)
    graph = one_by_one(learner, learner.init(sp.Problem(N, 3, acyclic=False)), rounds)
    arrived = rounds[2] & (rounds[3] >= graph.since)
    np.testing.assert_allclose(graph.sparse.gram, rounds[1][arrived].T @ rounds[1][arrived], rtol=1e-9)
    assert 120 < graph.since < 130
