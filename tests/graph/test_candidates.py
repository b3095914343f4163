"""The graph on candidate edges: the solution of the whole problem where it can be, and never n * n numbers."""

import numpy as np
import pytest
from scipy import sparse

import spillover as sp
from spillover.contracts import suited
from spillover.graph import CandidateGraph, DenseGraph, SparseGraph
from spillover.graph.learner import edges_of
from spillover.state import leaves, load_state, save_arrays, save_state
from spillover.testing import check_graph_learner
from tests.graph.worlds import learn, played, random_model
from tests.reference import graph_reference

N, BUDGET, ROUNDS = 12, 5, 150


def whole(**parameters):
    """A learner with room for every edge and every outcome."""
    return CandidateGraph(causes=N - 1, recent=ROUNDS, **parameters)


def history(seed, *, acyclic, signed=False, rounds=ROUNDS):
    A, F = random_model(seed, N, acyclic=acyclic, signed=signed)
    return played(seed, A, F, rounds, law="beta")


def excess(seed, learner, acyclic, sparsity, signed=False):
    """How far the objective is above that of the solution on all edges, relative to a graph without edges."""
    Z, Y = history(seed, acyclic=acyclic, signed=signed)
    problem, penalty = sp.Problem(N, BUDGET, acyclic), graph_reference.penalties(N, sparsity)
    found = learn(learner, problem, Z, Y).adjacency
    best = learn(SparseGraph(sparsity=sparsity, signed=signed), problem, Z, Y).adjacency
    ours, theirs, empty = (graph_reference.objective(Z, Y, A, penalty) for A in (found, best, np.zeros((N, N))))
    return (ours - theirs) / empty


