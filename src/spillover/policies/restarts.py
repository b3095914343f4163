"""Restarts after a likelihood-ratio test, as in GLR-CUCB (Zhou, Wang, Varshney and Lim 2020), for CUCB and SEM-UCB."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts.hyperparameters import check_grid
from spillover.core import Lesson, Turn, choose_top, inner, later
from spillover.kernels.averages import add_rewards, grown_bounds
from spillover.kernels.detection import force_arm, note_and_test
from spillover.kernels.scaled import amounts_above_low, rank
from spillover.kernels.scaled import unit_or_one as unit_of
from spillover.policies.averages import Averages, empty_averages, learn, upper_index
from spillover.policies.cucb import CAP, WIDTH, explain_cucb
from spillover.policies.graph_policy import (
    GraphPolicy,
    MeansState,
    absorb,
    advance_round,
    choose_by_scores,
    explanation,
    initial_state,
    range_width,
)
from spillover.policies.initialisation import starting
from spillover.policies.scale import Scale, ScaledCorePolicy, initial_scale, ranking_weights
from spillover.policies.signals import graph_signals
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Choice,
    Constant,
    Explanation,
    Feedback,
    Finite,
    IntArray,
    Problem,
    Round,
    Rounds,
    Within,
)

LEAST = 1e-300  # a probability of false alarms: its inverse times a power of the rounds is finite
BUCKETS = 64
FORCED = "a forced trial: each arm is tried from time to time, so that its changes are detected"


class Detector(NamedTuple):
    """The rewards of each arm since the last restart, in buckets."""

    counts: Amount  # (*batch, n, buckets)
    totals: Finite  # (*batch, n, buckets)
    used: Annotated[IntArray, Within(0, BUCKETS)]  # (*batch, n)
    restart: Round  # (*batch,): rounds played at the last restart
    alarms: Round  # (*batch,): how many restarts there were


class GLRCUCBState(NamedTuple):
    """What CUCB has learned since the last restart, and the state of the detector."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    averages: Averages  # of amounts on the scale
    detector: Detector
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


class GLRSEMUCBState(NamedTuple):
    """The state of SEM-UCB, and that of the detector."""

    base: MeansState
    detector: Detector

    @property
    def rounds(self) -> IntArray:
        return self.base.rounds

    @property
    def budget(self) -> IntArray:
        return self.base.budget


def empty_history(n_arms: int, batch: Batch) -> Detector:
    histories = (*batch, n_arms, BUCKETS)
    return Detector(
        counts=np.zeros(histories),
        totals=np.zeros(histories),
        used=np.zeros((*batch, n_arms), np.int64),
        restart=np.zeros(batch, np.int64),
        alarms=np.zeros(batch, np.int64),
    )


def test_for_change(
    detector: Detector, averages: Averages, feedback: Feedback, reward: Array, unit: Any, now: IntArray, level: float
) -> Detector:
    """Test the arms that were played; in rows of the batch in which one has changed, forget all arms."""
    histories = detector.counts, detector.totals, detector.used
    alarm = kernels.detect_change(*histories, feedback.x, reward, unit, level, feedback.arrived)
    if not alarm.any():
        return detector
    for leaf in (*histories, *averages):
        leaf[alarm] = 0
    return detector._replace(restart=np.where(alarm, now, detector.restart), alarms=detector.alarms + alarm)


def forced_plan(n_arms: int, since: IntArray, rate: float) -> Any:
    """The reason in explanations if a forced trial decides."""
    return np.where(kernels.forced_arm(np.empty(n_arms), since, rate) >= 0, FORCED, "")


