"""GA-LCB, linear causal bandits with an unknown graph (Yan and Tajer 2024, NeurIPS, arXiv:2411.02383)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, choose_top, inner
from spillover.rng import Rng
from spillover.types import Amount, Array, BoolArray, Constant, Finite, IntArray, Problem, Rounds
from spillover_studies.field.rivals.linsem import most_causes, radius_of
from spillover_studies.field.rivals.nodewise import (
    Nodes,
    NodewisePolicy,
    add_to_node,
    add_up_effects,
    first_nodes,
    first_numbers,
    solve_nodes,
    width_of,
)

LEAST_WIDTH = 1e-6  # of the last phase


class GALCBState(NamedTuple):
    """What it has learned."""

    rounds: Rounds
    n_arms: Constant[IntArray]
    budget: Constant[IntArray]
    reward_range: Constant[Array]  # (2,)
    nodes: Nodes
    trials: Amount  # (n + 1,): outcomes seen of each arm alone, and of none
    means: Finite  # (n + 1, n): mean outcomes then, in units
    started: BoolArray  # whether the graph is learned
    alive: BoolArray  # (n,): arms that may be in the best set
    width: Amount  # 2^-s: of the present phase


@dataclass(frozen=True, kw_only=True)
class GALCB(NodewisePolicy):
    """First learns a graph by playing each arm alone, and none; then leaves out arms whose bounds are too low.

    An arm that moves the mean outcome of another one by more than `effect` may be its cause, if the problem's order of
    arms allows it; of these, causes with a coefficient below `least` are dropped, in place of the paper's Lasso. The
    phases of the paper leave out sets one by one; as payoffs add up here, an arm is left out when no set with it can be
    best. In between the set with the widest bounds is played. Plays its trials until their outcomes are known.

    explore: trials of each. effect, least: in units of the reward range. width: times the radius of the theory.
    """

    explore: int = 20
    effect: float = 0.25
    least: float = 0.1
    width: float = 0.1

    structured = False

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=False)  # what arrives first decides when the graph is learned

    def __post_init__(self) -> None:
        validate.whole("explore", self.explore, 1)
        for name in ("effect", "least", "width"):
            validate.number(name, getattr(self, name), "a finite number >= 0", low=0, high=math.inf)

    def start(self, problem: Problem, rng: Rng) -> GALCBState:
        n = problem.n_arms
        numbers, nodes = first_numbers(problem), first_nodes(problem, False)
        learned: dict[str, Any] = {"trials": np.zeros(n + 1), "means": np.zeros((n + 1, n)), "started": False}
        learned["width"] = 1.0
        return GALCBState(**numbers, nodes=nodes, **learned, alive=np.ones(n, np.bool_))

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        n, unit, which, count = s.n_arms, s.nodes.unit, s.n_arms, 0
        for i in range(n):
            add_to_node(s.nodes, i, lesson, 1.0)
            if lesson.x[i]:
                which, count = i, count + 1
        if s.started:
            return
        if count < 2:
            s.trials[which] += 1.0
            for i in range(n):
                s.means[which, i] += (lesson.y[i] / unit - s.means[which, i]) / s.trials[which]
        enough = True
        for k in range(n + 1):
            enough = enough and s.trials[k] >= self.explore
        if enough:
            s.started = True
            learn_causes(s, turn.room, self.effect, self.least)

    def derive(self, s: Any, turn: Turn) -> None:
        """Leave out arms, phase by phase, as long as all bounds are narrow enough."""
        if not s.started:
            return
        n, most = s.n_arms, float(s.budget)
        value, width, bound, taken = turn.lines[0], turn.lines[1], turn.lines[2], turn.lines[3]
        fill_values(s, turn.room, self.width, value, width)
        while s.width > LEAST_WIDTH and top_of(width, s.alive, s.budget, taken)[0] <= most * s.width:
            for i in range(n):
                bound[i] = value[i] + width[i]
            lowest = top_of(bound, s.alive, s.budget, taken)[1]
            for i in range(n):
                s.alive[i] = s.alive[i] and bound[i] >= lowest - 2.0 * most * s.width
            s.width /= 2.0

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        n = s.n_arms
        if not s.started:
            arm = s.rounds % (n + 1)
            if arm < n:
                x[arm] = True
            return
        value, width = turn.lines[0], turn.lines[1]
        fill_values(s, turn.room, self.width, value, width)
        most = float(s.budget)
        narrow = top_of(width, s.alive, s.budget, turn.lines[2])[0] <= most / math.sqrt(s.rounds + 1.0)
        for i in range(n):
            value[i] = (value[i] + width[i] if narrow else width[i]) if s.alive[i] else 0.0
        choose_top(value, s.budget, turn, x)


@inner
def learn_causes(s: Any, room: Any, effect: float, least: float) -> None:
    """Drop causes that trials or coefficients speak against."""
    n, nodes = s.n_arms, s.nodes
    for j in range(n):
        for i in range(n):
            if nodes.unknown[i, j] and abs(s.means[j, i] - s.means[n, i]) <= effect:
                drop(nodes, i, j)
    solve_nodes(nodes, room)
    for i in range(n):
        for j in range(n):
            if nodes.unknown[i, j] and abs(room.found[i, j]) < least:
                drop(nodes, i, j)


@inner
def drop(nodes: Any, i: int, j: int) -> None:
    """There is no effect of j on i."""
    nodes.unknown[i, j] = False
    nodes.cross[i, j] = 0.0
    for k in range(nodes.cross.shape[1]):
        nodes.gram[i, j, k] = 0.0
        nodes.gram[i, k, j] = 0.0


@inner
def fill_values(s: Any, room: Any, times: float, value: Any, width: Any) -> None:
    """The payoff of each arm, and how far it may be off."""
    solve_nodes(s.nodes, room)
    add_up_effects(s.nodes, room)
    radius = times * radius_of(s.n_arms, most_causes(s.nodes.unknown), s.rounds + 1.0)
    for arm in range(s.n_arms):
        value[arm] = room.total[arm] * room.found[arm, s.n_arms]
        width[arm] = radius * width_of(s.nodes, room, arm)


@inner
def top_of(values: Any, alive: Any, budget: int, taken: Any) -> Any:
    """The sum of the at most `budget` largest values above 0, and the lowest of them (0 if there are fewer)."""
    total, lowest = 0.0, 0.0
    for i in range(values.shape[0]):
        taken[i] = 0.0
    for _ in range(budget):
        place = -1
        for i in range(values.shape[0]):
            if alive[i] and taken[i] == 0.0 and values[i] > 0.0 and (place < 0 or values[i] > values[place]):
                place = i
        if place < 0:
            return total, 0.0
        taken[place] = 1.0
        lowest = values[place]
        total += lowest
    return total, lowest