@pytest.mark.parametrize("acyclic", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_solution_on_all_edges_where_all_have_room(seed, acyclic):
    assert abs(excess(seed, whole(), acyclic, 1e-3)) < 5e-3


@pytest.mark.parametrize("acyclic", [True, False])
def test_edges_of_either_sign(acyclic):
    check_graph_learner(CandidateGraph(signed=True))
    Z, Y = history(3, acyclic=acyclic, signed=True)
    found = learn(whole(signed=True), sp.Problem(N, BUDGET, acyclic), Z, Y).adjacency
    best = learn(SparseGraph(signed=True), sp.Problem(N, BUDGET, acyclic), Z, Y).adjacency
    assert found.min() < -0.1
    np.testing.assert_allclose(found, best, atol=0.02)


@pytest.mark.parametrize("acyclic", [True, False])
def test_pushed_weights_are_those_of_the_edges(acyclic):
    Z, Y = history(1, acyclic=acyclic, rounds=400)
    graph = learn(CandidateGraph(causes=4), sp.Problem(N, BUDGET, acyclic), Z, Y)
    assert (graph.adjacency > 0).sum(axis=-1).max() <= 4
    np.testing.assert_allclose(graph.weights, graph_reference.total_effects(graph.adjacency), rtol=1e-10)


def test_edges_are_those_of_the_adjacency():
    Z, Y = history(2, acyclic=True)
    learner = CandidateGraph()
    graph = learn(learner, sp.Problem(N, BUDGET, True), Z, Y)
    np.testing.assert_array_equal(edges_of(graph).toarray(), graph.adjacency)
    batch = learner.init(sp.Problem(N, BUDGET, True), (2, 3))
    assert edges_of(batch).shape == (2, 3, N, N)
    dense = learn(DenseGraph(), sp.Problem(N, BUDGET, True), Z, Y)
    np.testing.assert_array_equal(edges_of(dense).toarray(), dense.adjacency)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense mask", "sparse mask"])
def test_required_and_forbidden_edges(form):
    Z, Y = history(4, acyclic=True)
    problem = sp.Problem(N, BUDGET, True)
    free = learn(whole(), problem, Z, Y).adjacency
    i, j = np.unravel_index(free.argmax(), free.shape)
    mask = np.zeros((N, N), bool)
    mask[i, j] = True
    without = learn(whole(forbidden=form(mask)), problem, Z, Y)
    assert without.adjacency[i, j] == 0
    fixed = learn(whole(required=form(mask), sparsity=5.0), problem, Z, Y)
    penalised = learn(whole(sparsity=5.0), problem, Z, Y)
    assert fixed.adjacency[i, j] > penalised.adjacency[i, j]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense mask", "sparse mask"])
def test_masks_that_cannot_be(form):
    upper = np.triu(np.ones((3, 3), bool), 1)
    problem = sp.Problem(3, 1, True)
    with pytest.raises(ValueError, match=r"required\[1, 0\] = True.*i < j"):
        CandidateGraph(required=form(upper.T)).init(problem)
    with pytest.raises(ValueError, match=r"required\[0, 1\].*forbidden"):
        CandidateGraph(required=form(upper), forbidden=form(upper)).init(problem)
    with pytest.raises(ValueError, match=r"shape of required = \(2, 2\): must be \(3, 3\)"):
        CandidateGraph(required=form(np.ones((2, 2), bool))).init(problem)


@pytest.mark.parametrize("parameters", [{"causes": 0}, {"recent": 0}, {"sparsity": -1.0}, {"row_bound": 1.0}])
def test_parameters_are_checked(parameters):
    name = next(iter(parameters))
    with pytest.raises(ValueError, match=f"^{name} = "):
        CandidateGraph(**parameters)


def test_memory_grows_with_the_arms_not_with_their_square():
    sizes = {}
    for n in (4_000, 8_000):
        state = suited(sp.NDCSEM(), sp.Problem(n, 50)).init(sp.Problem(n, 50), sp.Rng(0))
        sizes[n] = [leaf.size for leaf in leaves(state).values()]
        assert max(sizes[n]) < n * n / 4
    assert sum(sizes[8_000]) < 2.1 * sum(sizes[4_000])


def test_a_policy_chooses_candidates_for_many_arms():
    few, many = sp.Problem(500, 5), sp.Problem(501, 5)
    policy = sp.NDCSEM(graph=SparseGraph(sparsity=0.01, signed=True))
    assert suited(policy, few) is policy
    assert suited(policy, many) == sp.NDCSEM(graph=CandidateGraph(sparsity=0.01, signed=True))
    assert suited(sp.NDCSEM(graph="dense"), many) == sp.NDCSEM(graph=DenseGraph())


def test_twenty_thousand_arms_learn_their_edges():
    """Arm j + 1 affects arm j by 0.5 for every even j; 500 of these pairs are played at random."""
    n, learner = 20_000, sp.Learner(sp.NDCSEM(), sp.Problem(20_000, 100, True))
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, z = np.zeros(n, bool), np.zeros(n)
        x[rng.integers(0, 500, 50) * 2 + 1] = True
        z[x] = rng.uniform(0.5, 1.0, x.sum())
        y = z.copy()
        y[:-1:2] += 0.5 * z[1::2]
        learner.report(learner.play(x), z, y)
    edges = edges_of(learner.state.graph)
    effect, cause = edges.coords
    strong = edges.data > 0.1
    right = (cause == effect + 1) & (effect % 2 == 0)
    assert strong.sum() > 300
    assert right[strong].mean() > 0.5
    assert learner.choose().sum() == 100


def test_a_saved_graph_that_points_outside_is_refused(tmp_path):
    learner = CandidateGraph()
    Z, Y = history(1, acyclic=True, rounds=20)
    graph, like = learn(learner, sp.Problem(N, BUDGET, True), Z, Y), learner.init(sp.Problem(N, BUDGET, True))
    save_state(tmp_path / "graph.json", graph)
    np.testing.assert_array_equal(load_state(tmp_path / "graph.json", like).adjacency, graph.adjacency)
    for name, value, top in (("cause", N, N - 1), ("following", N * N, N * 9 - 1)):
        damaged = leaves(graph) | {name: np.full_like(leaves(graph)[name], value)}
        save_arrays(tmp_path / "damaged.json", damaged)
        with pytest.raises(ValueError, match=f"{name} = .*must be from -1 to {top}"):
            load_state(tmp_path / "damaged.json", like)