def check_rates(false_alarms: float, forced: float) -> None:
    probability = f"a probability strictly between 0 and 1, at least {LEAST:g}"
    for name, value in (("false_alarms", false_alarms), ("forced", forced)):
        validate.require(np.ndim(value) == 0, name, value, "a single number")
    validate.number("false_alarms", false_alarms, probability, low=0, high=1, open_ends=True)
    validate.require(false_alarms >= LEAST, "false_alarms", false_alarms, probability)
    validate.number("forced", forced, "a rate from 0 to 1", low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class GLRCUCB(ScaledCorePolicy):
    """CUCB that forgets everything when a likelihood-ratio test detects that an arm has changed.

    Feedback is tested as it arrives, so its order matters.

    false_alarms: level of the test, in log(3 n^1.5 / false_alarms).
    forced: share of rounds that try one arm after another, within a random set, so that changes of idle arms are
        detected.
    knows_graph: see `spillover.policies.scale`.

    >>> GLRCUCB(forced=2.0)
    Traceback (most recent call last):
    ValueError: forced = 2.0: must be a rate from 0 to 1
    """

    false_alarms: float = 1e-3
    forced: float = 0.01

    compiled = True
    allocates = False
    unchanged_by_play = ("averages", "detector", "scale")
    order_free = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rates(self.false_alarms, self.forced)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> GLRCUCBState:
        validate.problem(problem)
        return GLRCUCBState(
            rounds=np.zeros(batch, np.int64),
            n_arms=np.full(batch, problem.n_arms, np.int64),
            averages=empty_averages(problem.n_arms, batch),
            detector=empty_history(problem.n_arms, batch),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        fill_index(self, s, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        scores, second = turn.lines[0], later(turn)
        fill_index(self, s, scores)
        rank(s.weights, s.scale.low, s.scale.unit, self.knows_graph, scores)
        choose_top(scores, s.budget, turn, x)
        since, budget = s.rounds - s.detector.restart, s.budget
        force_arm(
            since, self.forced, budget, second.key, second.call, second.round, second.purpose, scores, turn.best, x
        )

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        amounts, scale, known, past = turn.lines[0], s.scale, s.averages, s.detector
        observed = lesson.z if self.knows_graph else lesson.y
        scale.unit = amounts_above_low(observed, lesson.x, scale.low, scale.unit, scale.declared, amounts)
        add_rewards(known.sums, known.counts, known.stamps, lesson.x, amounts, lesson.round, 0.0, known.sums[:0])
        unit = unit_of(scale.unit)
        if note_and_test(past.counts, past.totals, past.used, lesson.x, amounts, unit, self.false_alarms):
            known.sums[:], known.counts[:], known.stamps[:] = 0.0, 0.0, 0
            past.counts[:], past.totals[:], past.used[:] = 0.0, 0.0, 0
            past.restart = s.rounds
            past.alarms += 1

    def explain(self, state: GLRCUCBState, rng: Rng) -> Explanation:
        index, since = self.indices(state, rng), state.rounds - state.detector.restart
        plan = forced_plan(index.shape[-1], since, self.forced)
        return explain_cucb(state, index, self.knows_graph, clock=since, plan=plan)

    def signals(self, state: GLRCUCBState) -> dict[str, Any]:
        return {"changes_seen": state.detector.alarms, "latest": state.averages.stamps}


@inner
def fill_index(p: Any, s: Any, found: Any) -> None:
    """That of CUCB, since the last restart."""
    found[:] = 1.0  # the bonus does not grow
    clock, unit = s.rounds - s.detector.restart + 1.0, unit_of(s.scale.unit)
    grown_bounds(s.averages.sums, s.averages.counts, clock, WIDTH, unit, CAP, 1.0, found)


@dataclass(frozen=True, kw_only=True)
class GLRSEMUCB(GraphPolicy):
    """SEM-UCB with the same restarts: the test uses z; a restart forgets the means and keeps the graph.

    Nourani-Koliji, Bilaj, Rezaei Balef and Maghsudi (2023, arXiv:2307.14138) combine the same parts in another way:
    they restart groups of arms, and follow changes of the graph too.

    false_alarms, forced: as in `GLRCUCB`.
    graph: how the graph is learned, as in `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(GLRSEMUCB(), sp.SyntheticSEM(horizon=300, changes=(150,)), 5, replications=2)
    >>> run.regret.shape
    (2, 300)
    """

    false_alarms: float = 1e-3
    forced: float = 0.01

    order_free = False

    def __post_init__(self) -> None:
        check_rates(self.false_alarms, self.forced)
        super().__post_init__()

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> GLRSEMUCBState:
        check_grid(self, batch)
        return GLRSEMUCBState(initial_state(self.graph, problem, rng, batch), empty_history(problem.n_arms, batch))

    def index(self, state: GLRSEMUCBState) -> Array:
        base = state.base
        since = base.clock - state.detector.restart
        unit = range_width(base.reward_range)
        return upper_index(base.averages, base.rounds, since, width=base.budget + 1.0, unit=unit) * unit[..., None]

    def select(self, state: GLRSEMUCBState, rng: Rng) -> Choice:
        base = state.base
        choice = choose_by_scores(base, self.index(state), self.graph, rng)
        since = base.rounds - state.detector.restart
        forced = kernels.forced_set(choice.x, since, self.forced, base.budget, *rng.address())
        planned = starting(base.plan, base.rounds)  # the initialisation comes first
        return choice._replace(x=np.where(planned[..., None], choice.x, forced))

    def played(self, state: GLRSEMUCBState, x: BoolArray) -> GLRSEMUCBState:
        return state._replace(base=advance_round(state.base, x, 1.0))

    def learn(self, state: GLRSEMUCBState, feedback: Feedback, rng: Rng) -> GLRSEMUCBState:
        base = state.base
        feedback = validate.feedback(feedback, base.averages.sums.shape, base.reward_range, base.rounds)
        played_at = base.rounds - feedback.age
        learn(base.averages, feedback.x, feedback.z, played_at, 1.0, feedback.arrived)
        base = base._replace(graph=absorb(self.graph, base.graph, feedback, played_at))
        above = np.where(feedback.x, feedback.z - base.reward_range[..., :1], 0.0)
        unit, now, level = range_width(base.reward_range), base.rounds, self.false_alarms
        detector = test_for_change(state.detector, base.averages, feedback, above, unit, now, level)
        return GLRSEMUCBState(base, detector)

    def solve(self, state: GLRSEMUCBState) -> GLRSEMUCBState:
        return state._replace(base=super().solve(state.base))

    def adjacency(self, state: GLRSEMUCBState) -> Array:
        return super().adjacency(state.base)

    def edges(self, state: GLRSEMUCBState) -> Any:
        return super().edges(state.base)

    def explain(self, state: GLRSEMUCBState, rng: Rng) -> Explanation:
        index = self.index(state)
        since = state.base.rounds - state.detector.restart
        plan = forced_plan(index.shape[-1], since, self.forced)
        return explanation(state.base, index, self.graph, 1.0, plan=plan)

    def signals(self, state: GLRSEMUCBState) -> dict[str, Any]:
        base = state.base
        return {"changes_seen": state.detector.alarms} | graph_signals(self.graph, base.graph, base.averages.stamps)
