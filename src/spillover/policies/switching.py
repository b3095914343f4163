"""SwitchingSEM: a filter for means that switch, on a learned graph; it counts pulls in flight and has no tuning."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.contracts import HISTORY, ROUND, CompiledRounds, Policy, methods_of, unchanged
from spillover.contracts.hyperparameters import check_grid
from spillover.graph.edges import refuse_infinite_weights
from spillover.graph.learner import MANY_ARMS, GraphErrors
from spillover.policies.dates import dated
from spillover.policies.graph_policy import GraphPolicy, scores
from spillover.policies.intervals import intervals
from spillover.policies.signals import gram_signal
from spillover.policies.switching_block import MOST_ARMS, CompactSwitching, play_blocks
from spillover.policies.switching_model import (
    CHANGE_PRIOR,
    DRIFT,
    OTHER_WORLD,
    RECENT,
    TYPICAL,
    settings_for_kernels,
)
from spillover.policies.switching_outcomes import (
    any_arrived,
    decision_arguments,
    fades,
    fading,
    is_whole,
    no_reward,
    rescaled,
    rewards,
    weigh_silence,
    with_delay,
)
from spillover.policies.switching_state import (
    DRIFT_PRIOR,
    SwitchingState,
    empty_belief,
    empty_drift,
    empty_silence,
    observations,
)
from spillover.rng import Rng
from spillover.state import map_leaves, repeat_in_place
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem, Stretch


@dataclass(frozen=True, kw_only=True)
class SwitchingSEM(GraphPolicy):
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

    order_free = False
    accepts_missing = True

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SwitchingState:
        validate.problem(problem)
        check_grid(self, batch)
        line = (*batch, problem.n_arms)
        return SwitchingState(
            rounds=np.zeros(batch, np.int64),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
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
        if not problem.acyclic or self.graph.signed or not self.graph.learns:
            return np.ones(n)
        return np.asarray((1.0 + 1.0 / n) ** np.arange(n))

    @property
    def kernels(self) -> tuple[str, ...]:
        return (
            *("switching_arrival", *self.graph.kernels[:2], "switching_index", *self.graph.kernels[2:]),
            *(
                "drifting_arrival",
                "weigh_silence",
                "take_rewards",
                "drifting_forecast",
                "feedback_fault",
                "start_pulls",
                "top_arms",
            ),
        )

    @property
    def assumed_delay(self) -> int | None:
        """The delay that all outcomes are taken to have; None: each counts from its own round."""
        return None

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled forms do what the methods do."""
        return bool(self.graph.fuses_comparison and unchanged(self, AS_COMPILED))

    @cached_property
    def for_kernels(self) -> Array:
        """The constants of the policy, in one array, for the kernels in `kernels/switching_rounds.py`."""
        return settings_for_kernels(bool(self.graph.signed), self.assumed_delay)

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        form = CompiledRounds(self.play_stretch, memos=3, draws_rewards=True, plays_parts=True)
        return form if self.is_compiled else None

    def play_stretch(self, state: SwitchingState, stretch: Stretch, rng: Rng) -> SwitchingState | None:
        return play_blocks(self, state, stretch, rng)

    def compact(self, state: SwitchingState) -> CompactSwitching | None:
        small = state.in_flight.shape[-1] <= MOST_ARMS
        return CompactSwitching(self, state) if self.is_compiled and small else None

    def means_and_index(self, state: SwitchingState) -> tuple[Array, Array, Array]:
        """Weights, expected rewards, and expected rewards plus the value of information.

        The learned weights are shrunk towards the prior for arms with few rewards so far.
        """
        belief = state.belief
        weights, mean, index = kernels.switching_index(
            belief.mass,
            belief.untried,
            belief.counts,
            belief.changed,
            belief.changes,
            belief.redrawn,
            belief.mean,
            belief.seen,
            belief.latest[..., 0],
            state.drift.probability[..., 0],
            *self.forecast(state),
            *decision_arguments(state),
        )
        return weights, mean, index

    def index(self, state: SwitchingState) -> Array:
        """Expected rewards plus the value of information: arms are ranked by weight times index."""
        return self.means_and_index(state)[2]

    def select(self, state: SwitchingState, rng: Rng) -> Choice:
        if not self.graph.bounded:
            refuse_infinite_weights(state.graph, deciding=True)
        weights, _, index = self.means_and_index(state)
        x = top_arms(scores(weights, index), state.budget, rng)
        return Choice(x, memo=self.graph.remember(state.graph))

    def played(self, state: SwitchingState, x: BoolArray) -> SwitchingState:
        x = validate.decision("x", x, state.in_flight.shape)
        rounds = state.rounds + 1
        last_pull, in_flight = kernels.start_pulls(state.last_pull, state.in_flight, x, rounds, *fades(state))
        return state._replace(rounds=rounds, last_pull=last_pull, in_flight=in_flight)

    def forecast(self, state: SwitchingState) -> tuple[Array, Array]:
        """Mean and standard deviation of each arm in the coming round, if the means drift."""
        elapsed = state.rounds + 1 - state.drift.latest[..., 0]
        mean, deviation = kernels.drifting_forecast(state.drift.track, elapsed, *DRIFT)
        return mean, deviation

    def learn(self, state: SwitchingState, feedback: Feedback, rng: Rng) -> SwitchingState:
        feedback = dated(feedback, self.assumed_delay, state.rounds)
        checks = state.in_flight.shape, state.reward_range, state.rounds
        if feedback.fresh is not None or feedback.checked or not validate.is_sound(feedback, *checks):
            if feedback.fresh is not None or not is_whole(feedback):
                return self.learn_part(state, feedback)
            feedback = validate.feedback(feedback, *checks)
        expected = self.learn_rewards(state, feedback, feedback.x, feedback.arrived)
        state = with_delay(state, feedback.age, feedback.arrived)
        weigh_silence(state, feedback, feedback.x, feedback.arrived)
        expected = rescaled(state.reward_range, feedback.x, expected, into=expected)
        return state._replace(graph=self.absorb(state.graph, feedback, state.rounds - feedback.age, expected))

    def learn_rewards(
        self, state: SwitchingState, feedback: Feedback, x: BoolArray, arrived: BoolArray, weight: Any = 1.0
    ) -> Array:
        """Learn the rewards of some chosen arms, in place; returns what was expected of them, in units of the range."""
        reward = kernels.take_rewards(
            state.in_flight,
            state.rewards_seen,
            x,
            feedback.z,
            state.reward_range,
            feedback.age,
            *fades(state),  # before the belief is rewritten
            arrived,
        )
        return self.learn_means(state, x, reward, weight, state.rounds - feedback.age, arrived)

    def learn_means(
        self, state: SwitchingState, x: BoolArray, reward: Array, weight: Any, played_at: IntArray, arrived: BoolArray
    ) -> Array:
        """Update the means, switching or drifting, in place; returns what was expected, in units of the range.

        It may use the memory of the rewards for that.
        """
        found = kernels.switching_arrival(*state.belief, x, reward, weight, played_at, *CHANGE_PRIOR, arrived)
        expected, counted, likely, precision = found
        evidence = (reward, counted, likely, precision, weight, played_at)
        kernels.drifting_arrival(*state.drift, x, *evidence, *DRIFT, DRIFT_PRIOR, OTHER_WORLD, arrived)
        return np.asarray(expected)

    def learn_part(self, state: SwitchingState, feedback: Feedback) -> SwitchingState:
        """Learn what is new of a round whose arms report at different times, or never.

        The graph needs whole rounds. If the round is complete, arms that have not reported never will: that is
        evidence of a reward of 0, as far as silence has meant that.
        """
        feedback = validate.partial_feedback(feedback, state.in_flight.shape, state.reward_range, state.rounds)
        x, arrived, here = feedback.x, feedback.arrived, feedback.arrived[..., None]
        known = here & ~np.isnan(feedback.z) & ~np.isnan(feedback.y)
        expected = rescaled(state.reward_range, x, self.believed(state)[0])
        fresh: BoolArray = known & x & (True if feedback.fresh is None else feedback.fresh)
        news = np.asarray(fresh.any(axis=-1))
        self.learn_rewards(state, feedback, fresh, news)
        state = with_delay(state, feedback.age, news)
        closed = known.all(axis=-1) if feedback.complete is None else feedback.complete
        complete = np.asarray(arrived & closed)
        weight = weigh_silence(state, feedback, known, complete)
        silent = x & ~known & complete[..., None]
        if silent.any():
            nothing = feedback._replace(z=np.broadcast_to(no_reward(state.reward_range), x.shape))
            self.learn_rewards(state, nothing, silent, np.asarray(silent.any(axis=-1)), weight)
        whole = np.asarray(known.all(axis=-1) & complete)
        z, y = (np.where(whole[..., None], part, 0.0) for part in (feedback.z, feedback.y))
        whole_rounds = feedback._replace(z=z, y=y, arrived=whole)
        return state._replace(graph=self.absorb(state.graph, whole_rounds, state.rounds - feedback.age, expected))

    def catch_up(self, state: SwitchingState, rounds: Feedback, first: int, rng: Rng) -> SwitchingState:
        count = len(rounds.x)
        in_parts = rounds.fresh is not None or rounds.complete is not None or not is_whole(rounds)
        if count < 2 or in_parts or not unchanged(self, LEARNING):
            few: SwitchingState = super().catch_up(state, rounds, first, rng)
            return few
        played_at = state.rounds + np.arange(1, count + 1)
        rounds = validate.feedback(rounds, rounds.x.shape, state.reward_range, played_at)
        x, arrived = rounds.x, rounds.arrived
        reward = rewards(state.reward_range, x, rounds.z)
        before: IntArray = np.cumsum(arrived) - arrived
        fade = fading(state.longest_delay * RECENT**before, any_arrived(state) | (before > 0))
        parts = state.belief, state.drift, state.silence, state.crowd
        belief, drift, silence, crowd = (map_leaves(lambda leaf: repeat_in_place(leaf, count), part) for part in parts)
        stacked = state._replace(belief=belief, drift=drift, silence=silence, crowd=crowd)
        seen_now = np.where(arrived[:, None], reward, 0.0).sum(axis=0)
        expected = self.learn_means(stacked, x, reward, 1.0, played_at, arrived)
        weigh_silence(stacked, rounds, x, arrived)
        graph = self.absorb_rounds(state.graph, rounds, played_at, rescaled(state.reward_range, x, expected))
        left = np.cumprod(fade[::-1])[::-1]  # what is left after the last round of a pull before each round
        pending = np.append(left[1:], 1.0)[~arrived] @ x[~arrived]
        latest = state.rounds + count - x[::-1].argmax(axis=0)
        return state._replace(
            rounds=state.rounds + count,
            last_pull=np.where(x.any(axis=0), latest, state.last_pull),
            in_flight=np.asarray(state.in_flight * left[0] + pending),
            longest_delay=np.asarray(state.longest_delay * RECENT ** arrived.sum()),
            typical_delay=np.asarray(state.typical_delay * (1.0 - TYPICAL) ** arrived.sum()),
            rewards_seen=state.rewards_seen + seen_now,
            graph=graph,
        )

    def signals(self, state: SwitchingState) -> dict[str, Any]:
        found: dict[str, Any] = {
            "latest": state.belief.seen,
            "changes_seen": self.changes_seen(state),
            "drifts": state.drift.probability[..., 0],
        }
        of_graph: dict[str, Any] = self.graph.signals(state.graph)
        return found | gram_signal(self.graph.gram(state.graph)) | of_graph

    def changes_seen(self, state: SwitchingState) -> Any:
        return state.belief.detected[..., 0]

    def graph_errors(self, state: SwitchingState, weights: Array) -> GraphErrors | None:
        """The errors of the graph; where weights are shrunk towards their prior, by so much more."""
        found: GraphErrors | None = self.graph.errors(state.graph)
        if found is None:
            return None
        return found._replace(weights_variance=found.weights_variance + (weights - state.graph.weights) ** 2)

    @property
    def fits_baseline(self) -> bool:
        return bool(self.graph.fits_baseline)

    def for_problem(self, problem: Problem) -> Policy:
        """For few arms itself, if z is observed and there is no context; otherwise the policy for what is observed."""
        from spillover.policies.instrumental import InstrumentalSEM  # both derive their filter from this file
        from spillover.policies.payoff_regression import PayoffRegression

        if problem.observes == "payoff":
            return PayoffRegression()
        if problem.observes == "overall" or problem.context > 0:
            return InstrumentalSEM(signed=bool(self.graph.signed))
        if problem.n_arms > MANY_ARMS and unchanged(self, AS_COMPILED) and unchanged(self, AROUND):
            from spillover.policies.switching_many import SwitchingOfMany  # it derives from this class

            return SwitchingOfMany(graph=self.graph.for_problem(problem))
        return super().for_problem(problem)

    def believed(self, state: SwitchingState) -> tuple[Array, Array]:
        """Mean and expected square of each arm's mean if the means switch, in units of the range."""
        return state.belief.mean, state.belief.square

    def observations(self, state: SwitchingState) -> Array:
        """The expected number of observations behind each mean."""
        return observations(state.belief)

    def deviation(self, state: SwitchingState) -> Array:
        """Standard deviation of each arm's mean, in units of the range."""
        mean, square = self.believed(state)
        level, spread = self.forecast(state)
        drifts = state.drift.probability
        both, squares = mean + drifts * (level - mean), square + drifts * (level**2 + spread**2 - square)
        return np.asarray(np.sqrt(np.maximum(squares - both**2, 0.0)))

    def explain(self, state: SwitchingState, rng: Rng) -> Explanation:
        weights, mean, index = self.means_and_index(state)
        found = self.outlined(state, weights, mean, index)
        deviation = self.deviation(state) * (state.reward_range[..., 1:] - state.reward_range[..., :1])
        errors = self.graph_errors(state, weights)
        return replace(found, **intervals(found.adjacency, weights, found.gain, mean, deviation, errors))

    def outline(self, state: SwitchingState, rng: Rng) -> Explanation:
        return self.outlined(state, *self.means_and_index(state))

    def outlined(self, state: SwitchingState, weights: Array, mean: Array, index: Array) -> Explanation:
        """An explanation without intervals."""
        return Explanation(
            mean=np.where(state.belief.seen > 0, mean, np.nan),
            count=self.observations(state),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=self.graph.explained(state.graph),
            gain=np.array(self.graph.gain(state.graph)),
            weights=weights,
            score=scores(weights, index),
            pending=np.array(state.in_flight),
            baseline=self.graph.baseline(state.graph),
        )


MEANS = ("means_and_index", "index", "forecast", "believed", "learn_rewards", "learn_means", "learn_part", "absorb")
AS_COMPILED = methods_of(SwitchingSEM, (*ROUND, *MEANS))
LEARNING = methods_of(SwitchingSEM, (*HISTORY, "learn_rewards", "learn_part", "absorb", "assumed_delay"))
# what else a policy for many arms would do in its own way
AROUND = methods_of(SwitchingSEM, ("init", "prior_weights", "catch_up", "absorb_rounds", "assumed_delay"))
