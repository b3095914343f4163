"""Play agents and estimators of other libraries as policies: whatever answers an observation, or predicts a payoff.

Their memory is a Python object for each replication, instead of arrays. What an agent is shown and what it answers is
the same as in a Gymnasium environment.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spillover import validate
from spillover.constraints.search import top_arms
from spillover.contracts import Policy, Traits
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Feedback, IntArray, Problem

ACTIONS = ("set", "top")
Observation: TypeAlias = dict[str, Array]
Arrival: TypeAlias = dict[str, Any]  # of one round: round, x, z (if it is observed), y, context (if there is any)


def check_actions(actions: str) -> None:
    """Raise a ValueError unless it is a kind of action."""
    validate.require(actions in ACTIONS, "actions", actions, f"one of {', '.join(map(repr, ACTIONS))}")


def decision_of(action: Any, actions: str, problem: Problem, rng: Rng) -> BoolArray:
    """The decision that an action stands for.

    A set with more than `budget` arms is cut off after the first ones. Of scores, the highest positive ones are chosen.

    >>> problem = Problem(n_arms=4, budget=2)
    >>> decision_of([1, 0, 1, 1], "set", problem, Rng(0)).astype(int)
    array([1, 0, 1, 0])
    >>> decision_of([0.2, -0.5, 0.9, 0.4], "top", problem, Rng(0)).astype(int)
    array([0, 0, 1, 1])
    """
    n, budget = problem.n_arms, problem.budget
    if actions == "set":
        x = validate.decision("action", action, (n,))
        return x & (np.cumsum(x) <= budget)
    scores = validate.numbers("action", action, f"{n} scores, one for each arm")
    validate.require(scores.shape == (n,), "shape of action", scores.shape, f"({n},): a score for each arm")
    validate.require(bool(np.isfinite(scores).all()), "action", scores, "finite numbers")
    return top_arms(scores, budget, rng)


def arrival_of(feedback: Feedback, played_at: int, problem: Problem) -> Arrival:
    """The outcome of one round, in arrays of its own; NaN where an arm has not reported yet."""
    found: Arrival = {"round": played_at, "x": np.array(feedback.x)}
    if problem.observes == "both":
        found["z"] = np.array(feedback.z)
    found["y"] = np.array(feedback.y)
    if feedback.context is not None:
        found["context"] = np.array(feedback.context)
    if feedback.fresh is not None:
        found["fresh"] = np.array(feedback.fresh)
    return found


def observation_of(problem: Problem, played: int, arrivals: Sequence[Arrival], context: Any) -> Observation:
    """The observation of an agent before a round: sums over the rounds whose outcomes arrived since the last.

    >>> arrival = {"round": 1, "x": np.array([True, False]), "z": np.array([1.0, 0.0]), "y": np.array([1.0, 0.5])}
    >>> shown = observation_of(Problem(n_arms=2, budget=1), 3, [arrival], None)
    >>> {name: value.tolist() for name, value in shown.items()}
    {'round': [3.0], 'arrived': [1.0], 'x': [1.0, 0.0], 'z': [1.0, 0.0], 'y': [1.0, 0.5]}
    """
    n = problem.n_arms
    found = {"round": np.array([float(played)]), "arrived": np.array([float(len(arrivals))])}
    for name in ("x", "z", "y") if problem.observes == "both" else ("x", "y"):
        found[name] = np.sum([fresh_part(arrival, name) for arrival in arrivals], axis=0) if arrivals else np.zeros(n)
    if context is not None:
        found["context"] = np.array(context, float)
    return found


def fresh_part(arrival: Arrival, name: str) -> Array:
    """The new part of the outcome of a round; 0 elsewhere."""
    values = np.asarray(arrival[name], float)
    return np.where(arrival["fresh"], values, 0.0) if "fresh" in arrival else values


LARGEST_SEED = 2**31 - 1  # of an agent: what most libraries accept


class Seat:
    """One replication: its agent, what has arrived since the last round, and its decision for the coming one.

    Seats are equal if the same was told to agents that began alike; then they decide alike.
    """

    def __init__(self, agent: Any, problem: Problem, seed: int) -> None:
        self.agent, self.problem = agent, problem
        self.arrivals: list[Arrival] = []
        self.arrived_by = 0  # the round after which they arrived
        self.told = blake2b(repr((seed, problem)).encode()).digest()
        self.decided: tuple[bytes, BoolArray] | None = None  # and what it was asked

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seat) and self.told == other.told

    def __hash__(self) -> int:
        return hash(self.told)

    def learn(self, arrival: Arrival, played: int) -> None:
        """Keep an outcome for the next observation."""
        if self.arrived_by != played:
            self.arrivals, self.arrived_by = [], played
        self.arrivals.append(arrival)
        content = b"".join(np.asarray(part).tobytes() for part in arrival.values())
        self.told = blake2b(self.told + content + str(played).encode()).digest()

    def since(self, played: int) -> list[Arrival]:
        """The outcomes that have arrived since the last of these rounds was played."""
        return self.arrivals if self.arrived_by == played else []

    def decide(self, played: int, context: Any, act: Callable[[], BoolArray]) -> BoolArray:
        """The decision for the coming round; an agent is asked once, however often we are."""
        asked = b"%d" % played + self.told + (b"" if context is None else np.asarray(context).tobytes())
        if self.decided is None or self.decided[0] != asked:
            self.decided = asked, act()
        return self.decided[1]


class SeatState(NamedTuple):
    """The seats, how many rounds were played, and the context of the coming one."""

    seats: Any  # (*batch,): an array of `Seat`
    rounds: IntArray  # (*batch,)
    context: Array  # (*batch, k)


class SeatedPolicy(Policy):
    """A policy that asks an object of Python in each replication.

    Runs are as reproducible as the objects are. A state is copied with all of its objects, and cannot be saved to a
    file, as nothing is known of what they hold. Batches work, one replication after another.
    """

    # nothing is promised, and it sees what there is
    traits = Traits(needs_rewards=False, needs_outcomes=False, uses_context=True, order_free=False)

    @abstractmethod
    def new_agent(self, problem: Problem, seed: int) -> Any:
        """The object of a replication; the seed is its own."""

    @abstractmethod
    def decide(self, seat: Seat, played: int, context: Any, rng: Rng) -> BoolArray:
        """The decision of a replication after some rounds."""

    @abstractmethod
    def tell(self, seat: Seat, arrival: Arrival) -> None:
        """An outcome has arrived."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SeatState:
        seeds = np.floor(np.broadcast_to(rng.uniform(1)[..., 0], batch) * LARGEST_SEED).astype(np.int64)
        seats = np.empty(batch, object)
        for row in np.ndindex(batch):
            seed, own = int(seeds[row]), problem_of(problem, batch, row)
            seats[row] = Seat(self.new_agent(own, seed), own, seed)
        return SeatState(seats, np.zeros(batch, np.int64), np.zeros((*batch, problem.context)))

    def observe(self, state: SeatState, context: Array) -> SeatState:
        return state._replace(context=np.array(context, float))

    def select(self, state: SeatState, rng: Rng) -> Choice:
        rows = []
        for row, seat in seats_of(state):
            own = np.array(state.context[row]) if state.context.shape[-1] else None
            played = int(state.rounds[row])
            rows.append(seat.decide(played, own, self.asking(seat, played, own, rng_of(rng, row))))
        return Choice(np.array(rows).reshape(*state.rounds.shape, -1))

    def asking(self, seat: Seat, played: int, context: Any, rng: Rng) -> Callable[[], BoolArray]:
        return lambda: self.decide(seat, played, context, rng)

    def played(self, state: SeatState, x: BoolArray) -> SeatState:
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: SeatState, feedback: Feedback, rng: Rng) -> SeatState:
        for row, seat in seats_of(state):
            if feedback.arrived[row]:
                played = int(state.rounds[row])
                arrival = arrival_of(row_of(feedback, row), played - int(feedback.age[row]), seat.problem)
                seat.learn(arrival, played)
                self.tell(seat, arrival)
        return state


