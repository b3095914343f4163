"""lambda as the paper's Covid-19 study chooses it: by the mean absolute error on held-out rounds."""

import numpy as np
import pytest

import spillover as sp
from spillover.graph import AUTO_GRID, HELD_OUT_EVERY, HELD_OUT_KEPT, HELD_OUT_PHASE, PaperTunedGraph, SelfTunedGraph
from tests.graph.worlds import played, random_model

N = 5


def rounds(seed: int, count: int, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    adjacency, gain = random_model(seed, N)
    return played(seed, adjacency, gain, count, noise=noise)


def learn(Z, Y, order, first=1):
    learner = PaperTunedGraph()
    graph = learner.init(sp.Problem(N, 2, acyclic=False))
    for k in order:
        graph = learner.absorb(graph, Z[k], Y[k], np.array(1.0), np.array(k + first))
    return learner.solve(graph)


def held(count: int) -> np.ndarray:
    return np.array([t % HELD_OUT_EVERY == HELD_OUT_PHASE for t in range(1, count + 1)])


def paper_error(Z, Y, adjacency) -> float:
    """eps(t) of the paper, one round and one region after the other."""
    total = 0.0
    for z, y in zip(Z, Y, strict=True):
        for i in range(N):
            total += abs(y[i] - sum(adjacency[i, j] * y[j] for j in range(N)) - z[i])
    return total / (N * len(Z))


@pytest.mark.parametrize("seed", range(4))
def test_the_lowest_error_of_the_paper_is_chosen(seed) -> None:
    Z, Y = rounds(seed, 80)
    graph = learn(Z, Y, range(80))
    out = held(80)
    errors = [paper_error(Z[out], Y[out], adjacency) for adjacency in graph.tuned.fits.adjacency]
    assert graph.choice == np.argmin(errors)
    np.testing.assert_array_equal(graph.adjacency, graph.tuned.fits.adjacency[graph.choice])


def test_the_two_rules_can_differ() -> None:
    """One round with a large error decides the squared error, many with small errors the absolute one."""
    differ = 0
    for seed in range(8):
        Z, Y = rounds(seed, 80)
        Y[14] += 5.0  # round 15 is held out
        squared = SelfTunedGraph()
        other = squared.init(sp.Problem(N, 2, acyclic=False))
        for k in range(80):
            other = squared.absorb(other, Z[k], Y[k], np.array(1.0), np.array(k + 1))
        differ += int(squared.solve(other).choice != learn(Z, Y, range(80)).choice)
    assert differ >= 4


def test_the_smallest_is_used_while_nothing_is_held_out() -> None:
    Z, Y = rounds(1, 4)
    graph = learn(Z, Y, range(4))
    assert graph.choice == 0
    assert not graph.held_at.any()


def test_the_order_of_arrival_does_not_matter() -> None:
    count = HELD_OUT_EVERY * (HELD_OUT_KEPT + 3)  # more than is kept
    Z, Y = rounds(2, count)
    straight, shuffled = (
        learn(Z, Y, order) for order in (np.arange(count), np.random.default_rng(0).permutation(count))
    )
    for name in ("held_at", "held_rest", "held_overall", "choice"):
        np.testing.assert_array_equal(getattr(straight, name), getattr(shuffled, name), err_msg=name)
    kept = np.sort(straight.held_at)
    np.testing.assert_array_equal(kept, (np.flatnonzero(held(count)) + 1)[-HELD_OUT_KEPT:])


def test_by_name() -> None:
    policy = sp.NDCSEM(graph="paper-tuned")
    assert isinstance(policy.graph, PaperTunedGraph)
    assert len(AUTO_GRID) == 12
    with pytest.raises(ValueError, match="row_bound = 2"):
        PaperTunedGraph(row_bound=2)
