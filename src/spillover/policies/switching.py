"""SwitchingSEM: a filter for means that switch, on a learned graph; it counts pulls in flight and has no tuning."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import Policy, ScoredWorld, Traits, methods_of, unchanged
from spillover.core import Lesson, Turn, choose_top, inner
from spillover.core.policy import first_fields
from spillover.graph.core import Outcome
from spillover.graph.learner import MANY_ARMS, GraphErrors, explained
from spillover.kernels.averages import date_of, start_pulls, take_rewards, weigh
from spillover.kernels.drifting import drifting_arrival, drifting_forecast, weigh_silence
from spillover.kernels.outcomes import NEVER
from spillover.kernels.switching import learn_rewards
from spillover.kernels.switching_scores import MOST_SORTED, value_arms
from spillover.policies.averages import for_kernels as delay_for_kernels
from spillover.policies.graph_policy import OnGraph, scores
from spillover.policies.switching_state import (
    DRIFT_PRIOR,
    DRIFT_SCALE,
    DRIFT_VARIANCE,
    HAZARDS,
    HORIZON,
    HORIZON_OF_DELAY,
    IDLE_HAZARD,
    OTHER_WORLD,
    RECENT,
    SHARE_PRIOR,
    SHARES,
    SOON,
    TYPICAL,
    SwitchingState,
    empty_belief,
    empty_drift,
    empty_silence,
    fade_of,
    intervals,
    observations,
)
from spillover.rng import Rng
from spillover.types import Array, Batch, Explanation, Problem

LINES = 5  # of `index`


@dataclass(frozen=True, kw_only=True)
class SwitchingSEM(OnGraph):
    """The policy to start with: no discount, no exploration rate, any delay, Bernoulli or continuous rewards.

    Each arm's mean is constant until it changes, together with a share of the other arms or alone. An exact filter
    tracks the time of the last change (20 hypotheses are kept), and the evidence decides how far means drift instead.
    The decision is the s arms with the largest expected total effect, direct plus spill-over, plus an exploration
    bonus: the expected improvement from trying an arm, which is smaller while pulls of the arm are in flight. See
    docs/switching.md for the model.

    graph: how the graph is learned, as in `NDCSEM`; by default the graph learner that predicts the payoff best, or no
        graph if none of them helps.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=1500, changes=(700,))
    >>> runs = [sp.simulate(policy, world, 20, replications=5) for policy in (SwitchingSEM(), sp.NDCSEM())]
    >>> bool(runs[0].final_regret.mean() < runs[1].final_regret.mean())
    True
    """

    graph: Any = "adaptive"

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SwitchingState:
        first = first_fields(self, problem, batch)
        line = (*batch, problem.n_arms)
        return SwitchingState(
            **first,
            last_pull=np.zeros(line, np.int64),
            in_flight=np.zeros(line),
            longest_delay=np.zeros(batch),
            typical_delay=np.zeros(batch),
            rewards_seen=np.zeros(line),
            prior=np.broadcast_to(self.prior_weights(problem), line).copy(),
            belief=empty_belief(problem.n_arms, batch),
            drift=empty_drift(problem.n_arms, batch),
            silence=empty_silence(problem.n_arms, batch),
            graph=self.graph.init(problem, batch),
        )

    def prior_weights(self, problem: Problem) -> Array:
        """If the order of the arms is known, an arm can affect all before it, so later arms may spill over more.

        The prior guess of each edge is 1 / n, so weights go from 1 to about e; before the first arrival only their
        order matters.
        """
        n = problem.n_arms
        if not problem.acyclic or self.graph.traits.signed or not self.graph.traits.learns:
            return np.ones(n)
        return np.asarray((1.0 + 1.0 / n) ** np.arange(n))

    @property
    def assumed_delay(self) -> int | None:
        """The delay that all outcomes are taken to have; None: each counts from its own round."""
        return None

    @property
    def dating(self) -> int:
        return delay_for_kernels(self.assumed_delay)

    # --- one learner ------------------------------------------------------------------------------------------------

    def prepare(self, s: Any) -> Any:
        kinds, hypotheses = s.belief.mass.shape
        laws, best = np.empty((4 + kinds, 2 * hypotheses)), np.empty(MOST_SORTED + 1)
        marks, places = np.empty((2, s.n_arms), np.bool_), np.empty(s.n_arms, np.int64)
        return SwitchingRoom(laws, best, marks, places, np.ones(1, np.bool_), self.graph.prepare(s.graph))

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """Weights, expected rewards, and these plus the value of information; mean and deviation of drifting means.

        The learned weights of arms with few rewards so far are raised towards the prior. Arms are ranked by weight
        times index.
        """
        belief, drift, room = s.belief, s.drift, turn.room
        drifting_forecast(
            drift.track, s.rounds + 1 - drift.latest[0], DRIFT_SCALE, DRIFT_VARIANCE, found[3], found[4]
        )  # fmt: skip
        value_arms(
            belief.mass, belief.untried, belief.counts, belief.changed, belief.changes, belief.redrawn, belief.mean,
            belief.seen, belief.latest[0], drift.probability[0], found[3], found[4], s.graph.weights, s.prior,
            s.rewards_seen, s.last_pull, s.in_flight, s.rounds, s.budget, s.reward_range, HAZARDS, SHARES, SHARE_PRIOR,
            IDLE_HAZARD, HORIZON + HORIZON_OF_DELAY * s.typical_delay, room.laws, room.best, turn.lines[5],
            turn.lines[6], found[0], found[1], found[2],
        )  # fmt: skip

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        found = turn.lines
        self.index(s, turn, found[:LINES])
        weigh(found[0], found[2])
        choose_top(found[2], s.budget, turn, x)

    def note_play(self, s: Any, x: Any) -> None:
        start_pulls(s.last_pull, s.in_flight, x, s.rounds, fade_of(s, s.belief.latest[0] > 0))

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        played_at, expected, room = date_of(lesson.round, s.rounds, self.dating), turn.lines[3], turn.room
        if lesson.arrival.shape[0] == 0:
            self.learn_round(s, lesson, turn, played_at, expected)
            room.whole[0] = True
        else:
            room.whole[0] = self.learn_news(s, lesson, turn, played_at, expected)
        if room.whole[0]:  # the graph needs whole rounds
            outcome = Outcome(lesson.z, lesson.y, played_at, lesson.memo)
            self.graph.absorb_outcome(s.graph, outcome, expected, 1.0, room.graph)

    def derive(self, s: Any, turn: Turn) -> None:
        if turn.room.whole[0]:
            self.graph.derive(s.graph, turn.room.graph)

    def learn_round(self, s: Any, lesson: Lesson, turn: Turn, played_at: Any, expected: Any) -> None:
        """Learn the rewards of a round; expected: what was expected of z, filled in."""
        self.learn_arms(s, lesson.x, lesson.z, 1.0, played_at, turn, expected)
        note_delay(s, played_at)
        weigh_silence(s.silence.answers, s.silence.odds, lesson.x, lesson.x, lesson.z, s.reward_range)
        rescale(s.reward_range, lesson.x, expected, expected)

    def learn_news(self, s: Any, lesson: Lesson, turn: Turn, played_at: Any, expected: Any) -> Any:
        """Learn the rewards of the arms of a round that have just reported; True if all of its arms have by now.

        If no more will come, arms that have not reported never will: that is evidence of a reward of 0, as far as
        silence has meant that.
        """
        x, arrival, marks, unused, nothing = lesson.x, lesson.arrival, turn.room.marks, turn.lines[4], turn.lines[5]
        known, some = marks[0], marks[1]
        self.expect(s, x, expected)
        news, lacking, complete = False, False, True
        for i in range(x.shape[0]):
            known[i], some[i] = arrival[i] <= s.rounds, x[i] and arrival[i] == s.rounds
            news |= some[i]
            lacking |= not known[i]
            complete &= known[i] or arrival[i] == NEVER
        if news:
            self.learn_arms(s, some, lesson.z, 1.0, played_at, turn, unused)
            note_delay(s, played_at)
        if complete:
            weight = weigh_silence(s.silence.answers, s.silence.odds, x, known, lesson.z, s.reward_range)
            silent = False
            for i in range(x.shape[0]):
                some[i], nothing[i] = x[i] and not known[i], min(max(0.0, s.reward_range[0]), s.reward_range[1])
                silent |= some[i]
            if silent:
                self.learn_arms(s, some, nothing, weight, played_at, turn, unused)
        return not lacking

    def expect(self, s: Any, x: Any, found: Any) -> None:
        """What is expected of z."""
        rescale(s.reward_range, x, s.belief.mean, found)

    def learn_arms(self, s: Any, x: Any, z: Any, weight: Any, played_at: Any, turn: Turn, expected: Any) -> None:
        """Learn rewards of some arms of a round; expected: what was expected of them, in units of the range."""
        belief, drift, reward, counted, likely = s.belief, s.drift, turn.lines[0], turn.lines[1], turn.lines[2]
        remains = fade_of(s, s.belief.latest[0] > 0) ** (s.rounds - played_at)
        take_rewards(s.in_flight, s.rewards_seen, x, z, s.reward_range, remains, reward)
        precision = learn_rewards(
            belief.change_round, belief.mass, belief.untried, belief.counts, belief.ratio, belief.idle_prior,
            belief.changed, belief.mean, belief.square, belief.seen, belief.latest, belief.detected, belief.spread,
            belief.changes, belief.redrawn, x, reward, weight, played_at, SHARES, SHARE_PRIOR, HAZARDS, IDLE_HAZARD,
            turn.room.laws, expected, counted, likely,
        )  # fmt: skip
        drifting_arrival(
            drift.track, drift.probability, drift.latest, x, reward, counted, likely, precision, weight, played_at,
            DRIFT_SCALE, DRIFT_VARIANCE, DRIFT_PRIOR, OTHER_WORLD,
        )  # fmt: skip

    # --- what it says -----------------------------------------------------------------------------------------------

    def signals(self, state: SwitchingState) -> dict[str, Any]:
        found: dict[str, Any] = {
            "latest": state.belief.seen,
            "changes_seen": state.belief.detected[..., 0],
            "drifts": state.drift.probability[..., 0],
        }
        of_graph: dict[str, Any] = self.graph.signals(state.graph)
        return found | of_graph

    def graph_errors(self, state: SwitchingState, weights: Array) -> GraphErrors | None:
        """The errors of the graph; where weights are shrunk towards their prior, by so much more."""
        found: GraphErrors | None = self.graph.errors(state.graph)
        if found is None:
            return None
        return found._replace(weights_variance=found.weights_variance + (weights - state.graph.weights) ** 2)

    @property
    def traits(self) -> Traits:
        fits_baseline = bool(self.graph.traits.fits_baseline)
        return super().traits._replace(order_free=False, accepts_missing=True, fits_baseline=fits_baseline)

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> Policy:
        """For few arms itself, if z is observed and there is no context; otherwise the policy for what is observed."""
        from spillover.policies.instrumental import InstrumentalSEM  # both derive their filter from this file
        from spillover.policies.payoff_regression import PayoffRegression

        if problem.observes == "payoff":
            return PayoffRegression()
        if problem.observes == "overall" or problem.context > 0:
            return InstrumentalSEM(signed=bool(self.graph.traits.signed))
        if problem.n_arms > MANY_ARMS and unchanged(self, OF_FEW):
            from spillover.policies.switching_many import SwitchingOfMany  # it derives from this class

            return SwitchingOfMany(graph=self.graph.for_problem(problem))
        return super().for_problem(problem, world)

    def believed(self, state: SwitchingState) -> tuple[Array, Array]:
        """Mean and expected square of each arm's mean if the means switch, in units of the range."""
        return state.belief.mean, state.belief.square

    def observations(self, state: SwitchingState) -> Array:
        """The expected number of observations behind each mean."""
        return observations(state.belief)

    def deviation(self, state: SwitchingState, level: Array, spread: Array) -> Array:
        """Standard deviation of each arm's mean, in units of the range; level, spread: if the means drift."""
        mean, square = self.believed(state)
        drifts = state.drift.probability
        both, squares = mean + drifts * (level - mean), square + drifts * (level**2 + spread**2 - square)
        return np.asarray(np.sqrt(np.maximum(squares - both**2, 0.0)))

    def explain(self, state: SwitchingState, rng: Rng) -> Explanation:
        lines = self.indices(state, rng, (LINES, state.prior.shape[-1]))
        weights, mean, index, level, spread = (lines[..., k, :] for k in range(LINES))
        errors = self.graph_errors(state, weights)
        found = self.outlined(state, weights, mean, index, None if errors is None else errors.baseline)
        deviation = self.deviation(state, level, spread) * (state.reward_range[..., 1:] - state.reward_range[..., :1])
        return replace(found, **intervals(found.adjacency, weights, found.gain, mean, deviation, errors))

    def outline(self, state: SwitchingState, rng: Rng) -> Explanation:
        weights, mean, index, _, _ = np.moveaxis(self.indices(state, rng, (LINES, state.prior.shape[-1])), -2, 0)
        return self.outlined(state, weights, mean, index)

    def outlined(
        self, state: SwitchingState, weights: Array, mean: Array, index: Array, baseline: Array | None = None
    ) -> Explanation:
        """An explanation without intervals. baseline: that of the graph, if it is known already."""
        return Explanation(
            mean=np.where(state.belief.seen > 0, mean, np.nan),
            count=self.observations(state),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=explained(state.graph),
            gain=np.array(self.graph.gain(state.graph)),
            weights=weights,
            score=scores(weights, index),
            pending=np.array(state.in_flight),
            baseline=self.graph.baseline(state.graph) if baseline is None else baseline,
        )


