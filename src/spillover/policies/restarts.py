"""Restarts after a likelihood-ratio test, as in GLR-CUCB (Zhou, Wang, Varshney and Lim 2020), for CUCB and SEM-UCB."""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.contracts.hyperparameters import check_grid
from spillover.policies.averages import Averages, learn, upper_index
from spillover.policies.cucb import WIDTH, CUCBState, explain_cucb, initial_cucb, learn_cucb
from spillover.policies.graph_policy import (
    GraphPolicy,
    MeansState,
    advance_round,
    choose_by_scores,
    explanation,
    initial_state,
    range_width,
)
from spillover.policies.initialisation import starting
from spillover.policies.scale import ScaledPolicy, amounts_above_low, ranking, unit_or_one
from spillover.policies.signals import graph_signals
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Choice,
    Explanation,
    Feedback,
    Finite,
    IntArray,
    Problem,
    Round,
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


Base = TypeVar("Base", CUCBState, MeansState)


class RestartState(NamedTuple, Generic[Base]):
    """The state of the policy that restarts, and that of the detector."""

    base: Base
    detector: Detector

    @property
    def rounds(self) -> IntArray:
        return self.base.rounds

    @property
    def budget(self) -> IntArray:
        return self.base.budget


GLRCUCBState: TypeAlias = RestartState[CUCBState]
GLRSEMUCBState: TypeAlias = RestartState[MeansState]


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


def forced_arm(n_arms: int, since: IntArray, rate: float) -> IntArray:
    """The arm that is due for a forced trial, or -1: each once in every n / rate rounds since the restart."""
    if rate == 0.0:
        return np.full(since.shape, -1)
    turn = since % int(max(min(n_arms / rate, 2.0**62), n_arms))
    return np.where(turn < n_arms, turn, -1)


def force(x: BoolArray, since: IntArray, rate: float, budget: IntArray, rng: Rng) -> BoolArray:
    """A random set with the arm that is due for a forced trial; x if none is due."""
    arm = forced_arm(x.shape[-1], since, rate)
    if (arm < 0).all():
        return x
    scores = rng.uniform(x.shape[-1]) + 1.0
    scores = np.where(np.arange(x.shape[-1]) == arm[..., None], np.inf, scores)
    return np.where((arm >= 0)[..., None], top_arms(scores, budget, rng), x)


def forced_plan(n_arms: int, since: IntArray, rate: float) -> Any:
    """The reason in explanations if a forced trial decides."""
    return np.where(forced_arm(n_arms, since, rate) >= 0, FORCED, "")


def check_rates(false_alarms: float, forced: float) -> None:
    probability = f"a probability strictly between 0 and 1, at least {LEAST:g}"
    for name, value in (("false_alarms", false_alarms), ("forced", forced)):
        validate.require(np.ndim(value) == 0, name, value, "a single number")
    validate.number("false_alarms", false_alarms, probability, low=0, high=1, open_ends=True)
    validate.require(false_alarms >= LEAST, "false_alarms", false_alarms, probability)
    validate.number("forced", forced, "a rate from 0 to 1", low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class GLRCUCB(ScaledPolicy):
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

    order_free = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rates(self.false_alarms, self.forced)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> GLRCUCBState:
        return GLRCUCBState(initial_cucb(problem, batch, self.knows_graph), empty_history(problem.n_arms, batch))

    def index(self, state: GLRCUCBState) -> Array:
        base, since = state.base, state.base.rounds - state.detector.restart
        unit = unit_or_one(base.scale)
        return upper_index(base.averages, base.rounds, since + 1, width=WIDTH, unit=unit, cap=1.0)

    def select(self, state: GLRCUCBState, rng: Rng) -> Choice:
        base = state.base
        scores = ranking(base.weights, base.scale, self.index(state), self.knows_graph)
        x = top_arms(scores, base.budget, rng)
        return Choice(force(x, base.rounds - state.detector.restart, self.forced, base.budget, rng))

    def played(self, state: GLRCUCBState, x: BoolArray) -> GLRCUCBState:
        validate.decision("x", x, state.base.weights.shape)
        return state._replace(base=state.base._replace(rounds=state.base.rounds + 1))

    def update(self, state: GLRCUCBState, feedback: Feedback, rng: Rng) -> GLRCUCBState:
        shape, reward_range, rounds = state.base.weights.shape, state.base.reward_range, state.base.rounds
        feedback = validate.feedback(feedback, shape, reward_range, rounds, rewards=self.needs_rewards)
        base = learn_cucb(state.base, feedback, 1.0, self.knows_graph)
        _, reward = amounts_above_low(base.scale, feedback, self.knows_graph)
        unit = unit_or_one(base.scale)
        detector = test_for_change(
            state.detector, base.averages, feedback, reward, unit, base.rounds, self.false_alarms
        )
        return GLRCUCBState(base, detector)

    def explain(self, state: GLRCUCBState, rng: Rng) -> Explanation:
        index, base = self.index(state), state.base
        since = base.rounds - state.detector.restart
        plan = forced_plan(index.shape[-1], since, self.forced)
        return explain_cucb(base, index, self.knows_graph, clock=since, plan=plan)

    def signals(self, state: GLRCUCBState) -> dict[str, Any]:
        return {"changes_seen": state.detector.alarms, "latest": state.base.averages.stamps}


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
        forced = force(choice.x, base.rounds - state.detector.restart, self.forced, base.budget, rng)
        planned = starting(base.plan, base.rounds)  # the initialisation comes first
        return choice._replace(x=np.where(planned[..., None], choice.x, forced))

    def played(self, state: GLRSEMUCBState, x: BoolArray) -> GLRSEMUCBState:
        return state._replace(base=advance_round(state.base, x, 1.0))

    def learn(self, state: GLRSEMUCBState, feedback: Feedback, rng: Rng) -> GLRSEMUCBState:
        base = state.base
        feedback = validate.feedback(feedback, base.averages.sums.shape, base.reward_range, base.rounds)
        played_at = base.rounds - feedback.age
        learn(base.averages, feedback.x, feedback.z, played_at, 1.0, feedback.arrived)
        base = base._replace(graph=self.absorb(base.graph, feedback, played_at))
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
