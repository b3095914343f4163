"""Worlds of the user's own: orders, names, cycles and errors."""

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import spillover as sp
from spillover.constraints import Costs, Exclusive
from spillover.constraints.search import Infeasible
from spillover.rng import Purpose, Rng
from spillover.testing import check_environment
from tests.reference.constraints_reference import feasible_sets

CHAIN = pd.DataFrame(  # rain -> grass -> cow: columns are causes
    [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.8, 0.0]],
    index=["rain", "grass", "cow"],
    columns=["rain", "grass", "cow"],
)
MEANS = pd.Series({"rain": 0.9, "grass": 0.2, "cow": 0.4})
GAIN = pd.Series({"rain": 2.0, "grass": 1.0, "cow": 0.5})


def drawn(**settings):
    return sp.FixedSEM(**settings).draw(Rng(0))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_arms_may_come_in_any_order(order):
    names = [CHAIN.index[i] for i in order]
    frame = CHAIN.loc[names, names]
    environment = sp.FixedSEM(adjacency=frame, means=MEANS, gain=GAIN, budget=1)
    assert environment.arms == ("cow", "grass", "rain")  # effects first
    world = environment.draw(Rng(0))
    assert world.arms == environment.arms
    assert world.means(1).tolist() == [0.4, 0.2, 0.9]
    assert world.gain.tolist() == [0.5, 1.0, 2.0]
    assert world.adjacency(1).tolist() == [[0, 0.8, 0], [0, 0, 0.5], [0, 0, 0]]
    np.testing.assert_allclose(world.weights(1), [0.5, 1.8, 2 * (1 + 0.5 * 1.8)])


def test_rows_of_a_frame_may_stand_in_another_order_than_its_columns():
    shuffled = CHAIN.loc[["cow", "rain", "grass"]]
    assert sp.FixedSEM(adjacency=shuffled, means=MEANS, budget=1).arms == ("cow", "grass", "rain")


def test_periods_of_a_frame_are_matched_by_name():
    means = pd.DataFrame({"cow": [0.1, 0.2], "rain": [0.3, 0.4], "grass": [0.5, 0.6]})
    world = drawn(adjacency=CHAIN, means=means, budget=2, changes=(50,))
    assert world.means(49).tolist() == [0.1, 0.5, 0.3]
    assert world.means(50).tolist() == [0.2, 0.6, 0.4]


def test_arrays_go_by_position():
    environment = sp.FixedSEM(adjacency=CHAIN.to_numpy(), means=[0.9, 0.2, 0.4], gain=[2.0, 1.0, 0.5], budget=1)
    assert environment.order == (2, 1, 0)
    assert environment.arms == ("3", "2", "1")
    assert environment.draw(Rng(0)).gain.tolist() == [0.5, 1.0, 2.0]


def test_what_is_in_order_already_stays():
    a = [[0, 0.5, 0], [0, 0, 0], [0, 0, 0]]
    assert sp.FixedSEM(adjacency=a, means=[0.1, 0.2, 0.3], budget=1).order == (0, 1, 2)


def test_a_topological_order_is_found_for_any_graph():
    generator = np.random.default_rng(0)
    for _ in range(50):
        n = int(generator.integers(2, 9))
        hidden = generator.permutation(n)
        a = np.triu(generator.random((n, n)) * (generator.random((n, n)) < 0.4), 1)[np.ix_(hidden, hidden)]
        environment = sp.FixedSEM(adjacency=a, means=generator.random(n), budget=1)
        world = environment.draw(Rng(0))
        order = list(environment.order)
        assert sorted(order) == list(range(n))
        assert not np.tril(world.adjacency(1)).any()
        assert (world.adjacency(1) == a[np.ix_(order, order)]).all()


def test_the_order_changes_nothing_but_places():
    environment = sp.FixedSEM(adjacency=CHAIN, means=MEANS, gain=GAIN, budget=2)
    world = environment.draw(Rng(0))
    a, x = CHAIN.to_numpy(), np.array([True, False, True])
    payoff = np.linalg.solve(np.eye(3) - a, GAIN.to_numpy() * MEANS.to_numpy() * x).sum()
    np.testing.assert_allclose(world.expected(1, x[list(environment.order)]), payoff, rtol=1e-12)


def test_every_learner_meets_the_same_world():
    environment = sp.FixedSEM(adjacency=CHAIN, means=MEANS, budget=1, smooth=False)
    rng = Rng(0, np.arange(6).reshape(2, 3))
    world = environment.draw(rng.at(Purpose.WORLD), (2, 3))
    assert world.adjacency(1).shape == (2, 3, 3, 3)
    assert (world.means(1) == drawn(adjacency=CHAIN, means=MEANS, budget=1).means(1)).all()
    rewards = world.play(1, np.ones((2, 3, 3), bool), rng.at(Purpose.WORLD, 1)).z
    assert len(np.unique(rewards.reshape(6, 3), axis=0)) > 1


