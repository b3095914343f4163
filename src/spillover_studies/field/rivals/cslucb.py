"""CSL-UCB, causal sub-graph learning and change detection (Peng, Zhang and Mitra 2025, IEEE TSP, arXiv:2408.11240)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, choose_top, inner
from spillover.rng import Rng
from spillover.types import Amount, Array, Constant, IntArray, Problem, Round, Rounds
from spillover_studies.field.rivals.linsem import radius_of
from spillover_studies.field.rivals.nodewise import (
    Nodes,
    NodewisePolicy,
    add_to_node,
    error_of,
    fill_solved_bounds,
    first_nodes,
    first_numbers,
    forget_node,
    forward,
    leverage_of,
    solve_node,
)

KNOWN = 0.05  # the largest leverage of a prediction whose error says something of a change
LEAST_ERROR = 0.01  # a mean squared error in units below which nothing counts as a change


class Watch(NamedTuple):
    """The squared errors of predictions, to detect that a node has changed."""

    recent: Amount  # (rows, window): the last ones
    seen: Amount  # (rows,): how many since the restart
    older: Amount  # (rows,): the sum of those that have left the window
    since: Round  # (n,): outcomes of rounds before this one are of the past


class CSLUCBState(NamedTuple):
    """What it has learned."""

    rounds: Rounds
    n_arms: Constant[IntArray]
    budget: Constant[IntArray]
    reward_range: Constant[Array]  # (2,)
    nodes: Nodes
    watch: Watch


def first_watch(n: int, rows: int, window: int) -> Watch:
    return Watch(np.zeros((rows, window)), np.zeros(rows), np.zeros(rows), np.zeros(n, np.int64))


@dataclass(frozen=True, kw_only=True)
class CSLUCB(NodewisePolicy):
    """Learns each node with its causes as a sub-graph, and starts one afresh when it no longer predicts its outcome.

    A missed cause costs more than one too many, so a cause is dropped only if its coefficient is within `lenience`
    standard errors of 0 (and comes back with more evidence). A node has changed when the mean squared error of the last
    `window` predictions is more than `factor` times that of the earlier ones. Outcomes of rounds before the one that
    raised the alarm no longer count. The paper's tests and its uncertainty bound were not available to us: these, and
    the bound of LinSEM-UCB, stand in for them.

    width: times the radius of the theory.
    """

    lenience: float = 1.0
    window: int = 20
    factor: float = 3.0
    width: float = 0.1

    structured = False

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=False)

    def __post_init__(self) -> None:
        validate.whole("window", self.window, 2)
        validate.number("factor", self.factor, "a finite number > 1", low=1, high=math.inf, open_ends=True)
        for name in ("lenience", "width"):
            validate.number(name, getattr(self, name), "a finite number >= 0", low=0, high=math.inf)

    def start(self, problem: Problem, rng: Rng) -> CSLUCBState:
        watch = first_watch(problem.n_arms, 2 * problem.n_arms, self.window)
        return CSLUCBState(**first_numbers(problem), nodes=first_nodes(problem, False), watch=watch)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        n, nodes, watch, found = s.n_arms, s.nodes, s.watch, turn.room.found
        for i in range(n):
            if lesson.round < watch.since[i]:
                continue
            solve_node(nodes, i, turn.room)
            changed, known = False, leverage_of(nodes, turn.room, i, lesson) <= KNOWN
            if nodes.sees and lesson.x[i]:
                own = lesson.z[i] / nodes.unit
                changed = known and has_changed(watch, n + i, (own - found[i, n]) ** 2, self.factor)
                found[i, n] = own  # what is left is due to the causes
            error = error_of(nodes, turn.room, i, lesson)
            if (known and has_changed(watch, i, error * error, self.factor)) or changed:
                forget_node(nodes, i)
                restart_watch(watch, i, lesson.round)
                restart_watch(watch, n + i, lesson.round)
            add_to_node(nodes, i, lesson, 1.0)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        n, scores = s.n_arms, turn.lines[0]
        radius = self.width * radius_of(n, n - 1.0 if n > 1 else 1.0, s.rounds + 1.0)
        for i in range(n):
            solve_node(s.nodes, i, turn.room)
            drop_weak(s.nodes, turn.room, i, self.lenience * scale_of(s.watch, i))
        fill_solved_bounds(s.nodes, turn.room, radius, scores)
        choose_top(scores, s.budget, turn, x)


@inner
def scale_of(watch: Any, i: int) -> Any:
    """The standard deviation of a node's errors; 1 before there are enough."""
    later = watch.seen[i] - watch.recent.shape[1]
    return math.sqrt(max(watch.older[i] / later, LEAST_ERROR)) if later > 0.0 else 1.0


@inner
def drop_weak(nodes: Any, room: Any, i: int, times: float) -> None:
    """Set coefficients of causes to 0 that are within so many times their standard error for a noise of 1."""
    n, work = room.total.shape[0], room.work
    for j in range(n):
        if not nodes.unknown[i, j]:
            continue
        for k in range(n + 1):
            work[k] = 1.0 if k == j else 0.0
        forward(room.root[i], work)
        square = 0.0
        for k in range(n + 1):
            square += work[k] * work[k]
        if abs(room.found[i, j]) < times * math.sqrt(square):
            room.found[i, j] = 0.0


@inner
def has_changed(watch: Any, row: int, square: float, factor: float) -> bool:
    """Note a squared error; whether the latest ones are too large for the earlier ones."""
    recent = watch.recent[row]
    window, seen = recent.shape[0], watch.seen[row]
    place = int(seen) % window
    if seen >= window:
        watch.older[row] += recent[place]
    recent[place] = square
    watch.seen[row] += 1.0
    if seen + 1.0 < 2.0 * window:
        return False
    mean = 0.0
    for k in range(window):
        mean += recent[k] / window
    return mean > factor * max(watch.older[row] / (seen + 1.0 - window), LEAST_ERROR)  # type: ignore[no-any-return]


@inner
def restart_watch(watch: Any, row: int, at_round: int) -> None:
    """Forget the errors of a row; outcomes of rounds before this one are of the past."""
    watch.seen[row], watch.older[row] = 0.0, 0.0
    if row < watch.since.shape[0]:
        watch.since[row] = at_round
