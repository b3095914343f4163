"""Regress each node of a linear structural equation model on its possible causes: what several rivals share.

The outcome of node i is y_i = a_i'y + x_i b_i + noise, with the effects a_i of other nodes and the mean reward b_i of
its own arm. Both are learned by one ridge regression for each node, from sums that do not depend on the order in which
outcomes arrive. Where rewards z are seen, y_i - z_i tells a_i alone and z_i tells b_i alone. Outcomes are taken in
units of the reward range.
"""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import CorePolicy, Lesson, Turn, inner, uniform
from spillover.graph.edges import impossible_edges
from spillover.rng import Rng
from spillover.types import Array, BoolArray, Constant, Finite, IntArray, Problem, Rounds, State

RIDGE = 1.0  # of each coefficient
LEAST = 1e-300


class Nodes(NamedTuple):
    """The regression of each node; the last of its n + 1 coefficients is that of its own arm."""

    unknown: BoolArray  # (n, n): effects to be learned
    known: Constant[Array]  # (n, n): the others
    sees: Constant[BoolArray]  # whether rewards z are observed
    passes: Constant[IntArray]  # so often effects are handed on: once along an order, up to n times around cycles
    unit: Constant[Array]  # of rewards and outcomes
    gram: Finite  # (n, n + 1, n + 1): sums of products of the regressors
    cross: Finite  # (n, n + 1): and of them with the target


class NodewiseState(NamedTuple):
    """What a policy has learned that keeps no more than these regressions."""

    rounds: Rounds
    n_arms: Constant[IntArray]
    budget: Constant[IntArray]
    reward_range: Constant[Array]  # (2,)
    nodes: Nodes


class Room(NamedTuple):
    """Room for what follows from the sums."""

    root: Any  # (n, n + 1, n + 1): of each node's matrix
    found: Any  # (n, n + 1): the coefficients
    total: Any  # (n,): what a unit of each outcome adds to the sum of all
    path: Any  # (n,): the outcomes that follow from one arm
    work: Any  # (n + 1,)


class NodewisePolicy(CorePolicy):
    """A policy that learns by these regressions; `decide` is its own."""

    compiled = True
    allocates = False
    structured: ClassVar[bool] = True  # whether it is told which edges there can be

    @property
    def traits(self) -> Traits:
        return Traits(needs_rewards=False, knows_structure=self.structured)

    def start(self, problem: Problem, rng: Rng) -> State:
        return NodewiseState(**first_numbers(problem), nodes=first_nodes(problem, self.structured))

    def prepare(self, s: Any) -> Any:
        return room_for(s.n_arms)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        for i in range(s.n_arms):
            add_to_node(s.nodes, i, lesson, 1.0)


def first_numbers(problem: Problem) -> dict[str, Any]:
    """What every state begins with."""
    given = np.array(problem.reward_range, float)
    return {"rounds": 0, "n_arms": problem.n_arms, "budget": problem.budget, "reward_range": given}


def first_nodes(problem: Problem, structured: bool) -> Nodes:
    """The regressions before the first outcome."""
    n = problem.n_arms
    if structured:
        accepted = "which edges there can be, (n, n), for a policy that knows the structure"
        validate.require(problem.structure is not None, "structure", problem.structure, accepted)
        given = np.array(problem.structure, float)
        unknown, known = np.isnan(given), np.nan_to_num(given)
    else:
        unknown, known = ~impossible_edges(problem, None, None), np.zeros((n, n))
    numbers: dict[str, Any] = {"sees": problem.observes == "both", "passes": 1 if problem.acyclic else n}
    numbers["unit"] = unit_of(problem)
    return Nodes(unknown, known, **numbers, gram=np.zeros((n, n + 1, n + 1)), cross=np.zeros((n, n + 1)))


def unit_of(problem: Problem) -> Any:
    """The largest size of a reward."""
    return np.abs(np.asarray(problem.reward_range, float)).max()


@inner
def room_for(n: int) -> Any:
    m = n + 1
    return Room(np.zeros((n, m, m)), np.zeros((n, m)), np.zeros(n), np.zeros(n), np.zeros(m))


@inner
def target_of(nodes: Any, i: int, lesson: Any) -> Any:
    """What the unknown causes of node i have to explain, in units."""
    target = lesson.y[i]
    for j in range(lesson.y.shape[0]):
        target -= nodes.known[i, j] * lesson.y[j]
    if nodes.sees:
        target -= lesson.z[i]
    return target / nodes.unit


@inner
def add_own(nodes: Any, i: int, lesson: Any, weight: float) -> None:
    """Add the reward z of node i to its sums, if it was played."""
    if lesson.x[i]:
        n = lesson.y.shape[0]
        nodes.gram[i, n, n] += weight
        nodes.cross[i, n] += weight * (lesson.z[i] / nodes.unit)


@inner
def add_to_node(nodes: Any, i: int, lesson: Any, weight: float) -> None:
    """Add an outcome to the sums of node i."""
    y, n, unit = lesson.y, lesson.y.shape[0], nodes.unit
    gram, cross, target = nodes.gram[i], nodes.cross[i], weight * target_of(nodes, i, lesson)
    for j in range(n):
        if nodes.unknown[i, j]:
            value = y[j] / unit
            cross[j] += target * value
            for k in range(j + 1):
                if nodes.unknown[i, k]:
                    gram[j, k] += weight * value * (y[k] / unit)
    if nodes.sees:
        add_own(nodes, i, lesson, weight)
    elif lesson.x[i]:
        gram[n, n] += weight
        cross[n] += target
        for j in range(n):
            if nodes.unknown[i, j]:
                gram[n, j] += weight * (y[j] / unit)


