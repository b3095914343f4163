"""The graph as an estimator: scikit-learn's own checks, and what its tools do with it."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import spillover as sp
from spillover.graph import GRAPHS, KClassGraph, SparseGraph
from spillover.interop.sklearn import SpilloverGraph

TRUTH = np.array([[0, 0.5, 0, 0], [0, 0, 0.3, 0], [0, 0, 0, 0], [0.2, 0, 0, 0]])
SHIFT = np.array([1.0, 2.0, 0.0, 3.0])
EXPECTED_FAILURES = {
    "check_regressor_multioutput": "y has 5 columns for 10 of X: outcomes are those of the same arms, or their sum"
}


def rounds(count=300, noise=0.02, seed=0):
    random = np.random.default_rng(seed)
    z = random.uniform(size=(count, 4)) * (random.uniform(size=(count, 4)) < 0.6)
    own = z + SHIFT + noise * random.normal(size=z.shape)
    return z, np.linalg.solve(np.eye(4) - TRUTH, own.T).T


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([SpilloverGraph()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("graph", [name for name in GRAPHS.names() if name not in ("payoff", "candidates")])
def test_scikit_learn_accepts_it_with_every_graph_learner(graph):
    for estimator, check in estimator_checks_generator(SpilloverGraph(graph), mark=None):
        if check.func.__name__ not in EXPECTED_FAILURES | {"check_array_api_input": ""}:
            check(estimator)


@pytest.mark.parametrize("graph", ["k-class", "sparse", "instrument", "adaptive", "self-tuned", "candidates"])
def test_it_finds_the_graph(graph):
    z, y = rounds()
    model = SpilloverGraph(graph).fit(z, y)
    np.testing.assert_allclose(model.adjacency_, TRUTH, atol=0.06)
    total = np.linalg.inv(np.eye(4) - TRUTH)
    np.testing.assert_allclose(model.weights_, total.sum(axis=0), atol=0.12)
    np.testing.assert_allclose(model.intercept_, total @ SHIFT, atol=0.15)
    np.testing.assert_allclose(model.predict(z), y, atol=0.25)
    assert model.score(z, y) > 0.98


def test_it_is_the_graph_learner_on_centred_rounds():
    z, y = rounds(60)
    learner = SparseGraph(sparsity=0.01)
    centred_z, centred_y = z - z.mean(axis=0), y - y.mean(axis=0)
    problem = sp.Problem(4, 4, reward_range=(centred_z.min(), centred_z.max()))
    graph = learner.init(problem)
    for row in range(60):
        graph = learner.absorb(graph, centred_z[row], centred_y[row], np.array(1.0), np.array(row + 1))
    graph = learner.solve(graph)
    model = SpilloverGraph("sparse", sparsity=0.01).fit(z, y)
    np.testing.assert_allclose(model.adjacency_, graph.adjacency, atol=1e-9)
    np.testing.assert_allclose(model.weights_, graph.weights, atol=1e-9)
    np.testing.assert_allclose(model.predict(z).mean(axis=0), y.mean(axis=0))


@pytest.mark.long
def test_intervals_cover_the_truth():
    """Of edges that exist: 95% intervals of the k-class estimate, over 200 samples."""
    inside, of_weights = [], []
    for seed in range(200):
        model = SpilloverGraph().fit(*rounds(200, noise=0.1, seed=seed))
        low, high = np.moveaxis(model.adjacency_interval_, -1, 0)
        inside.append(((low <= TRUTH) & (high >= TRUTH))[TRUTH > 0])
        low, high = model.weights_interval_.T
        total = np.linalg.inv(np.eye(4) - TRUTH).sum(axis=0)
        of_weights.append((low <= total) & (total <= high))
    print("edges", np.mean(inside), "weights", np.mean(of_weights))
    assert np.mean(inside) >= 0.9
    assert np.mean(of_weights) >= 0.9


def drawn_world(seed, arms, count, noise):
    """Rounds of a random world with cycles, and its total effects: an edge in ten, of sizes as the prior expects."""
    random = np.random.default_rng(seed)
    adjacency: Any = np.eye(arms)
    while np.abs(np.linalg.eigvals(adjacency)).max() >= 0.8:
        exists = (random.uniform(size=(arms, arms)) < 0.1) & ~np.eye(arms, dtype=bool)
        adjacency = exists * np.abs(0.5 * random.normal(size=(arms, arms)))
    reach = np.linalg.inv(np.eye(arms) - adjacency)
    z = random.uniform(size=(count, arms))
    return z, (z + noise * random.normal(size=z.shape)) @ reach.T, reach.sum(axis=0)


def coverage(worlds, arms, count, noise):
    """The share of total effects in their intervals, and how many times too wide these are for normal errors."""
    inside, widths, errors = [], [], []
    for seed in range(worlds):
        z, y, total = drawn_world(seed, arms, count, noise)
        model = SpilloverGraph().fit(z, y)
        low, high = model.weights_interval_.T
        inside.append((low <= total) & (total <= high))
        widths.append(high - low)
        errors.append(model.weights_ - total)
    return np.mean(inside), np.sqrt(np.mean(np.square(widths)) / np.mean(np.square(errors))) / (2 * 1.96)


def test_intervals_of_total_effects_are_neither_too_narrow_nor_too_wide():
    share, wide = coverage(60, 5, 100, 0.3)
    assert 0.92 <= share <= 0.985
    assert 0.8 < wide < 1.4


def test_intervals_do_not_depend_on_the_unit():
    z, y, _ = drawn_world(0, 4, 60, 0.3)
    found = [SpilloverGraph().fit(unit * z, unit * y).weights_interval_ for unit in (2.0**-40, 1.0, 2.0**40)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    np.testing.assert_allclose(found[2], found[1], rtol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("arms", "count", "noise"), [(5, 50, 0.3), (5, 400, 0.3), (10, 200, 0.3), (5, 100, 1.0)])
def test_intervals_of_total_effects_cover_the_truth(arms, count, noise):
    share, wide = coverage(300, arms, count, noise)
    print(arms, count, noise, "coverage", share, "times too wide", wide)
    assert 0.93 <= share <= 0.98
    assert wide < 1.4


def test_intervals_surround_the_estimates_and_belong_to_the_last_fit():
    z, y = rounds()
    model = SpilloverGraph().fit(z, y)
    low, high = np.moveaxis(model.adjacency_interval_, -1, 0)
    assert ((low <= model.adjacency_) & (model.adjacency_ <= high)).all()
    assert (high - low)[TRUTH > 0].min() > 0
    assert (model.edge_probability_[TRUTH > 0] > 0.99).all()
    model.set_params(graph="sparse").fit(z, y)
    assert "adjacency_interval_" not in vars(model)


def test_the_payoff_tells_the_weights_alone():
    z, y = rounds(noise=0.0)
    for payoff in (y.sum(axis=1), y.sum(axis=1, keepdims=True)):
        model = SpilloverGraph().fit(z, payoff)
        total = np.linalg.inv(np.eye(4) - TRUTH).sum(axis=0)
        np.testing.assert_allclose(model.weights_, total, atol=1e-6)
        assert np.isnan(model.adjacency_).all()
        np.testing.assert_allclose(model.predict(z), y.sum(axis=1), atol=1e-5)
        assert model.score(z, payoff) > 0.999999
        with pytest.raises(ValueError, match="the payoff does not identify the graph"):
            model.to_networkx()


def test_without_an_intercept_the_learner_estimates_the_baseline():
    z, y = rounds()
    model = SpilloverGraph(fit_intercept=False).fit(z, y)
    np.testing.assert_allclose(model.intercept_, np.linalg.solve(np.eye(4) - TRUTH, SHIFT), atol=0.15)
    without = SpilloverGraph("sparse", fit_intercept=False).fit(z, y)
    assert not without.intercept_.any()


def test_clones_and_pickles():
    z, y = rounds()
    forbidden = np.eye(4, k=1, dtype=bool)
    model = SpilloverGraph(KClassGraph(forbidden=forbidden), signed=True).fit(z, y)
    assert model.adjacency_[0, 1] == 0.0
    again = clone(model).fit(z, y)
    np.testing.assert_array_equal(again.adjacency_, model.adjacency_)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(z), model.predict(z))
    with pytest.raises(NotFittedError):
        clone(model).predict(z)


def test_grid_search_and_cross_validation():
    z, y = rounds(80, noise=0.3)
    search = GridSearchCV(SpilloverGraph("sparse"), {"sparsity": [1e-3, 1.0, 1e3]}, cv=3).fit(z, y)
    scores = [cross_val_score(SpilloverGraph("sparse", sparsity=s), z, y, cv=3).mean() for s in (1e-3, 1.0, 1e3)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores)
    assert search.best_params_["sparsity"] < 1e3  # with that there are no edges
    assert search.best_score_ == max(scores)


def test_it_works_in_a_pipeline():
    z, y = rounds()
    pipeline = make_pipeline(FunctionTransformer(lambda x: x / 100), SpilloverGraph()).fit(100 * z, y)
    np.testing.assert_allclose(pipeline.predict(100 * z), SpilloverGraph().fit(z, y).predict(z))


@pytest.mark.parametrize(
    ("model", "columns", "message"),
    [
        (
            SpilloverGraph("k-class", sparsity=0.1),
            4,
            "sparsity = 0.1: must be None, as KClassGraph has no such parameter",
        ),
        (SpilloverGraph("payoff"), 4, "graph = 'payoff': must be a learner that estimates the graph"),
        (SpilloverGraph("sprase"), 4, "graph = 'sprase': must be"),
        (SpilloverGraph(), 3, "columns of y = 3: must be 4, one for each column of X, or one with the payoff"),
    ],
)
def test_mistakes_are_named(model, columns, message):
    z, y = rounds(20)
    with pytest.raises(ValueError, match=message):
        model.fit(z, y[:, :columns])
