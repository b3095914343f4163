"""The graph problem: optimality conditions from the whole history, and enumeration; test_signed.py has the lasso."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import spillover as sp
from spillover.graph import SparseGraph
from tests.graph.random_rounds import BOUND, random_rounds
from tests.properties import examples
from tests.reference import graph_reference as reference
from tests.sampling import few_or_many

LAMBDAS = (0.0, 1e-5, 1e-3, 0.1, 1.0, 10.0, 1e6)
FAR = 1e-3  # edges weigh 0.2 and more: a tolerance beyond this would not tell one graph from another


def binding_rounds(seed, n, rounds, rank):
    """Rounds of a given rank whose overall rewards explain each other so well that rows would exceed the bound."""
    rng = np.random.default_rng(seed)
    Y = rng.uniform(size=(rounds, rank)) @ rng.uniform(size=(rank, n))
    return np.zeros((rounds, n)), Y


def closeness(Y, allowed):
    """How far conditions that hold to 1e-8 relative to G_jj let an adjacency stray; infinite if it is not unique."""
    G, worst = Y.T @ Y, 0.0
    for row in allowed:
        if row.any():
            values = np.linalg.eigvalsh(G[np.ix_(row, row)])  # ascending
            condition = values[-1] / values[0] if values[0] > 1e-15 * values[-1] else np.inf
            worst = max(worst, 1e-8 * np.sqrt(row.sum()) * condition)
    return worst


def assert_close(A, other, Y, allowed, least=0.0):
    """As close as the conditions make them, where that is close enough to tell two graphs apart."""
    tolerance = max(least, closeness(Y, allowed))
    assert tolerance <= FAR
    np.testing.assert_allclose(A, other, atol=tolerance)


def learn(learner, problem, Z, Y, weight=None):
    """Absorb and solve round by round; yields the graph after each."""
    graph = learner.init(problem)
    weight = np.ones(len(Z)) if weight is None else weight
    for t in range(len(Z)):
        graph = learner.absorb(graph, Z[t], Y[t], np.array(weight[t]), np.array(t + 1))
        graph = learner.solve(graph)
        yield graph


def check_graph(graph, Z, Y, penalty, allowed, bound=np.inf, weight=None):
    """Optimal to 1e-8 relative to G_jj, feasible, with the multipliers and weights that belong to it."""
    A = graph.adjacency
    violation, infeasibility = reference.worst_conditions(Z, Y, A, penalty, allowed, bound, weight)
    assert violation <= 1e-8
    assert infeasibility <= 1e-9
    np.testing.assert_allclose(graph.weights, reference.total_effects(A), rtol=1e-9)
    if np.isfinite(bound):
        assert np.abs(np.linalg.eigvals(A)).max() <= bound + 1e-9
        G, C = reference.moments(Z, Y, weight)
        for i in range(len(A)):
            found = reference.row_conditions(G, C[i], A[i], penalty[i], allowed[i], bound).multiplier
            assert graph.pressure[i] == pytest.approx(found, abs=1e-7 * np.diag(G).max())


def learn_and_check(Z, Y, acyclic, sparsity, weight=None, required=None, forbidden=None, every=1):
    n = Y.shape[1]
    learner = SparseGraph(sparsity=sparsity, row_bound=BOUND, required=required, forbidden=forbidden)
    allowed = reference.allowed_edges(n, acyclic, forbidden)
    penalty = reference.penalties(n, sparsity, required)
    bound = np.inf if acyclic else BOUND
    graph = None
    for t, graph in enumerate(learn(learner, sp.Problem(n, 1, acyclic), Z, Y, weight), start=1):
        if t % every == 0 or t == len(Z):
            seen = None if weight is None else weight[:t]
            check_graph(graph, Z[:t], Y[:t], penalty, allowed, bound, seen)
    return graph


PLAYED = {  # arms, rounds, budget, noise, and after how many rounds the graph is checked
    "one arm": (1, 22, 1, 0.0, 1),
    "two arms": (2, 24, 1, 0.0, 1),
    "few arms": (6, 24, 2, 0.0, 1),
    "ten arms": (10, 40, 4, 0.0, 1),
    "many arms": (30, 80, 5, 0.0, 6),
    "many rounds": (10, 20_000, 4, 0.0, 4000),
    "many rounds with noise": (10, 20_000, 4, 0.2, 4000),
    "a hundred arms": (100, 220, 16, 0.0, 20),
}
LONG = {"a hundred arms": pytest.mark.long}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in PLAYED])
@pytest.mark.parametrize("acyclic", [True, False])
@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_optimal_after_every_round(law, acyclic, name):
    n, rounds, budget, noise, every = PLAYED[name]
    for sparsity in LAMBDAS if rounds < 50 else (1e-3,):
        Z, Y = random_rounds(n, n, rounds, budget, law, acyclic, noise, 2 * n if n > 10 else None)
        learn_and_check(Z, Y, acyclic, sparsity, every=every)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 7),
    rounds=st.integers(1, 12),
    sparsity=st.sampled_from(LAMBDAS),
    acyclic=st.booleans(),
    law=st.sampled_from(["bernoulli", "beta"]),
    scale=st.sampled_from([1.0, 1e-3, 2000.0]),
)
@example(seed=2, n=2, rounds=1, sparsity=0.0, acyclic=False, law="bernoulli", scale=1e-3)  # rows have a column each
@examples(30)
def test_objective_is_that_of_enumeration(seed, n, rounds, sparsity, acyclic, law, scale):
    Z, Y = random_rounds(seed, n, rounds, max(1, n // 2), law, acyclic)
    Z, Y = scale * Z, scale * Y
    allowed, penalty = reference.allowed_edges(n, acyclic), reference.penalties(n, sparsity)
    bound = np.inf if acyclic else BOUND
    *_, graph = learn(SparseGraph(sparsity=sparsity, row_bound=BOUND), sp.Problem(n, 1, acyclic), Z, Y)
    check_graph(graph, Z, Y, penalty, allowed, bound)
    slow = reference.solve_by_enumeration(Z, Y, penalty, allowed, bound)
    found = reference.objective(Z, Y, graph.adjacency, penalty)
    least = reference.objective(Z, Y, slow, penalty)
    assert found == pytest.approx(least, rel=1e-8, abs=1e-9 * (Y**2).sum())
    if closeness(Y, allowed) <= FAR:
        assert_close(graph.adjacency, slow, Y, allowed)


@given(seed=st.integers(0, 2**32 - 1), acyclic=st.booleans(), sparsity=st.sampled_from(LAMBDAS), noise=st.booleans())
@examples(12)
def test_known_edges_and_weighted_rounds(seed, acyclic, sparsity, noise):
    n, rounds = 6, 14
    rng = np.random.default_rng(seed)
    Z, Y = random_rounds(seed, n, rounds, 3, "beta", acyclic, noise=0.1 if noise and sparsity else 0.0)
    weight = rng.uniform(0.01, 5.0, rounds)
    weight[rng.integers(rounds)] = 0.0
    forbidden = rng.uniform(size=(n, n)) < 0.3
    required = np.zeros((n, n), bool)
    if not noise:
        required = (rng.uniform(size=(n, n)) < 0.3) & reference.allowed_edges(n, acyclic, forbidden)
    graph = learn_and_check(Z, Y, acyclic, sparsity, weight, required, forbidden)
    assert (graph.adjacency[forbidden] == 0).all()
    allowed, penalty = reference.allowed_edges(n, acyclic, forbidden), reference.penalties(n, sparsity, required)
    slow = reference.solve_by_enumeration(Z, Y, penalty, allowed, np.inf if acyclic else BOUND, weight)
    least = reference.objective(Z, Y, slow, penalty, weight)
    assert reference.objective(Z, Y, graph.adjacency, penalty, weight) == pytest.approx(least, rel=1e-8, abs=1e-8)


def test_a_weight_counts_as_so_many_rounds():
    Z, Y = random_rounds(4, 6, 8, 3, "beta")
    learner, problem = SparseGraph(sparsity=0.1), sp.Problem(6, 3)
    *_, weighted = learn(learner, problem, Z, Y, np.full(8, 3.0))
    *_, repeated = learn(learner, problem, np.repeat(Z, 3, axis=0), np.repeat(Y, 3, axis=0))
    np.testing.assert_allclose(weighted.gram, repeated.gram, rtol=1e-13)
    assert_close(weighted.adjacency, repeated.adjacency, Y, reference.allowed_edges(6, True))


def test_a_weight_of_zero_changes_nothing():
    learner, problem = SparseGraph(sparsity=1e-3), sp.Problem(5, 2)
    Z, Y = random_rounds(5, 5, 6, 2, "beta")
    *_, graph = learn(learner, problem, Z, Y)
    before = sp.state.copy_state(graph)
    after = learner.solve(learner.absorb(graph, np.ones(5), np.ones(5), np.array(0.0), np.array(7)))
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("acyclic", [True, False])
@pytest.mark.parametrize("sparsity", [0.0, 1e-3, 1.0])
def test_collinear_columns_and_duplicated_rounds(acyclic, sparsity):
    for seed in range(20):
        Z, Y = random_rounds(seed, 6, 10, 3, "beta" if seed % 2 else "bernoulli", acyclic)
        Y[:, 5], Z[:, 5] = Y[:, 4], Z[:, 4]  # two arms that cannot be told apart
        Y[:, 3] = 0.5 * Y[:, 4] + 0.25 * Y[:, 2]  # one that is a mixture of others
        Z, Y = np.repeat(Z, 3, axis=0), np.repeat(Y, 3, axis=0)
        graph = learn_and_check(Z, Y, acyclic, sparsity)
        if seed < 5:
            penalty, allowed = reference.penalties(6, sparsity), reference.allowed_edges(6, acyclic)
            slow = reference.solve_by_enumeration(Z, Y, penalty, allowed, np.inf if acyclic else BOUND)
            least = reference.objective(Z, Y, slow, penalty)
            assert reference.objective(Z, Y, graph.adjacency, penalty) == pytest.approx(least, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("problems", few_or_many(60, 170))
@pytest.mark.parametrize("sparsity", [0.0, 1e-3, 0.1])
def test_rank_deficient_rows_at_their_bound(sparsity, problems):
    binding = 0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        Z, Y = binding_rounds(seed, n, int(rng.integers(1, n + 3)), int(rng.integers(1, n)))
        if seed % 3 == 0:
            Y = np.round(4 * Y)  # exact ties and duplicates
        *_, graph = learn(SparseGraph(sparsity=sparsity, row_bound=BOUND), sp.Problem(n, 1, False), Z, Y)
        check_graph(graph, Z, Y, reference.penalties(n, sparsity), reference.allowed_edges(n, False), BOUND)
        sums = graph.adjacency.sum(axis=1)
        assert (sums <= BOUND + 1e-9).all()
        binding += bool((graph.pressure > 0).any())
    assert binding >= 0.85 * problems  # that is what these instances are for


def test_rewards_below_zero():
    """Noise makes outcomes negative; a flat direction may then point inside a >= 0, where no wall stops a step."""
    Y = np.array(
        [[1.2, -0.1, -0.1, 0.3, 0.3, -1.0], [0.6, 1.2, -1.2, -0.9, -0.7, -0.1], [-0.3, -1.1, 0.6, 0.4, -1.9, 2.0]]
    )
    Z = Y.copy()
    Z[:, 0] = 0.0  # only the first row has anything to explain
    assert learn_and_check(Z, Y, True, 0.0).adjacency.max() < 1e6
    for seed in range(60):
        Z, Y = random_rounds(seed, 8 + seed % 3, 9, 3, "bernoulli", True, noise=0.5)
        learn_and_check(Z, Y, True, 1e-3)
        learn_and_check(Z, Y, False, 0.0)
        learn_and_check(Z, Y, True, 0.0)
        learn_and_check(Z, Y, True, 1.0, required=reference.allowed_edges(Y.shape[1], True))


@pytest.mark.parametrize("n", [3, 4, 7, 20])
@pytest.mark.parametrize("acyclic", [True, False])
def test_rows_with_many_or_few_causes_are_solved_exactly_in_every_round(n, acyclic):
    Z, Y = random_rounds(n, n, 150, max(1, n // 2), "beta", acyclic, noise=0.4)
    problem, allowed = sp.Problem(n, 1, acyclic), reference.allowed_edges(n, acyclic)
    bound, causes = np.inf if acyclic else BOUND, set()
    for t, graph in enumerate(learn(SparseGraph(sparsity=1e-3), problem, Z, Y), 1):
        causes |= set((graph.adjacency > 0).sum(axis=-1).tolist())
        check_graph(graph, Z[:t], Y[:t], reference.penalties(n, 1e-3), allowed, bound)
    assert {0, 1, 2} <= causes or not acyclic
    assert max(causes) > 8 or n < 20


@pytest.mark.parametrize("acyclic", [True, False])
def test_a_row_is_zero_from_twice_its_largest_correlation_on(acyclic):
    n = 6
    Z, Y = random_rounds(3, n, 25, 3, "beta", acyclic)
    _, C = reference.moments(Z, Y)
    correlation = np.where(reference.allowed_edges(n, acyclic), C, 0.0)
    largest = 2 * correlation.max(axis=1)
    for i in np.flatnonzero(largest > 0):
        for factor, empty in ((1 + 1e-9, True), (1 - 1e-6, False)):
            *_, graph = learn(SparseGraph(sparsity=factor * largest[i]), sp.Problem(n, 3, acyclic), Z, Y)
            assert (graph.adjacency[i].max() == 0) == empty


def test_direction_of_an_edge():
    # arm 2 acts on arm 0 with 0.5: playing arm 2 yields y_0 = 0.5, so A[0, 2] = 0.5 and the weight of arm 2 is 1.5
    learner, problem = SparseGraph(sparsity=0.0), sp.Problem(3, 1)
    *_, graph = learn(learner, problem, np.array([[0.0, 0, 1]]), np.array([[0.5, 0, 1]]))
    np.testing.assert_allclose(graph.adjacency, np.array([[0.0, 0, 0.5], [0, 0, 0], [0, 0, 0]]))
    np.testing.assert_allclose(graph.weights, [1, 1, 1.5])


def test_a_batch_holds_its_rows():
    n, rounds = 6, 12
    data = [random_rounds(seed, n, rounds, 2, "beta") for seed in range(3)]
    sparsity = np.array([1e-5, 0.1, 3.0])
    learner = SparseGraph(sparsity=sparsity)
    graph = learner.init(sp.Problem(n, 2), (3,))
    for t in range(rounds):
        z, y = (np.stack([rows[k][t] for rows in data]) for k in (0, 1))
        graph = learner.solve(learner.absorb(graph, z, y, np.array([1.0, 1.0, float(t % 2)]), np.full(3, t + 1)))
    for k, (Z, Y) in enumerate(data):
        weight = np.ones(rounds) if k < 2 else np.arange(rounds) % 2.0
        *_, alone = learn(SparseGraph(sparsity=float(sparsity[k])), sp.Problem(n, 2), Z, Y, weight)
        for field, both in zip(alone._fields, zip(alone, graph, strict=True), strict=True):
            np.testing.assert_array_equal(both[0], both[1][k], err_msg=field)


@pytest.mark.long
@pytest.mark.parametrize("acyclic", [True, False])
def test_optimal_on_many_random_problems(acyclic):
    for seed in range(4000):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([2, 3, 5, 8, 12, 20]))
        Z, Y = random_rounds(
            seed, n, int(rng.integers(1, 3 * n)), int(rng.integers(1, n + 1)), ("bernoulli", "beta")[seed % 2], acyclic
        )
        scale = 10.0 ** rng.integers(-3, 4)
        learn_and_check(scale * Z, scale * Y, acyclic, float(rng.choice(LAMBDAS)))


def test_a_live_learner_solves_columns_that_are_the_same_without_a_warning() -> None:
    """The compiled form of a learner divides only by numbers above 0; warnings are errors here."""
    learner = sp.Learner(sp.NDCSEM(graph=SparseGraph(sparsity=0.0)), sp.Problem(4, 2, acyclic=False))
    for t in range(6):
        x = np.arange(4) % 2 == t % 2
        learner.report(learner.play(x), x * 1.0, np.full(4, 1.0 + t % 2))
    assert np.isfinite(learner.state.graph.adjacency).all()