def test_a_cycle_is_named_from_cause_to_effect():
    loop = CHAIN.copy()
    loop.loc["rain", "cow"] = 0.3  # cows make rain
    with pytest.raises(ValueError, match="must be acyclic, or set acyclic=False") as caught:
        sp.FixedSEM(adjacency=loop, means=MEANS, budget=1)
    shown = str(caught.value).split("the cycle ")[1].split(":")[0].split(" -> ")
    assert shown[0] == shown[-1]
    assert len(shown) == 4
    for cause, effect in pairwise(shown):
        assert loop.to_numpy()[loop.index.get_loc(effect), loop.columns.get_loc(cause)] > 0


def test_a_cycle_whose_spill_over_dies_out_is_a_world():
    world = drawn(adjacency=[[0, 0.5], [0.5, 0]], means=[0.3, 0.6], budget=1, acyclic=False)
    np.testing.assert_allclose(world.weights(1), [2.0, 2.0])
    assert not world.problem.acyclic
    np.testing.assert_allclose(world.expected(1, np.array([False, True])), 1.2)


def test_without_an_order_the_arms_stay_where_they_are():
    environment = sp.FixedSEM(adjacency=CHAIN, means=MEANS, budget=1, acyclic=False)
    assert environment.arms == ("rain", "grass", "cow")


def test_the_example_is_figure_1_of_the_paper():
    environment = sp.environments.example_graph(weight=0.3, mean=0.6, budget=1, horizon=70)
    a = np.asarray(environment.adjacency)
    edges = {(int(effect) + 1, int(cause) + 1) for effect, cause in np.argwhere(a)}
    assert edges == {(2, 1), (2, 3), (3, 1), (2, 4), (4, 3)}  # A[2,1], A[2,3], A[3,1], A[2,4], A[4,3]
    assert (a[a > 0] == 0.3).all()
    assert environment.arms == ("2", "4", "3", "1")
    world = environment.draw(Rng(0))
    assert world.horizon == 70
    assert world.problem.budget == 1
    assert (world.means(1) == 0.6).all()
    # arm 1 reaches arm 2 at first hand, by 3, and by 3 and 4; arm 3 at first hand and by 4
    np.testing.assert_allclose(world.weights(1), [1, 1.3, 1 + 0.3 * 1.3 + 0.3, 1 + 0.3 + 0.3 * (1 + 0.3 * 1.3 + 0.3)])


def bad(**changes):
    given: dict[str, Any] = {"adjacency": [[0, 0.5], [0, 0]], "means": [0.3, 0.6], "budget": 1}
    return lambda: sp.FixedSEM(**(given | changes))


NAMED = pd.DataFrame([[0, 0.5], [0, 0]], index=["a", "b"], columns=["a", "b"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            bad(adjacency=NAMED.rename(index={"b": "c"})),
            r"labels of adjacency = .*'c'.*: must be the same arms in rows and columns, each once",
        ),
        (bad(adjacency=NAMED.set_axis(["a", "a"]).set_axis(["a", "a"], axis=1)), "labels of adjacency = .*each once"),
        (
            bad(adjacency=NAMED, means=pd.Series({"a": 0.1, "c": 0.2})),
            r"labels of means = \['a', 'c'\]: must be the arms \['a', 'b'\]",
        ),
        (
            bad(adjacency=NAMED, gain=pd.Series({"a": 1.0})),
            r"labels of gain = \['a'\]: must be the arms \['a', 'b'\]",
        ),
    ],
)
def test_labels_that_do_not_fit_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


SPARSE: dict[str, Any] = {"means": [0.9, 0.2, 0.4], "gain": [2.0, 1.0, 0.5], "budget": 1, "horizon": 20}


@pytest.mark.parametrize("kind", ["coo_array", "csr_array", "csc_matrix", "lil_array"])
def test_a_sparse_adjacency_is_that_of_the_matrix(kind):
    sparse = getattr(scipy.sparse, kind)(CHAIN.to_numpy())
    ours, theirs = (sp.FixedSEM(adjacency=a, **SPARSE) for a in (sparse, CHAIN.to_numpy()))
    assert ours.order == theirs.order
    assert ours.draw(Rng(0)).adjacency(1).tolist() == theirs.draw(Rng(0)).adjacency(1).tolist()


def many_arms(n: int = 2_500) -> Any:
    """Two chains of causes with shuffled arms, far above what a matrix is kept for."""
    order = np.random.default_rng(1).permutation(n)
    effect, cause = order[:-2], order[2:]
    return scipy.sparse.coo_array((np.full(n - 2, 0.5), (effect, cause)), shape=(n, n))


