"""The graph as an estimator of scikit-learn: from own rewards and outcomes to who spills over onto whom."""

from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts.hyperparameters import hyperparameters, with_values
from spillover.graph import GraphLearner, PayoffWeights, as_graph_learner
from spillover.graph.core import learned
from spillover.graph.learner import explained
from spillover.policies.switching_state import around
from spillover.registry import needed_for
from spillover.tabular import in_columns, names_of
from spillover.types import Array, Problem

with needed_for("spillover.interop.sklearn", "sklearn"):
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data

OF_ERRORS = ("adjacency_interval_", "weights_interval_", "edge_probability_")


class SpilloverGraph(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Estimates y = A y + F z + intercept from rounds: rows of X are own rewards z, those of y the outcomes.

    y has a column for each column of X, the same arms: if both tables have names, it is put into the order of X. With a
    single column (or as a vector) y is the payoff, the sum over all arms. That identifies the total effects `weights_`
    only, not the graph: `adjacency_` is then NaN.

    graph: the name of a graph learner, such as "k-class", "sparse" or "instrument" (`spillover.graph.GRAPHS` has all),
        or the learner itself, such as `KClassGraph(forbidden=mask)`.
    sparsity, signed: of the learner, if they are not None; a learner without such a parameter refuses it.
        signed: edges may be negative.
    acyclic: the arms are in an order in which every cause comes after its effects.
    fit_intercept: whether outcomes may differ from 0 where all own rewards are 0.

    Attributes: adjacency_ (n, n), the effect of arm j on arm i; weights_ (n,), the effect of one unit of each arm's own
    reward on the sum of all outcomes; gain_ (n,), that on its own equation; intercept_ (n,), the outcomes without any
    reward; adjacency_interval_ (n, n, 2) and weights_interval_ (n, 2), 95% credible intervals, and edge_probability_,
    for learners that estimate errors ("k-class", "adaptive"); n_features_in_, feature_names_in_.

    >>> rng = np.random.default_rng(0)
    >>> Z = rng.uniform(size=(200, 3))
    >>> truth = np.array([[0, 0.5, 0], [0, 0, 0.4], [0, 0, 0]])
    >>> Y = Z @ np.linalg.inv(np.eye(3) - truth).T + rng.normal(scale=0.01, size=(200, 3))
    >>> model = SpilloverGraph().fit(Z, Y)
    >>> model.adjacency_.round(1) + 0.0
    array([[0. , 0.5, 0. ],
           [0. , 0. , 0.4],
           [0. , 0. , 0. ]])
    >>> model.weights_.round(1), round(model.score(Z, Y), 2)
    (array([1. , 1.5, 1.6]), 1.0)
    """

    def __init__(
        self,
        graph: str | GraphLearner = "k-class",
        *,
        sparsity: float | None = None,
        signed: bool | None = None,
        acyclic: bool = False,
        fit_intercept: bool = True,
    ) -> None:
        self.graph = graph
        self.sparsity = sparsity
        self.signed = signed
        self.acyclic = acyclic
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any) -> "SpilloverGraph":
        """Estimate the graph from the rounds; rows may have any order, unless the learner looks for changes."""
        like = self.outcomes_like(X, y)
        rewards, outcomes = validate_data(self, X, like, multi_output=True, y_numeric=True, dtype=np.float64)
        rewards, outcomes = np.ascontiguousarray(rewards), np.ascontiguousarray(outcomes, float)
        n = rewards.shape[1]
        self.total_only_ = outcomes.ndim == 1 or outcomes.shape[1] == 1 < n
        if not self.total_only_:
            accepted = f"{n}, one for each column of X, or one with the payoff"
            validate.require(outcomes.shape[1] == n, "columns of y", outcomes.shape[1], accepted)
        every_arm = total_in_first(outcomes, n) if self.total_only_ else outcomes
        centre = np.mean if self.fit_intercept else zero
        middle_z, middle_y = centre(rewards, axis=0), centre(every_arm, axis=0)
        baseline = self.estimate(rewards - middle_z, every_arm - middle_y)
        self.intercept_: Array = baseline + middle_y - self.spread(middle_z)
        return self

    def estimate(self, z: Array, y: Array) -> Array:
        """Let the graph learner absorb all rounds, and take its estimates; returns the outcomes that it adds to z."""
        problem = problem_of(z, acyclic=self.acyclic, baseline=not self.fit_intercept)
        learner = self.learner().for_problem(problem)
        graph = learned(learner, learner.init(problem), z, y)
        for name in OF_ERRORS:
            self.__dict__.pop(name, None)  # of an earlier fit
        self.adjacency_ = explained(graph)
        self.weights_, self.gain_ = np.array(graph.weights), np.array(learner.gain(graph))
        known = self.total_only_ or not np.isnan(self.adjacency_.sum())
        accepted = "a learner that estimates the graph, as y has an outcome for each arm"
        validate.require(known, "graph", self.graph, accepted)
        errors = learner.errors(graph)
        if errors is None or self.total_only_:
            return np.zeros(z.shape[1])
        self.adjacency_interval_ = around(self.adjacency_, errors.edge_variance)
        self.weights_interval_ = around(self.weights_, errors.weights_variance)
        self.edge_probability_ = errors.edge_probability
        return np.array(errors.baseline)

    def learner(self) -> GraphLearner:
        """The graph learner with the parameters that were given."""
        if self.total_only_:
            return PayoffWeights(signed=bool(self.signed))
        found = as_graph_learner(self.graph)
        asked = {"sparsity": self.sparsity, "signed": self.signed}
        given = {name: value for name, value in asked.items() if value is not None}
        has = {parameter.name for parameter in hyperparameters(type(found))}
        for name, value in given.items():
            validate.require(name in has, name, value, f"None, as {type(found).__name__} has no such parameter")
        changed: GraphLearner = with_values(found, given)
        return changed

    def outcomes_like(self, X: Any, y: Any) -> Any:
        """The outcomes, with columns in the order of those of X if both have names."""
        arms, outcomes = names_of(X), names_of(y)
        if arms is None or outcomes is None or len(outcomes) == 1 < len(arms):
            return y
        return in_columns("y", y, arms)

    def spread(self, z: Array) -> Array:
        """The outcomes that rewards lead to: (I - A)^-1 F z, for each row."""
        if self.total_only_:
            return total_in_first(z @ self.weights_, len(self.weights_))
        return solved(self.adjacency_, self.gain_ * z)

    def predict(self, X: Any) -> Array:
        """The expected outcomes of rounds with these own rewards; the payoff if y was the payoff."""
        check_is_fitted(self)
        rewards = validate_data(self, X, reset=False, dtype=np.float64)
        found = np.asarray(self.spread(rewards) + self.intercept_, float)
        return found[:, 0] if self.total_only_ else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination, R^2, averaged over the arms."""
        return float(super().score(X, self.outcomes_like(X, y), sample_weight))

    def to_networkx(self, *, threshold: float = 0.0) -> Any:
        """The graph as a `networkx.DiGraph`; see `spillover.tabular.to_networkx`.

        threshold: edges up to this size are left out; posterior means of "k-class" are never quite 0.
        """
        from spillover.tabular import to_networkx

        check_is_fitted(self)
        accepted = "fitted to an outcome for each arm: the payoff does not identify the graph"
        validate.require(not self.total_only_, "y", "the payoff", accepted)
        return to_networkx(self.adjacency_, self.__dict__.get("feature_names_in_"), threshold=threshold)


def zero(values: Array, axis: int) -> Array:
    """No centre."""
    return np.zeros(values.shape[1])


def total_in_first(total: Array, n: int) -> Array:
    """The payoff as outcomes of n arms: all of it in the first column."""
    flat = np.asarray(total)
    column = flat.reshape(*flat.shape, 1) if flat.ndim < 2 else flat
    return np.concatenate([column, np.zeros((*column.shape[:-1], n - 1))], axis=-1)


def problem_of(z: Array, *, acyclic: bool, baseline: bool) -> Problem:
    """The problem that has such rewards."""
    n = z.shape[1]
    low, high = min(float(z.min()), 0.0), max(float(z.max()), 0.0)
    reward_range = (low, high) if low < high else (0.0, 1.0)
    return Problem(n, n, acyclic, reward_range, baseline=baseline)


def solved(adjacency: Any, own: Array) -> Array:
    """(I - A)^-1 times what each equation has of its own, along the last axis."""
    n = own.shape[-1]
    if isinstance(adjacency, np.ndarray):
        return np.asarray(np.linalg.solve(np.eye(n) - adjacency, own[..., None])[..., 0], float)
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import spsolve

    found = spsolve((eye_array(n) - adjacency).tocsc(), own.reshape(-1, n).T)
    return np.asarray(found, float).reshape(n, -1).T.reshape(own.shape)
