"""Restarts after a likelihood-ratio test, as in GLR-CUCB (Zhou, Wang, Varshney and Lim 2020), for CUCB and SEM-UCB."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, choose_top, inner, later
from spillover.core.policy import first_fields
from spillover.kernels.averages import (
    add_rewards,
    amounts_above_low,
    bounds_of_means,
    force_arm,
    grown_bounds,
    note_and_test,
    rank,
)
from spillover.kernels.averages import unit_or_one as unit_of
from spillover.policies.averages import Averages, empty_averages, follows_plan
from spillover.policies.cucb import CAP, WIDTH, explain_cucb
from spillover.policies.ndcsem import SEMUCB
from spillover.policies.scale import Scale, ScaledCorePolicy, initial_scale, ranking_weights
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    Constant,
    Explanation,
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

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    clock: Amount  # (*batch,)
    averages: Averages  # of z, since the last restart
    plan: Constant[Any]  # (*batch, n, n): plan[t] is the decision of round t + 1. A sweep: (*batch, n)
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z
    graph: Any
    pulls: Any
    detector: Detector


def empty_history(n_arms: int, batch: Batch) -> Detector:
    histories = (*batch, n_arms, BUCKETS)
    return Detector(
        counts=np.zeros(histories),
        totals=np.zeros(histories),
        used=np.zeros((*batch, n_arms), np.int64),
        restart=np.zeros(batch, np.int64),
        alarms=np.zeros(batch, np.int64),
    )


@inner
def restart_if_changed(p: Any, s: Any, x: Any, amounts: Any, unit: float) -> None:
    """Test the arms that were played; if one has changed, forget all arms."""
    known, past = s.averages, s.detector
    if note_and_test(past.counts, past.totals, past.used, x, amounts, unit, p.false_alarms):
        known.sums[:], known.counts[:], known.stamps[:] = 0.0, 0.0, 0
        past.counts[:], past.totals[:], past.used[:] = 0.0, 0.0, 0
        past.restart = s.rounds
        past.alarms += 1


@inner
def force(p: Any, s: Any, turn: Turn, scores: Any, x: Any) -> None:
    """Replace the decision by a forced trial, if one is due; scores: to work in."""
    since, second = s.rounds - s.detector.restart, later(turn)
    force_arm(
        since, p.forced, s.budget, second.key, second.call, second.round, second.purpose, scores, turn.best, x
    )  # fmt: skip


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

    compiled = "without arrays"

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rates(self.false_alarms, self.forced)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> GLRCUCBState:
        first = first_fields(self, problem, batch)
        return GLRCUCBState(
            **first,
            averages=empty_averages(problem.n_arms, batch),
            detector=empty_history(problem.n_arms, batch),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        fill_index(self, s, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        scores = turn.lines[0]
        fill_index(self, s, scores)
        rank(s.weights, s.scale.low, s.scale.unit, self.knows_graph, scores)
        choose_top(scores, s.budget, turn, x)
        force(self, s, turn, scores, x)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        amounts, scale, known = turn.lines[0], s.scale, s.averages
        observed = lesson.z if self.knows_graph else lesson.y
        scale.unit = amounts_above_low(observed, lesson.x, scale.low, scale.unit, scale.declared, amounts)
        add_rewards(known.sums, known.counts, known.stamps, lesson.x, amounts, lesson.round, 0.0, known.sums[:0])
        restart_if_changed(self, s, lesson.x, amounts, unit_of(scale.unit))

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
class GLRSEMUCB(SEMUCB):
    """SEM-UCB with the same restarts: the test uses z; a restart forgets the means and keeps the graph.

    Nourani-Koliji, Bilaj, Rezaei Balef and Maghsudi (2023, arXiv:2307.14138) combine the same parts in another way:
    they restart groups of arms, and follow changes of the graph too.

    false_alarms, forced: as in `GLRCUCB`.
    unit, initialisation, graph: as in `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(GLRSEMUCB(), sp.SyntheticSEM(horizon=300, changes=(150,)), 5, replications=2)
    >>> run.regret.shape
    (2, 300)
    """

    false_alarms: float = 1e-3
    forced: float = 0.01

    choose, learn_means = SEMUCB.decide, SEMUCB.learn_outcome

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=False)

    def __post_init__(self) -> None:
        check_rates(self.false_alarms, self.forced)
        super().__post_init__()

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> Any:
        return GLRSEMUCBState(*super().init(problem, rng, batch), detector=empty_history(problem.n_arms, batch))

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """That of SEM-UCB, since the last restart."""
        known, clock = s.averages, s.clock - s.detector.restart
        bounds_of_means(
            known.sums, known.counts, known.stamps, s.pulls.counts, s.pulls.stamps, s.rounds, clock, s.budget,
            s.reward_range, self.log_discount, self.bonus_width, self.bonus_unit, self.rules, self.growths, found,
        )  # fmt: skip

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        self.choose(s, turn, x)
        if not follows_plan(s.plan, s.rounds, s.budget, x):  # the initialisation comes first
            force(self, s, turn, turn.lines[0], x)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        self.learn_means(s, lesson, turn)
        amounts, low = turn.lines[0], s.reward_range[0]
        for i in range(lesson.x.shape[0]):
            amounts[i] = lesson.z[i] - low if lesson.x[i] else 0.0
        restart_if_changed(self, s, lesson.x, amounts, s.reward_range[1] - low)

    def explain(self, state: Any, rng: Rng) -> Explanation:
        found = super().explain(state, rng)
        plan = forced_plan(found.index.shape[-1], state.rounds - state.detector.restart, self.forced)
        return replace(found, plan=np.where(found.plan == "", plan, found.plan))

    def signals(self, state: Any) -> dict[str, Any]:
        return {"changes_seen": state.detector.alarms} | super().signals(state)