def seats_of(state: SeatState) -> Iterator[tuple[tuple[int, ...], Seat]]:
    for row in np.ndindex(state.rounds.shape):
        yield row, state.seats[row]


def problem_of(problem: Problem, batch: Batch, row: tuple[int, ...]) -> Problem:
    """The problem of one replication."""
    inside = {"reward_range": 1, "overall_range": 1, "weights": 1, "structure": 2}
    given = {name: getattr(problem, name) for name in inside}
    shapes = {name: (*batch, *np.shape(v)[-inside[name] :]) for name, v in given.items() if v is not None}
    return problem._replace(**{name: np.broadcast_to(given[name], shape)[row] for name, shape in shapes.items()})


def rng_of(rng: Rng, row: tuple[int, ...]) -> Rng:
    """The streams of one replication."""
    return rng.take(row) if row else rng


def row_of(feedback: Feedback, row: tuple[int, ...]) -> Feedback:
    """The feedback of one replication."""
    parts: Any = (None if part is None else np.asarray(part)[row] for part in feedback)
    return Feedback(*parts)


def by_act(agent: Any, observation: Observation) -> Any:
    """Ask an agent that has a method `act`."""
    return agent.act(observation)


def not_told(agent: Any, arrival: Arrival) -> None:
    """An agent that learns from its observations alone, or not at all."""


@dataclass(frozen=True, kw_only=True)
class AgentPolicy(SeatedPolicy):
    """A Gymnasium-style agent that plays in `simulate`, next to all other policies.

    make: called with the problem and a seed, once for each replication; returns the agent. An agent that does not
        learn may be the same for all.
    act: called with the agent and an observation, as `SpilloverEnv` gives them; returns the action. By default
        `agent.act(observation)`; for a model of Stable-Baselines3 it is
        `lambda model, observation: model.predict(observation)[0]`.
    on_feedback: called with the agent and each outcome when it arrives, as in `info["feedback"]` of `SpilloverEnv`.
    actions: "set" or "top", as in `SpilloverEnv`.

    >>> import spillover as sp
    >>> import numpy as np
    >>> class Favourite:
    ...     "Plays the arms that have earned most so far."
    ...     def __init__(self, n): self.earned = np.ones(n)
    ...     def act(self, observation):
    ...         self.earned += observation["z"]
    ...         return self.earned / self.earned.max()
    >>> policy = AgentPolicy(make=lambda problem, seed: Favourite(problem.n_arms), actions="top")
    >>> sp.simulate(policy, sp.SyntheticSEM(horizon=50, changes=()), 3, replications=2).regret.shape
    (2, 50)
    """

    make: Callable[[Problem, int], Any]
    act: Callable[[Any, Observation], Any] = by_act
    on_feedback: Callable[[Any, Arrival], None] = not_told
    actions: str = "set"

    def __post_init__(self) -> None:
        check_actions(self.actions)

    def new_agent(self, problem: Problem, seed: int) -> Any:
        return self.make(problem, seed)

    def decide(self, seat: Seat, played: int, context: Any, rng: Rng) -> BoolArray:
        shown = observation_of(seat.problem, played, seat.since(played), context)
        return decision_of(self.act(seat.agent, shown), self.actions, seat.problem, rng)

    def tell(self, seat: Seat, arrival: Arrival) -> None:
        self.on_feedback(seat.agent, arrival)


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
