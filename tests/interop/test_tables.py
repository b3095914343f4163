"""pandas, Polars and Arrow: every function that takes a table or a matrix takes all three, by name or not at all."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spillover as sp
from spillover.assessment import assess
from spillover.constraints import Costs
from spillover.environments import example_graph
from spillover.experiments.compute import describe
from spillover.history import read_history
from spillover.interop.sklearn import SpilloverGraph
from spillover.recommendation.text import overview
from spillover.tabular import in_columns, names_of, to_networkx

ARMS = ["north", "south", "west"]
each_library = pytest.mark.parametrize(
    "table", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)
each_column = pytest.mark.parametrize("column", [pd.Series, pl.Series, pa.array], ids=["pandas", "polars", "arrow"])
A = np.array([[0, 0.5, 0], [0, 0, 0.25], [0, 0, 0]])
RANDOM = np.random.default_rng(1)
X = RANDOM.uniform(size=(40, 3)) < 0.6
Z = np.where(X, RANDOM.uniform(size=X.shape), 0.0)
Y = np.linalg.solve(np.eye(3) - A, Z.T).T
BACKWARDS = [2, 1, 0]


def named(values, names=ARMS, order=(0, 1, 2)):
    """Columns by name, in some order."""
    return {names[k]: np.asarray(values)[:, k] for k in order}


def labelled(table, values, rows, order=(0, 1, 2)):
    """A table whose rows have labels: an index of pandas, or a first column of texts."""
    columns = named(values)
    if table is pd.DataFrame:
        return pd.DataFrame(columns, index=rows).iloc[list(order)]
    return table({"arm": [rows[k] for k in order]} | {name: column[list(order)] for name, column in columns.items()})


def same_world(one, other):
    rng = sp.Rng(0)
    ours, theirs = one.draw(rng.at(sp.rng.Purpose.WORLD)), other.draw(rng.at(sp.rng.Purpose.WORLD))
    for name in ("graphs", "levels", "gain"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    outcomes = [w.play(2, np.array([True, True, False]), rng.at(sp.rng.Purpose.WORLD, 2)).y for w in (ours, theirs)]
    np.testing.assert_array_equal(*outcomes)


@each_library
def test_next_decision_check_and_read_history(table):
    wide: dict[str, Any] = {"week": [f"2026-W{k + 1:02}" for k in range(40)]}
    wide |= {f"promo.{arm}": X[:, k].astype(int) for k, arm in enumerate(ARMS)}
    wide |= {f"sales.{arm}": Y[:, k] for k, arm in enumerate(ARMS)}
    given = table(wide)
    history, plain = read_history(given), read_history(wide)
    assert history.arms == plain.arms == tuple(ARMS)
    np.testing.assert_array_equal(history.y, Y)
    assert str(overview(history, "table", "")) == str(overview(plain, "table", ""))
    assert sp.next_decision(given, budget=2).reasons.to_dict() == sp.next_decision(wide, budget=2).reasons.to_dict()


@each_library
def test_replay_puts_outcomes_into_the_order_of_decisions(table):
    problem = sp.Problem(n_arms=3, budget=3)
    plain = list(sp.replay(sp.NDCSEM(), problem, X, Z, Y, delay=2))[-1]
    x, z, y = table(named(X)), table(named(Z, order=BACKWARDS)), table(named(Y, order=(1, 2, 0)))
    found = list(sp.replay(sp.NDCSEM(), problem, x, z, y, delay=2))[-1]
    np.testing.assert_array_equal(found.adjacency, plain.adjacency)
    np.testing.assert_array_equal(found.score, plain.score)
    with pytest.raises(ValueError, match=r"columns of y = .*east.*: must be .*north"):
        sp.replay(sp.NDCSEM(), problem, x, z, table(named(Y, ["north", "south", "east"])))


@each_library
def test_replay_takes_a_table_of_context(table):
    problem = sp.Problem(n_arms=3, budget=3, context=1)
    context = np.random.default_rng(2).normal(size=(41, 1))
    plain = list(sp.replay(sp.SwitchingSEM(), problem, X, Z, Y, context=context))[-1]
    given = table({"price": context[:, 0]})
    found = list(sp.replay(sp.SwitchingSEM(), problem, X, Z, Y, context=given))[-1]
    np.testing.assert_array_equal(found.score, plain.score)


@each_library
def test_assess(table):
    plain = assess(X, Y, arms=ARMS, context=Z[:, :1], context_names=["price"])
    context = table({"price": Z[:, 0]})
    found = assess(table(named(X)), table(named(Y, order=BACKWARDS)), context=context)
    assert found.to_dict() == plain.to_dict()
    with pytest.raises(ValueError, match="columns of y"):
        assess(table(named(X)), table(named(Y, ["a", "b", "c"])))


@each_library
def test_fixed_worlds_are_matched_by_name(table):
    plain = sp.FixedSEM(
        adjacency=pd.DataFrame(A, ARMS, ARMS),
        means=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]],
        changes=(3,),
        budget=2,
        horizon=9,
    )
    means = table(named([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], order=BACKWARDS))
    for adjacency in (labelled(table, A, ARMS), labelled(table, A, ARMS, BACKWARDS), table(named(A))):
        world = sp.FixedSEM(adjacency=adjacency, means=means, changes=(3,), budget=2, horizon=9)
        assert world.names() == ARMS
        same_world(world, plain)
        same_world(copy.deepcopy(world), plain)
    with pytest.raises(ValueError, match="labels of adjacency"):
        sp.FixedSEM(adjacency=labelled(table, A, ["north", "south", "east"]), means=[0.1] * 3, budget=1)
    with pytest.raises(ValueError, match="labels of means"):
        sp.FixedSEM(adjacency=table(named(A)), means=table(named(np.ones((1, 3)), ["a", "b", "c"])), budget=1)
    described = describe(sp.FixedSEM(adjacency=labelled(table, A, ARMS), means=means, changes=(3,), budget=2))
    assert described["adjacency"]["columns"] == described["adjacency"]["index"] == ARMS


@each_library
def test_surroundings_of_fixed_worlds(table):
    context = np.random.default_rng(2).normal(size=(9, 2))
    effect = np.array([[0.1, 0.0], [0.2, -0.1], [0.0, 0.3]])
    shared: dict[str, Any] = {
        "adjacency": pd.DataFrame(A, ARMS, ARMS),
        "means": [0.1, 0.2, 0.3],
        "budget": 2,
        "horizon": 9,
    }
    plain = sp.FixedSEM(**shared, context=context, context_effect=effect, context_on_baseline=effect)
    rows = {"arm": ARMS[::-1]} if table is not pd.DataFrame else {}
    given = rows | {"price": effect[::-1, 1], "sun": effect[::-1, 0]}
    by_name = pd.DataFrame(given, index=ARMS[::-1]) if table is pd.DataFrame else table(given)
    weather = table({"sun": context[:, 0], "price": context[:, 1]})
    same_world(sp.FixedSEM(**shared, context=weather, context_effect=by_name, context_on_baseline=by_name), plain)
    with pytest.raises(ValueError, match="columns of context_effect"):
        sp.FixedSEM(**shared, context=table({"a": context[:, 0], "b": context[:, 1]}), context_effect=by_name)


@each_column
def test_fixed_worlds_take_columns(column):
    shared: dict[str, Any] = {"adjacency": A, "budget": 2, "horizon": 9}
    plain = sp.FixedSEM(**shared, means=[0.1, 0.2, 0.3], gain=[1, 2, 1], baseline=[0, 1, 0])
    numbers: list[list[float]] = [[0.1, 0.2, 0.3], [1, 2, 1], [0, 1, 0]]
    if column is pd.Series:  # its labels are the arms' names
        means, gain, baseline = (pd.Series(values[::-1], ["3", "2", "1"]) for values in numbers)
    else:
        means, gain, baseline = (column(values) for values in numbers)
    same_world(sp.FixedSEM(**shared, means=means, gain=gain, baseline=baseline), plain)


@each_library
def test_masks_of_edges_and_networks(table):
    mask = A > 0.3
    for given in (labelled(table, mask, ARMS), labelled(table, mask, ARMS, BACKWARDS), table(named(mask))):
        problem = sp.Problem(n_arms=3, budget=3)
        graph = sp.SparseGraph(forbidden=given).init(problem)
        np.testing.assert_array_equal(graph.penalty, sp.SparseGraph(forbidden=mask).init(problem).penalty)
    with pytest.raises(ValueError, match="rows of required"):
        sp.SparseGraph(required=labelled(table, mask, ["a", "b", "c"])).init(problem)
    network = to_networkx(labelled(table, A, ARMS, BACKWARDS))
    assert dict(network.edges) == {("south", "north"): {"weight": 0.5}, ("west", "south"): {"weight": 0.25}}


@each_library
def test_spillover_graph(table):
    plain = SpilloverGraph().fit(Z, Y)
    model = SpilloverGraph().fit(table(named(Z)), table(named(Y, order=BACKWARDS)))
    assert model.feature_names_in_.tolist() == ARMS
    np.testing.assert_array_equal(model.adjacency_, plain.adjacency_)
    np.testing.assert_array_equal(model.predict(table(named(Z))), plain.predict(Z))
    assert model.score(table(named(Z)), table(named(Y, order=BACKWARDS))) == plain.score(Z, Y)
    assert SpilloverGraph().fit(table(named(Z)), table({"total": Y.sum(axis=1)})).weights_.shape == (3,)
    with pytest.raises(ValueError, match="columns of y"):
        SpilloverGraph().fit(table(named(Z)), table(named(Y, ["a", "b", "c"])))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table(named(Z, order=BACKWARDS)))


@each_library
def test_many_learners_match_columns_by_name_or_refuse_them(table):
    problem = sp.Problem(n_arms=3, budget=2)
    x, z, y = X[:4] * [[1, 1, 0]], Z[:4] * [[1, 1, 0]], Y[:4]
    plain, by_name, nameless = (
        sp.Learners(sp.NDCSEM(), problem, seeds=range(4), arms=arms) for arms in (ARMS, ARMS, None)
    )
    available = np.array([[True, True, False]] * 4)
    np.testing.assert_array_equal(
        by_name.choose(available=table(named(available, order=BACKWARDS))), plain.choose(available=available)
    )
    plain.play(x=x)
    by_name.play(x=table(named(x, order=BACKWARDS)))
    plain.report(range(4), [1] * 4, z, y)
    by_name.report(range(4), [1] * 4, table(named(z, order=(1, 0, 2))), table(named(y, order=BACKWARDS)))
    np.testing.assert_array_equal(by_name.choose(), plain.choose())
    np.testing.assert_array_equal(by_name.state.graph.adjacency, plain.state.graph.adjacency)
    with pytest.raises(ValueError, match=r"x = .*: must be an array with the arms in their order"):
        nameless.play(x=table(named(x)))
    with pytest.raises(ValueError, match="columns of x"):
        by_name.play(x=table(named(x, ["a", "b", "c"])))


@each_column
def test_one_learner_takes_columns(column):
    learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2), arms=ARMS)
    plain = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2), arms=ARMS)
    series = (lambda values: pd.Series(values, ARMS)) if column is pd.Series else column
    chosen = learner.choose(series([True, True, False]))
    np.testing.assert_array_equal(chosen, plain.choose([True, True, False]))
    learner.play(series([1, 1, 0]))
    plain.play([1, 1, 0])
    learner.report(1, series([0.5, 1.0, 0.0]), series([1.0, 1.0, 0.0]))
    plain.report(1, [0.5, 1.0, 0.0], [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(learner.explain().score, plain.explain().score)


@each_library
def test_recorded_delays(table):
    record = np.array([[1, 0, 2], [0, 0, 1]])
    delay = sp.RecordedDelay(table(named(record, ["1", "2", "3"])))
    plain = sp.RecordedDelay(record)
    rng = sp.Rng(0, [0, 1])
    ours, theirs = (each.draw_rounds(np.array([1, 2, 3]), rng, (2,)) for each in (delay, plain))
    np.testing.assert_array_equal(ours, theirs)
    assert sp.simulate(sp.NDCSEM(), example_graph(horizon=3), delay, replications=2).regret.shape == (2, 3)


@each_column
def test_costs(column):
    costs = pd.Series([3.0, 1.0, 2.0], ARMS) if column is pd.Series else column([3.0, 1.0, 2.0])
    learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=3), constraints=[Costs(costs, limit=3)], arms=ARMS)
    assert learner.choose() @ [3.0, 1.0, 2.0] <= 3


def test_what_has_no_names_stays_as_it_is():
    array = np.ones((2, 2))
    assert in_columns("y", array, ["a", "b"]) is array
    assert names_of(pd.DataFrame(array)) is names_of(pd.Series([1.0])) is names_of(pl.Series([1.0])) is None
    np.testing.assert_array_equal(in_columns("y", pd.DataFrame(array), ["a", "b"]), array)
    with pytest.raises(ValueError, match=r"y\['b'\] = .*: must be numbers"):
        in_columns("y", pd.DataFrame({"a": [1.0], "b": ["one"]}), ["a", "b"])
    with pytest.raises(ValueError, match=r"labels of y = .*: must be at least one column, each once"):
        in_columns("y", pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), None)
