"""Restarts on a likelihood-ratio test, as in GLR-CUCB (Zhou, Wang, Varshney and Lim 2020), for CUCB and for SEM-UCB."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.graph import ROW_BOUND, GraphLearner, graph_learner
from spillover.oracle import top_arms
from spillover.policies.averages import Averages, upper_index
from spillover.policies.cucb import WIDTH, CUCBState, explain_cucb, learn_cucb, start_cucb
from spillover.policies.plain import ranked_by
from spillover.policies.scale import amounts, divisor, ranking
from spillover.policies.sem import SEMState, choose, explanation, pass_round, start, take_in
from spillover.policies.signals import sem_signals
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem

BUCKETS = 64


class Detector(NamedTuple):
    """The rewards of each arm since the last restart, in buckets."""

    counts: Array  # (*batch, n, buckets)
    totals: Array  # (*batch, n, buckets)
    used: IntArray  # (*batch, n)
    restart: IntArray  # (*batch,): rounds played at the last restart
    alarms: IntArray  # (*batch,): how many restarts there were


class GLRCUCBState(NamedTuple):
    """CUCB's state and the detector's."""

    base: CUCBState
    detector: Detector

    @property
    def rounds(self) -> IntArray:
        return self.base.rounds

    @property
    def budget(self) -> IntArray:
        return self.base.budget


class GLRSEMUCBState(NamedTuple):
    """SEM-UCB's state and the detector's."""

    base: SEMState
    detector: Detector

    @property
    def rounds(self) -> IntArray:
        return self.base.rounds

    @property
    def budget(self) -> IntArray:
        return self.base.budget


def no_history(n_arms: int, batch: Batch) -> Detector:
    histories = (*batch, n_arms, BUCKETS)
    return Detector(
        counts=np.zeros(histories),
        totals=np.zeros(histories),
        used=np.zeros((*batch, n_arms), np.int64),
        restart=np.zeros(batch, np.int64),
        alarms=np.zeros(batch, np.int64),
    )


def watch(
    detector: Detector, averages: Averages, feedback: Feedback, reward: Array, unit: Any, now: IntArray, level: float
) -> Detector:
    """Test the arms that were played; where one has changed, forget all arms of that learner."""
    histories = detector.counts, detector.totals, detector.used
    alarm = kernels.detect_change(*histories, feedback.x, reward, unit, level, feedback.arrived)
    if not alarm.any():
        return detector
    for leaf in (*histories, *averages):
        leaf[alarm] = 0
    return detector._replace(restart=np.where(alarm, now, detector.restart), alarms=detector.alarms + alarm)


def forced_arm(n_arms: int, since: IntArray, rate: float) -> IntArray:
    """The arm whose turn it is to be tried, or -1: each once in every n / rate rounds since the restart."""
    if rate == 0.0:
        return np.full(since.shape, -1)
    turn = since % int(max(min(n_arms / rate, 2.0**62), n_arms))
    return np.where(turn < n_arms, turn, -1)


def force(x: BoolArray, since: IntArray, rate: float, budget: IntArray, rng: Rng) -> BoolArray:
    """Instead of x a random set with the arm whose turn it is, where it is one's turn."""
    arm = forced_arm(x.shape[-1], since, rate)
    if (arm < 0).all():
        return x
    scores = rng.uniform(x.shape[-1]) + 1.0
    scores = np.where(np.arange(x.shape[-1]) == arm[..., None], np.inf, scores)
    return np.where((arm >= 0)[..., None], top_arms(scores, budget, rng), x)


