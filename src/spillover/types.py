"""The vocabulary: what a problem, a piece of feedback, a policy, a world and a delay are.

Every array has shape `(*batch, n)`. `batch=()` is one live learner, `(256,)` many replications at once,
`(10, 22, 20)` a grid of hyperparameters times replications; the same lines serve all of them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spillover.rng import Rng

Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]
Batch: TypeAlias = tuple[int, ...]
State: TypeAlias = Any  # a NamedTuple of arrays, nested at will: everything a policy has learned


class Problem(NamedTuple):
    """What a policy is told before the first round."""

    n_arms: int
    budget: int  # s: how many arms may be chosen a round
    acyclic: bool = True  # arms are in an order in which A is strictly upper triangular
    reward_range: Any = (0.0, 1.0)  # of the instantaneous rewards z; (2,) or (*batch, 2)
    overall_range: Any = None  # of the overall rewards y, where the world declares one; (2,) or (*batch, 2)
    weights: Any = None  # 1'(I-A)^-1 F, for policies that are told the graph; (n,) or (*batch, n)


class Choice(NamedTuple):
    """What a policy would play, and what it wants to be reminded of when the outcome arrives."""

    x: BoolArray  # (*batch, n)
    memo: Any = None  # an array (*batch, ...) or None


class Outcome(NamedTuple):
    """What came of a round: instantaneous rewards of the played arms, overall rewards of all arms."""

    z: Array  # (*batch, n)
    y: Array  # (*batch, n)


class Feedback(NamedTuple):
    """One played round for each learner that one has arrived for."""

    x: BoolArray  # (*batch, n): the decision
    z: Array  # (*batch, n)
    y: Array  # (*batch, n)
    age: IntArray  # (*batch,): rounds since it was played; 0 at the end of its own round
    arrived: BoolArray  # (*batch,): whether there is one at all
    memo: Any = None  # what select() remembered of that round


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Why these arms: what a policy holds as it decides."""

    mean: Array  # estimated instantaneous reward; NaN for an arm never observed
    count: Array  # the (discounted) number of observations behind it
    clock: Array  # m: the discounted number of rounds so far
    index: Array  # mean plus exploration
    adjacency: Array  # the estimated graph; (*batch, n, n), zeros for a policy without one
    gain: Array  # direct effect of one unit of each arm's instantaneous reward on the arm itself: the diagonal of F
    weights: Array  # total effect of one unit of each arm's instantaneous reward
    score: Array  # weights times index: what the arms are ranked by
    chosen: BoolArray  # the decision, as a mask
    planned: BoolArray  # (*batch,): whether a plan (initialisation, forced exploration) decided, not the scores
    pending: Any = None  # (*batch, n): the (discounted) number of pulls in flight, of a policy that counts them
    could_gain: Any = None  # (*batch,): how much more another feasible set could score at most; NaN: a plan decided


@runtime_checkable
class Policy(Protocol):
    """Four functions over arrays with a batch axis; the hyperparameters are the fields of a frozen dataclass.

    Nothing here changes its arguments, with one exception: `update` may consume the state it is given and return
    the same arrays rewritten (`spillover.copy_state` keeps the old one).
    """

    @property
    def order_free(self) -> bool:
        """Whether feedback leaves the same state in whatever order it arrives."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State: ...
    def select(self, state: State, rng: Rng) -> Choice: ...
    def played(self, state: State, x: BoolArray) -> State: ...
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State: ...


@runtime_checkable
class Explains(Protocol):
    """A policy that can say why; the graph error is measured on the `adjacency` of those that learn a graph."""

    def explain(self, state: State, rng: Rng | None = None) -> Explanation: ...


def learns_graph(policy: object) -> bool:
    """Whether a policy shows a graph that it learned; one that learns none says `learns_graph = False` in its class."""
    return isinstance(policy, Explains) and bool(getattr(policy, "learns_graph", True))


@runtime_checkable
class World(Protocol):
    """One drawn world for each learner: graph, means and change points are fixed, rewards are still to come."""

    @property
    def problem(self) -> Problem: ...
    @property
    def horizon(self) -> int: ...
    @property
    def changes(self) -> tuple[int, ...]:
        """First rounds of the stationary periods after the first one."""

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome: ...
    def expected(self, t: int, x: BoolArray) -> Array:
        """Expected payoff of a decision, (*batch,)."""

    def best(self, t: int) -> BoolArray:
        """An optimal decision."""

    def matches(self, t: int, x: BoolArray) -> IntArray:
        """How many of the chosen arms belong to an optimal decision; of several optimal ones the nearest counts."""

    def adjacency(self, t: int) -> Array: ...
    def weights(self, t: int) -> Array:
        """1'(I - A)^-1 F, (*batch, n)."""


@runtime_checkable
class Environment(Protocol):
    """A family of worlds; a frozen dataclass."""

    def draw(self, rng: Rng, batch: Batch = ()) -> World: ...


@runtime_checkable
class Delay(Protocol):
    """How many rounds pass until the outcome of round t arrives, for each learner; `NEVER` when it is lost."""

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray: ...


@runtime_checkable
class Informed(Protocol):
    """A reference point that is told the world itself, which no policy is."""

    def told(self, world: World) -> Policy: ...