FOUR = ("select", "played", "update", "observe")
LEARNING = ("learn_arms", "learn_round", "learn_news", "expect")
OWN = ("init", "prior_weights", "assumed_delay", "decide", "index", "learn_outcome", "note_play", "believed")
OF_FEW = methods_of(SwitchingSEM, (*FOUR, *LEARNING, *OWN))  # the policy for many has its own


class SwitchingRoom(NamedTuple):
    """Room to work in."""

    laws: Any
    best: Any
    marks: Any  # (2, n) of booleans
    places: Any  # (n,) of whole numbers
    whole: Any  # (1,): whether the last outcome was of a whole round
    graph: Any


@inner
def note_delay(s: Any, played_at: Any) -> None:
    """Take in how late an outcome arrived."""
    age = float(s.rounds - played_at)
    ordinary = min(age, 2.0 * s.typical_delay + SOON)  # so that no straggler counts for much
    s.longest_delay = max(RECENT * s.longest_delay, age)
    s.typical_delay += TYPICAL * (ordinary - s.typical_delay)


@inner
def rescale(reward_range: Any, x: Any, share: Any, found: Any) -> None:
    """Rewards of the chosen arms from their position in the range."""
    low, high = reward_range[0], reward_range[1]
    for i in range(x.shape[0]):
        found[i] = low + (high - low) * share[i] if x[i] else 0.0
