"""The graph whose sparsity is chosen by rounds that are held out, by squared errors and as the paper does it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.graph import (
    AUTO_GRID,
    HELD_OUT_EVERY,
    HELD_OUT_KEPT,
    HELD_OUT_PHASE,
    PaperTunedGraph,
    SelfTunedGraph,
    largest_near_best,
)
from tests.graph.random_rounds import BOUND, random_rounds
from tests.graph.worlds import played, random_model
from tests.reference import graph_reference as reference


def held_out(rounds):
    """Which of so many rounds are held out."""
    return np.arange(1, rounds + 1) % HELD_OUT_EVERY == HELD_OUT_PHASE


def learn_tuned(Z, Y, order, acyclic=True, arrived=None):
    """Absorb the rounds in the given order, each under its own round of play (from 1); solve at the end."""
    n = Y.shape[1]
    learner = SelfTunedGraph()
    graph = learner.init(sp.Problem(n, 2, acyclic))
    for k in order:
        weight = 1.0 if arrived is None else float(arrived[k])
        graph = learner.absorb(graph, Z[k], Y[k], np.array(weight), np.array(k + 1))
        graph = learner.solve(graph)
    return graph


def split(Z, Y, seen):
    held = held_out(len(Z))
    return Z[seen & ~held], Y[seen & ~held], Z[seen & held], Y[seen & held]


@pytest.mark.parametrize("acyclic", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_auto_fits_and_errors_from_the_history(acyclic, noise):
    n, rounds = 5, 70
    Z, Y = random_rounds(21, n, rounds, 2, "beta", acyclic, noise)
    order = np.random.default_rng(0).permutation(rounds)[:50]  # the others never arrive
    seen = np.zeros(rounds, bool)
    seen[order] = True
    graph = learn_tuned(Z, Y, order, acyclic)
    Z_fit, Y_fit, Z_held, Y_held = split(Z, Y, seen)
    assert 0 < len(Z_held) < len(Z_fit)
    assert graph.held_rounds == len(Z_held)
    np.testing.assert_allclose(graph.fits.gram, np.broadcast_to(Y_fit.T @ Y_fit, graph.fits.gram.shape), rtol=1e-12)
    allowed, bound = reference.allowed_edges(n, acyclic), np.inf if acyclic else BOUND
    errors = []
    for k, sparsity in enumerate(AUTO_GRID):
        A = graph.fits.adjacency[k]
        penalty = reference.penalties(n, sparsity)
        violation, infeasible = reference.worst_conditions(Z_fit, Y_fit, A, penalty, allowed, bound)
        assert violation <= 1e-8
        assert infeasible <= 1e-9
        errors.append(reference.held_out_error(Z_held, Y_held, A))
    assert graph.choice == reference.choose_sparsity(errors)
    np.testing.assert_array_equal(graph.adjacency, graph.fits.adjacency[graph.choice])
    np.testing.assert_allclose(graph.weights, reference.total_effects(graph.adjacency), rtol=1e-9)


def test_auto_takes_the_smallest_while_nothing_held_out_has_arrived():
    Z, Y = random_rounds(22, 5, 40, 2, "beta")
    fitted = np.flatnonzero(~held_out(40))
    graph = learn_tuned(Z, Y, fitted)
    assert graph.choice == 0
    assert graph.held_rounds == 0
    np.testing.assert_array_equal(graph.adjacency, graph.fits.adjacency[0])


def test_auto_recovers_an_error_free_graph_and_prunes_a_noisy_one():
    Z, Y = random_rounds(24, 5, 200, 3, "beta")
    graph = learn_tuned(Z, Y, np.arange(200))
    held = held_out(200)
    assert reference.held_out_error(Z[held], Y[held], graph.adjacency) < 1e-6
    Z, Y = random_rounds(25, 5, 200, 3, "beta", noise=0.5, edges=1)
    graph = learn_tuned(Z, Y, np.arange(200))
    assert 1e-5 < AUTO_GRID[graph.choice] < 1e6
    assert (graph.adjacency > 0).sum() < (graph.fits.adjacency[0] > 0).sum()


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=15))
def test_rule_of_choice(errors):
    assert largest_near_best(np.array(errors), np.array(0.0)) == reference.choose_sparsity(errors)


def test_rule_of_choice_by_hand():
    assert largest_near_best(np.array([2.0, 1.0, 1.009, 1.011, 5.0]), np.array(0.0)) == 2
    assert largest_near_best(np.array([1.0, 2.0, 3.0]), np.array(0.0)) == 0
    assert largest_near_best(np.array([3.0, 2.0, 1.0]), np.array(0.0)) == 2
    assert largest_near_best(np.array([1.0, 1.001, 1.002]), np.array(0.0)) == 0  # nothing tells them apart
    assert largest_near_best(np.zeros(4), np.array(0.0)) == 0
    # an exact fit: what rounding leaves may be below 0, and says nothing
    assert largest_near_best(np.array([-1e-11, 1e-11, 5.0]), np.array(1e3)) == 1


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
    out = held_out(80)
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
    np.testing.assert_array_equal(kept, (np.flatnonzero(held_out(count)) + 1)[-HELD_OUT_KEPT:])