@inner
def solve_node(nodes: Any, i: int, room: Any) -> None:
    """The root L of a node's matrix, L L', and its coefficients."""
    root, found = room.root[i], room.found[i]
    take_root(nodes.gram[i], root)
    for j in range(found.shape[0]):
        found[j] = nodes.cross[i, j]
    forward(root, found)
    backward(root, found)


@inner
def take_root(gram: Any, root: Any) -> None:
    """The root L of gram + ridge, L L'."""
    for j in range(gram.shape[0]):
        for k in range(j + 1):
            left = gram[j, k] + (RIDGE if j == k else 0.0)
            for m in range(k):
                left -= root[j, m] * root[k, m]
            root[j, k] = math.sqrt(max(left, LEAST)) if j == k else left / root[k, k]


@inner
def forward(root: Any, v: Any) -> None:
    """L^-1 v, in place."""
    for j in range(v.shape[0]):
        for k in range(j):
            v[j] -= root[j, k] * v[k]
        v[j] /= root[j, j]


@inner
def backward(root: Any, v: Any) -> None:
    """L'^-1 v, in place."""
    size = v.shape[0]
    for back in range(size):
        j = size - 1 - back
        for k in range(j + 1, size):
            v[j] -= root[k, j] * v[k]
        v[j] /= root[j, j]


@inner
def solve_nodes(nodes: Any, room: Any) -> None:
    """The coefficients of all nodes."""
    for i in range(room.total.shape[0]):
        solve_node(nodes, i, room)


@inner
def edge(nodes: Any, room: Any, i: int, j: int) -> Any:
    """The effect of node j on node i."""
    return room.found[i, j] if nodes.unknown[i, j] else nodes.known[i, j]


@inner
def add_up_effects(nodes: Any, room: Any) -> None:
    """total = 1 + A'total: causes come after their effects, or effects are handed on n times."""
    n, total = room.total.shape[0], room.total
    for j in range(n):
        total[j] = 1.0
    for _ in range(nodes.passes):
        for j in range(n):
            summed = 1.0
            for i in range(n):
                summed += edge(nodes, room, i, j) * total[i]
            total[j] = summed


@inner
def follow(nodes: Any, room: Any, arm: int) -> None:
    """The outcomes in units that follow if one arm is played: path = A path + b of this arm."""
    n, path = room.total.shape[0], room.path
    for i in range(n):
        path[i] = 0.0
    for _ in range(nodes.passes):
        for back in range(n):
            i = n - 1 - back
            summed = room.found[i, n] if i == arm else 0.0
            for j in range(n):
                summed += edge(nodes, room, i, j) * path[j]
            path[i] = summed


@inner
def width_of(nodes: Any, room: Any, arm: int) -> Any:
    """How far the payoff of an arm may be off, for errors of one unit in each node: the sum over nodes.

    The derivative of the payoff in node i's coefficients is total_i times the regressors (path, own arm), so an error
    within an ellipsoid adds |total_i| times their length in the inverse of the node's matrix.
    """
    n, work = room.total.shape[0], room.work
    follow(nodes, room, arm)
    width = 0.0
    for i in range(n):
        square, some = 0.0, i == arm
        for j in range(n):
            work[j] = room.path[j] if nodes.unknown[i, j] else 0.0
            some = some or work[j] != 0.0
        if not some:
            continue
        work[n] = 1.0 if i == arm else 0.0
        forward(room.root[i], work)
        for j in range(n + 1):
            square += work[j] * work[j]
        width += abs(room.total[i]) * math.sqrt(square)
    return width


@inner
def forget_node(nodes: Any, i: int) -> None:
    """Start the regression of a node afresh."""
    nodes.gram[i] = 0.0
    nodes.cross[i] = 0.0


@inner
def error_of(nodes: Any, room: Any, i: int, lesson: Any) -> Any:
    """What the coefficients of node i leave unexplained of an outcome, in units."""
    n = lesson.y.shape[0]
    left = lesson.y[i] / nodes.unit - (room.found[i, n] if lesson.x[i] else 0.0)
    for j in range(n):
        left -= edge(nodes, room, i, j) * (lesson.y[j] / nodes.unit)
    return left


@inner
def leverage_of(nodes: Any, room: Any, i: int, lesson: Any) -> Any:
    """How little is known of a prediction of node i: the squared length of its regressors in the inverse matrix."""
    n, work, square = lesson.y.shape[0], room.work, 0.0
    for j in range(n):
        work[j] = lesson.y[j] / nodes.unit if nodes.unknown[i, j] else 0.0
    work[n] = 1.0 if lesson.x[i] else 0.0
    forward(room.root[i], work)
    for j in range(n + 1):
        square += work[j] * work[j]
    return square


@inner
def fill_bounds(nodes: Any, room: Any, radius: float, found: Any) -> None:
    """The payoff of each arm in units, plus its width times a radius."""
    solve_nodes(nodes, room)
    fill_solved_bounds(nodes, room, radius, found)


@inner
def fill_solved_bounds(nodes: Any, room: Any, radius: float, found: Any) -> None:
    """The same for coefficients that are known already."""
    add_up_effects(nodes, room)
    n = room.total.shape[0]
    for arm in range(n):
        found[arm] = room.total[arm] * room.found[arm, n]
        if radius > 0.0:
            found[arm] += radius * width_of(nodes, room, arm)


@inner
def normal(turn: Turn, i: int) -> Any:
    """The i-th standard normal number of a turn."""
    return math.sqrt(-2.0 * math.log(1.0 - uniform(turn, 2 * i))) * math.cos(2.0 * math.pi * uniform(turn, 2 * i + 1))
