"""Estimators of scikit-learn as policies: a regression of the payoff on the set, and the set that it likes best."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover import validate
from spillover.interop.exchange import Arrival
from spillover.interop.seats import Seat, SeatedPolicy
from spillover.rng import Rng
from spillover.types import Array, BoolArray, Problem


def set_and_context(x: BoolArray, context: Any) -> Array:
    """One column of 0 and 1 for each arm, and one for each column of the context.

    >>> set_and_context(np.array([[True, False], [False, True]]), np.array([0.5]))
    array([[1. , 0. , 0.5],
           [0. , 1. , 0.5]])
    """
    columns = np.asarray(x, float)
    if context is None:
        return columns
    return np.hstack([columns, np.broadcast_to(context, (len(columns), len(context)))])


class Regressed:
    """An estimator, and the rounds that it has learned or will learn."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.features: list[Array] = []
        self.payoffs: list[float] = []
        self.learned = 0  # how many of these rounds the estimator knows


@dataclass(frozen=True, kw_only=True)
class EstimatorPolicy(SeatedPolicy):
    """Predicts the payoff of a set from features of it, and plays the set with the highest prediction.

    The set is grown arm by arm, each time by the one with the highest prediction, while that rises: exact for a linear
    estimator. With probability `explore`, and until the estimator knows `first` outcomes, it is a random set of
    `budget` arms instead.

    estimator: a regressor with `fit` and `predict`, of which each replication gets its own copy.
    features: called with sets, (m, n) of booleans, and the context of the round (None without); returns (m, d) numbers.
    every: how many new outcomes there must be before it is fitted again, to all rounds.
    incremental: call `partial_fit` with the new outcomes instead of `fit` with all of them.

    >>> import spillover as sp
    >>> from sklearn.linear_model import Ridge
    >>> policy = EstimatorPolicy(estimator=Ridge(), explore=0.1, every=10)
    >>> sp.simulate(policy, sp.SyntheticSEM(horizon=50, changes=()), 3, replications=2).regret.shape
    (2, 50)
    """

    estimator: Any
    features: Callable[[BoolArray, Any], Array] = set_and_context
    explore: float = 0.1
    first: int = 10
    every: int = 1
    incremental: bool = False

    def __post_init__(self) -> None:
        validate.number("explore", self.explore, "a probability, from 0 to 1", low=0, high=1)
        validate.whole("first", self.first, 1)
        validate.whole("every", self.every, 1)

    def new_agent(self, problem: Problem, seed: int) -> Regressed:
        return Regressed(copy.deepcopy(self.estimator))

    def tell(self, seat: Seat, arrival: Arrival) -> None:
        agent: Regressed = seat.agent
        agent.features.append(self.features(arrival["x"][None, :], arrival.get("context"))[0])
        agent.payoffs.append(float(arrival["y"].sum()))
        if len(agent.payoffs) >= max(self.first, agent.learned + self.every):
            self.fit(agent)

    def fit(self, agent: Regressed) -> None:
        """Let the estimator learn the rounds that it does not know."""
        start = agent.learned if self.incremental else 0
        fit = agent.estimator.partial_fit if self.incremental else agent.estimator.fit
        fit(np.array(agent.features[start:]), np.array(agent.payoffs[start:]))
        agent.learned = len(agent.payoffs)

    def decide(self, seat: Seat, played: int, context: Any, rng: Rng) -> BoolArray:
        n, budget = seat.problem.n_arms, seat.problem.budget
        if not seat.agent.learned or rng.uniform(1)[0] < self.explore:
            return np.asarray(rng.permutation(n) < budget)
        return self.best_set(seat.agent.estimator, n, budget, context)

    def best_set(self, estimator: Any, n: int, budget: int, context: Any) -> BoolArray:
        """The set, grown from nothing by the arm with the highest prediction."""
        x = np.zeros(n, np.bool_)
        value = float(estimator.predict(self.features(x[None, :], context))[0])
        for _ in range(budget):
            larger = np.eye(n, dtype=np.bool_)[~x] | x
            predicted = np.asarray(estimator.predict(self.features(larger, context)), float)
            if not len(predicted) or predicted.max() <= value:
                break
            x, value = larger[int(predicted.argmax())], float(predicted.max())
        return x
