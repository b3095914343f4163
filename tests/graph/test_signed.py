"""Spill-over that hurts: the plain lasso against its optimality conditions and two other solvers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.constraints.search import top_arms
from spillover.graph import GRAPHS, InstrumentGraph, SelfTunedGraph, SparseGraph
from tests.graph.worlds import learn, played, random_model
from tests.properties import examples
from tests.reference import graph_reference as reference
from tests.sampling import often

BOUND = 0.95


def signed_violation(Z, Y, A, sparsity, allowed, bound=np.inf):
    """How far the worst entry is from its optimality condition, relative to G_jj."""
    G, C = reference.moments(Z, Y)
    worst = 0.0
    for i, row in enumerate(A):
        gradient = C[i] - G @ row
        used = row != 0
        hold = np.full(len(row), sparsity / 2)
        if np.abs(row).sum() >= bound - 1e-7 and used.any():  # the multiplier of the bound, from the entries in use
            hold += max(0.0, np.average((gradient * np.sign(row))[used] - sparsity / 2, weights=1 / np.diag(G)[used]))
        for j in np.flatnonzero(allowed[i] & (np.diag(G) > 0)):
            off = abs(gradient[j] - np.sign(row[j]) * hold[j]) if used[j] else max(0.0, abs(gradient[j]) - hold[j])
            worst = max(worst, off / G[j, j])
    return worst


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 7),
    rounds=st.integers(1, 30),
    sparsity=st.sampled_from([1e-5, 1e-3, 0.1, 1.0, 1e6]),
    acyclic=st.booleans(),
    noise=st.sampled_from([0.0, 0.3]),
)
@examples(30)
def test_optimal(seed, n, rounds, sparsity, acyclic, noise):
    A, F = random_model(seed, n, signed=True)
    Z, Y = played(seed, A, F, rounds, law="uniform", noise=noise)
    graph = learn(SparseGraph(sparsity=sparsity, signed=True), sp.Problem(n, 1, acyclic), Z, Y)
    allowed = reference.allowed_edges(n, acyclic)
    assert (graph.adjacency[~allowed] == 0).all()
    bound = np.inf if acyclic else BOUND
    assert (np.abs(graph.adjacency).sum(axis=1) <= bound + 1e-9).all()
    assert signed_violation(Z, Y, graph.adjacency, sparsity, allowed, bound) <= 1e-8
    np.testing.assert_allclose(graph.weights, reference.total_effects(graph.adjacency), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("sparsity", [1e-3, 0.1, 5.0])
@pytest.mark.parametrize("signed", [True, False])
def test_lasso_agrees(signed, sparsity):
    from sklearn.linear_model import Lasso

    n, rounds = 8, 60
    A, F = random_model(5, n, signed=signed)
    Z, Y = played(5, A, F, rounds, law="uniform", noise=0.1)
    graph = learn(SparseGraph(sparsity=sparsity, signed=signed), sp.Problem(n, 4, acyclic=True), Z, Y)
    assert (graph.adjacency < 0).any() == signed
    options = {"positive": not signed, "fit_intercept": False, "tol": 1e-14, "max_iter": 1_000_000}
    for i in range(n - 1):
        lasso = Lasso(alpha=sparsity / (2 * rounds), **options)
        lasso.fit(Y[:, i + 1 :], Y[:, i] - Z[:, i])
        np.testing.assert_allclose(graph.adjacency[i, i + 1 :], lasso.coef_, atol=1e-6)


@pytest.mark.parametrize("acyclic", [True, False])
def test_general_convex_solver_agrees(acyclic):
    import cvxpy as cp

    n, sparsity = 6, 0.5
    A, F = random_model(6, n, signed=True)
    Z, Y = played(6, 2 * A, F, 40, law="uniform", noise=0.1)
    graph = learn(SparseGraph(sparsity=sparsity, signed=True), sp.Problem(n, 3, acyclic), Z, Y)
    allowed = reference.allowed_edges(n, acyclic)
    variable = cp.Variable((n, n))
    constraints = [cp.multiply(variable, (~allowed).astype(float)) == 0]
    if not acyclic:
        constraints.append(cp.sum(cp.abs(variable), axis=1) <= BOUND)
    loss = cp.sum_squares(Y - Z - Y @ variable.T) + sparsity * cp.sum(cp.abs(variable))
    least = cp.Problem(cp.Minimize(loss), constraints).solve(solver="CLARABEL")
    ours = np.sum((Y - Z - Y @ graph.adjacency.T) ** 2) + sparsity * np.abs(graph.adjacency).sum()
    assert ours == pytest.approx(least, rel=1e-6)


def test_nothing_is_lost_where_all_helps():
    A, F = random_model(7, 6)
    A = np.triu(A, 1)
    Z, Y = played(7, A, F, 100)
    both = [learn(SparseGraph(signed=signed), sp.Problem(6, 2), Z, Y).adjacency for signed in (True, False)]
    np.testing.assert_allclose(both[0], both[1], atol=1e-7)


@pytest.mark.parametrize(
    "learner", [SparseGraph(signed=True), SelfTunedGraph(signed=True), InstrumentGraph(signed=True)]
)
def test_an_arm_that_does_harm_is_never_chosen(learner):
    A = np.zeros((3, 3))
    A[0, 2], A[1, 2] = -0.9, -0.8  # arm 2 is worth 1 - 1.7
    Z, Y = played(8, A, np.ones(3), 60)
    weights = learn(learner, sp.Problem(3, 3), Z, Y).weights
    np.testing.assert_allclose(weights, [1, 1, -0.7], atol=1e-3)
    assert top_arms(weights * np.array([0.1, 0.1, 5.0]), 3, sp.Rng(0)).tolist() == [True, True, False]
    assert top_arms(weights * np.array([0.1, 0.1, np.inf]), 3, sp.Rng(0)).tolist() == [True, True, False]


@pytest.mark.parametrize("graph", often(["sparse"], ["sparse", "payoff", "instrument", "adaptive"]))
def test_harmful_edges_in_a_run(graph):
    world = sp.SyntheticSEM(harmful=0.5, edge_density=0.2, weight_range=(0.5, 1.2), horizon=400, changes=())
    run, blind = (
        sp.simulate(sp.NDCSEM(graph=GRAPHS[graph](signed=signed)), world, 5, replications=30).final_regret
        for signed in (True, False)
    )
    assert run.mean() <= blind.mean() + 2 * (run - blind).std() / np.sqrt(30)
    without = sp.simulate(sp.NDCSEM(graph="none"), world, 5, replications=30).final_regret
    assert run.mean() < 0.8 * without.mean()