def test_many_arms_keep_lists_of_edges():
    given = many_arms()
    n = given.shape[0]
    environment = sp.FixedSEM(adjacency=given, means=np.linspace(0.1, 0.9, n), budget=20, horizon=5)
    world: Any = environment.draw(Rng(0), (2,))
    order = list(environment.order)
    assert world.graphs.size == 0
    a = given.toarray()[np.ix_(order, order)]
    np.testing.assert_array_equal(world.edges(1).todense()[1], a)
    np.testing.assert_allclose(world.weights(1)[0], np.linalg.solve((np.eye(n) - a).T, np.ones(n)), rtol=1e-9)
    assert sp.simulate(sp.NDCSEM(), environment, 1).final_regret.shape == (1,)


def test_many_arms_must_have_no_cycle():
    with pytest.raises(ValueError, match="acyclic = False: must be True with more than 2,000 arms"):
        sp.FixedSEM(adjacency=many_arms(), means=np.full(2_500, 0.5), budget=2, acyclic=False)


def test_a_sparse_adjacency_is_checked():
    for weight, message in ((-0.5, "finite numbers >= 0"), (np.nan, "finite numbers >= 0")):
        bad = scipy.sparse.coo_array(([weight], ([0], [1])), shape=(3, 3))
        with pytest.raises(ValueError, match=message):
            sp.FixedSEM(adjacency=bad, **SPARSE)
    with pytest.raises(ValueError, match=r"self-loops of adjacency = .'2'.: must be none"):
        sp.FixedSEM(adjacency=scipy.sparse.coo_array(([0.5], ([1], [1])), shape=(3, 3)), **SPARSE)
    with pytest.raises(ValueError, match="shape of adjacency"):
        sp.FixedSEM(adjacency=scipy.sparse.coo_array((3, 4)), **SPARSE)


# --- Regret against the best feasible set ---------------------------------------------------------------------------


CONSTRAINTS = (Exclusive([0, 1]), Costs([1, 2, 1, 2, 1], limit=3))
FREE = sp.SyntheticSEM(n_arms=5, budget=3, horizon=30, changes=(10, 20))


def test_the_best_set_is_the_best_feasible_one_in_every_period():
    rng = sp.Rng(1, np.arange(4))
    world = sp.environments.ConstrainedSEM(environment=FREE, constraints=CONSTRAINTS).draw(rng.at(Purpose.WORLD), (4,))
    sets = np.array(feasible_sets(CONSTRAINTS, 5, 3))
    for t in (1, 9, 10, 25):
        values = world.expected(t, np.broadcast_to(sets[:, None], (len(sets), 4, 5)))
        np.testing.assert_allclose(world.expected(t, world.best(t)), values.max(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(world.matches(t, world.best(t)), world.best(t).sum(axis=-1))
    assert world.best(5) is world.best(6)


def test_a_constrained_oracle_has_no_regret_and_a_constrained_policy_some():
    environment = sp.environments.ConstrainedSEM(environment=FREE, constraints=CONSTRAINTS)
    best = sp.simulate(sp.policies.Oracle(), environment, replications=3)
    assert (best.regret == 0).all()
    assert (best.optimality_ratio == 1).all()
    run = sp.simulate(sp.Constrained(policy=sp.NDCSEM(), constraints=CONSTRAINTS), environment, 2, replications=3)
    assert (np.diff(run.regret) >= -1e-12).all()
    assert run.final_regret.min() > 0


def test_an_impossible_world_is_refused():
    with pytest.raises(Infeasible):
        sp.environments.ConstrainedSEM(
            environment=FREE, constraints=(sp.constraints.Include([0, 1]), *CONSTRAINTS)
        ).draw(sp.Rng(0))


# --- One drawn world for every replication --------------------------------------------------------------------------


FAMILY = sp.SyntheticSEM(n_arms=5, budget=2, horizon=30, changes=(12,), law="beta")


def test_it_keeps_the_contract_of_environments():
    check_environment(sp.environments.Instance(seed=3, of=FAMILY))


def test_every_replication_meets_the_world_of_that_seed():
    one = FAMILY.draw(sp.Rng(3).at(Purpose.WORLD))
    drawn = sp.environments.Instance(seed=3, of=FAMILY).draw(sp.Rng(99, np.arange(4)).at(Purpose.WORLD), (4,))
    for t in (1, 20):
        np.testing.assert_array_equal(drawn.means(t), np.broadcast_to(one.means(t), (4, 5)))
        np.testing.assert_array_equal(drawn.adjacency(t), np.broadcast_to(one.adjacency(t), (4, 5, 5)))


def test_rewards_still_differ():
    run = sp.simulate(sp.Uniform(), sp.environments.Instance(of=FAMILY), 0, replications=3)
    assert len(np.unique(run.payoff.sum(axis=-1))) == 3
