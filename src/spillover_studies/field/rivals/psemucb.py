"""SEM-UCB with restarts (Nourani-Koliji, Bilaj, Rezaei Balef and Maghsudi 2023, ECAI, arXiv:2307.14138)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, choose_top, inner, later
from spillover.core.compiled import entry
from spillover.kernels.averages import force_arm, note_and_test
from spillover.policies.restarts import Detector, check_rates, empty_history
from spillover.rng import Rng
from spillover.types import Amount, Array, Constant, IntArray, Problem, Round, Rounds
from spillover_studies.field.rivals.cslucb import KNOWN, Watch, first_watch, has_changed, restart_watch
from spillover_studies.field.rivals.nodewise import (
    Nodes,
    NodewisePolicy,
    add_to_node,
    add_up_effects,
    edge,
    error_of,
    first_nodes,
    first_numbers,
    forget_node,
    leverage_of,
    solve_node,
    solve_nodes,
)

tested = entry(note_and_test.py_func)  # Python may call it, too


class PSEMUCBState(NamedTuple):
    """What it has learned since the restart of each arm, and of the causes of each node."""

    rounds: Rounds
    n_arms: Constant[IntArray]
    budget: Constant[IntArray]
    reward_range: Constant[Array]  # (2,)
    nodes: Nodes
    watch: Watch
    sums: Amount  # (n,): of rewards z above the lowest, in units of their range
    counts: Amount  # (n,)
    since: Round  # (n,): rewards of rounds before this one are of the past
    detector: Detector


@dataclass(frozen=True, kw_only=True)
class PiecewiseSEMUCB(NodewisePolicy):
    """Weight times (mean + bonus), with a likelihood-ratio test for each arm and a watch over the graph.

    An alarm restarts a group: the arm, and those that it acts on or that act on it in the estimated graph. The
    paper's groups and its test for changes of the graph were not available to us; the latter is that of CSL-UCB, on the
    errors of y - z. Outcomes of rounds before the alarming one no longer count.

    false_alarms, forced: as in `GLRCUCB`. exploration: of the bonus sqrt(exploration (s + 1) log(t) / count).
    window, factor: of the watch over the graph, as in `CSLUCB`. least: edges below it do not join a group.
    """

    false_alarms: float = 1e-3
    forced: float = 0.01
    exploration: float = 0.25
    window: int = 20
    factor: float = 3.0
    least: float = 0.1

    structured = False

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=False, needs_rewards=True)

    def __post_init__(self) -> None:
        check_rates(self.false_alarms, self.forced)
        validate.whole("window", self.window, 2)
        validate.number("factor", self.factor, "a finite number > 1", low=1, high=math.inf, open_ends=True)
        for name in ("exploration", "least"):
            validate.number(name, getattr(self, name), "a finite number >= 0", low=0, high=math.inf)

    def start(self, problem: Problem, rng: Rng) -> PSEMUCBState:
        n = problem.n_arms
        learned: dict[str, Any] = {"sums": np.zeros(n), "counts": np.zeros(n), "since": np.zeros(n, np.int64)}
        parts: dict[str, Any] = {"nodes": first_nodes(problem, False), "watch": first_watch(n, n, self.window)}
        return PSEMUCBState(**first_numbers(problem), **parts, **learned, detector=empty_history(n, ()))

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        n, past, amounts, low = s.n_arms, s.detector, turn.lines[0], s.reward_range[0]
        width = s.reward_range[1] - low
        for i in range(n):
            if lesson.round >= s.watch.since[i]:
                solve_node(s.nodes, i, turn.room)
                known = leverage_of(s.nodes, turn.room, i, lesson) <= KNOWN
                turn.room.found[i, n] = lesson.z[i] / s.nodes.unit if lesson.x[i] else 0.0
                error = error_of(s.nodes, turn.room, i, lesson)
                if known and has_changed(s.watch, i, error * error, self.factor):
                    forget_node(s.nodes, i)
                    restart_watch(s.watch, i, lesson.round)
                add_to_node(s.nodes, i, lesson, 1.0)
            amounts[i] = (lesson.z[i] - low) / width if lesson.x[i] else 0.0
        solve_nodes(s.nodes, turn.room)
        for i in range(n):
            if lesson.x[i] and lesson.round >= s.since[i]:
                s.sums[i] += amounts[i]
                s.counts[i] += 1.0
                own = slice(i, i + 1)
                histories = past.counts[own], past.totals[own], past.used[own]
                if tested(*histories, lesson.x[own], amounts[own], 1.0, self.false_alarms):
                    restart_group(s, turn.room, i, self.least, lesson.round)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        n, room, scores, second = s.n_arms, turn.room, turn.lines[0], later(turn)
        low, width = s.reward_range[0], s.reward_range[1] - s.reward_range[0]
        solve_nodes(s.nodes, room)
        add_up_effects(s.nodes, room)
        for i in range(n):
            bonus = self.exploration * (s.budget + 1.0) * math.log(s.rounds + 1.0)
            if s.counts[i] > 0.0:
                mean = s.sums[i] / s.counts[i] + math.sqrt(bonus / s.counts[i])
                scores[i] = max(room.total[i], 0.0) * (low + width * mean)
            else:
                scores[i] = np.inf
        choose_top(scores, s.budget, turn, x)
        force_arm(
            s.rounds, self.forced, s.budget, second.key, second.call, second.round, second.purpose, scores, turn.best, x
        )


@inner
def restart_group(s: Any, room: Any, arm: int, least: float, at_round: int) -> None:
    """Forget the rewards of an arm and of those that are joined to it."""
    for i in range(s.n_arms):
        joined = abs(edge(s.nodes, room, i, arm)) >= least or abs(edge(s.nodes, room, arm, i)) >= least
        if i == arm or joined:
            s.sums[i], s.counts[i], s.since[i] = 0.0, 0.0, at_round + 1
            s.detector.counts[i] = 0.0
            s.detector.totals[i] = 0.0
            s.detector.used[i] = 0
    s.detector.alarms += 1