def check_rates(false_alarms: float, forced: float) -> None:
    probability = "a probability strictly between 0 and 1"
    for name, value in (("false_alarms", false_alarms), ("forced", forced)):
        validate.require(np.ndim(value) == 0, name, value, "a single number")
    validate.number("false_alarms", false_alarms, probability, low=0, high=1, open_ends=True)
    validate.number("forced", forced, "a rate from 0 to 1", low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class GLRCUCB:
    """CUCB that forgets everything when a likelihood-ratio test says that an arm has changed.

    false_alarms: level of the test, in log(3 n^1.5 / false_alarms). forced: share of rounds in which each arm in
    turn is tried within a random set, so that a change of an idle arm is noticed. Feedback is taken as it arrives, so
    its order matters. told_graph: see `spillover.policies.scale`.

    >>> GLRCUCB(forced=2.0)
    Traceback (most recent call last):
    ValueError: forced = 2.0: must be a rate from 0 to 1
    """

    false_alarms: float = 1e-3
    forced: float = 0.01
    told_graph: bool = False

    order_free = False
    learns_graph = False

    def __post_init__(self) -> None:
        check_rates(self.false_alarms, self.forced)

    @property
    def quantity(self) -> str:
        """What its scores are, in words."""
        return ranked_by(self.told_graph)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> GLRCUCBState:
        return GLRCUCBState(start_cucb(problem, batch, self.told_graph), no_history(problem.n_arms, batch))

    def index(self, state: GLRCUCBState) -> Array:
        base, since = state.base, state.base.rounds - state.detector.restart
        unit = divisor(base.scale)
        return upper_index(base.averages, base.rounds, since + 1, width=WIDTH, unit=unit, cap=1.0)

    def select(self, state: GLRCUCBState, rng: Rng) -> Choice:
        base = state.base
        scores = ranking(base.weights, base.scale, self.index(state), self.told_graph)
        x = top_arms(scores, base.budget, rng)
        return Choice(force(x, base.rounds - state.detector.restart, self.forced, base.budget, rng))

    def played(self, state: GLRCUCBState, x: BoolArray) -> GLRCUCBState:
        validate.decision("x", x, state.base.weights.shape)
        return state._replace(base=state.base._replace(rounds=state.base.rounds + 1))

    def update(self, state: GLRCUCBState, feedback: Feedback, rng: Rng) -> GLRCUCBState:
        feedback = validate.feedback(feedback, state.base.weights.shape, state.base.limits, state.base.rounds)
        base = learn_cucb(state.base, feedback, 1.0, self.told_graph)
        _, reward = amounts(base.scale, feedback, self.told_graph)
        unit = divisor(base.scale)
        detector = watch(state.detector, base.averages, feedback, reward, unit, base.rounds, self.false_alarms)
        return GLRCUCBState(base, detector)

    def explain(self, state: GLRCUCBState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties and forced sets."""
        index, base = self.index(state), state.base
        since = base.rounds - state.detector.restart
        forced = forced_arm(index.shape[-1], since, self.forced) >= 0
        chosen = self.select(state, (rng or Rng(0)).at(Purpose.CHOICE, base.rounds + 1)).x
        return explain_cucb(base, index, self.told_graph, chosen, clock=since, planned=forced)

    def signals(self, state: GLRCUCBState) -> dict[str, Any]:
        """Restarts, and when each arm was last heard of; see `spillover.policies.signals`."""
        return {"changes_seen": state.detector.alarms, "latest": state.base.averages.stamps}


@dataclass(frozen=True, kw_only=True)
class GLRSEMUCB:
    """SEM-UCB with the same restarts: the test watches z; the means are forgotten, the graph is not.

    >>> import spillover as sp
    >>> run = sp.simulate(GLRSEMUCB(), sp.SyntheticSEM(horizon=300, changes=(150,)), 5, replications=2)
    >>> run.regret.shape
    (2, 300)
    """

    false_alarms: float = 1e-3
    forced: float = 0.01
    sparsity: Any = 1e-3
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None

    order_free = False
    grids = ("sparsity",)

    def __post_init__(self) -> None:
        check_rates(self.false_alarms, self.forced)
        _ = self.learner  # refuses what it cannot take

    @cached_property
    def learner(self) -> GraphLearner:
        return graph_learner(self.sparsity, self.row_bound, self.required, self.forbidden)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> GLRSEMUCBState:
        validate.grid(self, batch)
        return GLRSEMUCBState(start(self.learner, problem, rng, batch), no_history(problem.n_arms, batch))

    def index(self, state: GLRSEMUCBState) -> Array:
        base = state.base
        since = base.clock - state.detector.restart
        return upper_index(base.averages, base.rounds, since, width=base.budget + 1.0)

    def choice(self, state: GLRSEMUCBState, index: Array, rng: Rng) -> BoolArray:
        base = state.base
        x = choose(base, index, rng)
        forced = force(x, base.rounds - state.detector.restart, self.forced, base.budget, rng)
        return np.where((base.rounds < x.shape[-1])[..., None], x, forced)  # the initialisation comes first

    def select(self, state: GLRSEMUCBState, rng: Rng) -> Choice:
        return Choice(self.choice(state, self.index(state), rng))

    def played(self, state: GLRSEMUCBState, x: BoolArray) -> GLRSEMUCBState:
        return state._replace(base=pass_round(state.base, x, 1.0))

    def update(self, state: GLRSEMUCBState, feedback: Feedback, rng: Rng) -> GLRSEMUCBState:
        shape = state.base.averages.sums.shape
        feedback = validate.feedback(feedback, shape, state.base.limits, state.base.rounds)
        base = take_in(state.base, feedback, self.learner, 1.0)
        low, high = base.limits[..., 0], base.limits[..., 1]
        above = np.where(feedback.x, feedback.z - low[..., None], 0.0)
        now, level = base.rounds, self.false_alarms
        detector = watch(state.detector, base.averages, feedback, above, high - low, now, level)
        return GLRSEMUCBState(base, detector)

    def explain(self, state: GLRSEMUCBState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        index = self.index(state)
        ties = (rng or Rng(0)).at(Purpose.CHOICE, state.base.rounds + 1)
        since = state.base.rounds - state.detector.restart
        forced = forced_arm(index.shape[-1], since, self.forced) >= 0
        return explanation(state.base, index, 1.0, self.choice(state, index, ties), planned=forced)

    def signals(self, state: GLRSEMUCBState) -> dict[str, Any]:
        """Restarts, and what the graph was learned from; see `spillover.policies.signals`."""
        return {"changes_seen": state.detector.alarms} | sem_signals(state.base)
