"""SwitchingSEM: a filter for means that switch, on a learned graph; it counts pulls in flight and has no tuning."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Policy
from spillover.graph.learner import GraphErrors
from spillover.hyperparameters import check_grid
from spillover.policies.graph_policy import GraphPolicy, scores
from spillover.policies.intervals import intervals
from spillover.policies.signals import gram_signal
from spillover.rng import Rng
from spillover.set_search import top_arms
from spillover.state import repeat_in_place
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Choice,
    Constant,
    Explanation,
    Feedback,
    IntArray,
    Likelihood,
    Probability,
    Problem,
    Round,
    Rounds,
)

HYPOTHESES = 20  # about the time of the last change; a new one replaces the least probable
HAZARD = 1e-3  # probability a round of a change that may affect many arms
IDLE_HAZARD = 1e-4  # probability a round that an arm that is not played changes unobserved
SHARES = np.array([0.0, 0.2, 0.9])  # of the arms that a change affects; the first is for changes of one idle arm
SHARE_PRIOR = np.array([0.0, 0.5, 0.5])
CHANGE_PRIOR = (SHARES, SHARE_PRIOR, HAZARD, IDLE_HAZARD)
HORIZON = 50.0  # rounds over which a better arm pays off
DOUBT = 10.0  # weight, in rewards, of the prior that continuous rewards vary as much as Bernoulli draws
RECENT = 0.99  # decay of the longest delay with every shorter one
SOON = 20.0  # delays of up to so many rounds are always expected
PATIENCE = 2.0  # a pull is dropped after about so many times the longest delay so far


class Belief(NamedTuple):
    """The posterior over the hypotheses "the last change was at round r", with Beta counts (ones, zeros)."""

    change_round: Round  # (*batch, k): r; 0 for the hypothesis that nothing has ever changed
    mass: Probability  # (*batch, k, shares): joint probability of r and of the share of arms that changed at r
    counts_unchanged: Amount  # (*batch, k, n, 2): counts of an arm if it did not change at r
    counts_since: Amount  # (*batch, k, n, 2): counts since r
    ratio: Likelihood  # (*batch, k, n): likelihood ratio of the rewards since r, changed against unchanged
    idle_prior: Probability  # (*batch, k, n): prior probability of each arm, if the change was of one idle arm
    changed: Probability  # (*batch, k, n): probability under r that the arm changed at r
    seen: Round  # (*batch, n): latest round of play with a reward of the arm
    latest: Round  # (*batch, 1): latest round of play whose outcome has arrived
    detected: Round  # (*batch, 2): changes detected so far, and the likeliest round of the last one
    spread: Amount  # (*batch, 2): sums of m (1 - m) and of z (1 - z), which give the precision of a reward


class SwitchingState(NamedTuple):
    """What SwitchingSEM has learned."""

    rounds: Rounds  # (*batch,): rounds played
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z
    last_pull: Round  # (*batch, n): its round
    in_flight: Amount  # (*batch, n): pulls whose outcome is still expected
    longest_delay: Amount  # (*batch,): of recent arrivals; old extremes decay
    rewards_seen: Amount  # (*batch, n): sum of the rewards that have arrived, in units of the range
    prior: Constant[Array]  # (*batch, n): prior weights
    belief: Belief
    graph: Any


def empty_belief(n_arms: int, batch: Batch) -> Belief:
    hypotheses = (*batch, HYPOTHESES, n_arms)
    mass = np.zeros((*batch, HYPOTHESES, len(SHARES)))
    mass[..., 0, 0] = 1.0  # no change so far
    return Belief(
        change_round=np.zeros((*batch, HYPOTHESES), np.int64),
        mass=mass,
        counts_unchanged=np.ones((*hypotheses, 2)),
        counts_since=np.ones((*hypotheses, 2)),
        ratio=np.ones(hypotheses),
        idle_prior=np.zeros(hypotheses),
        changed=np.zeros(hypotheses),
        seen=np.zeros((*batch, n_arms), np.int64),
        latest=np.zeros((*batch, 1), np.int64),
        detected=np.zeros((*batch, 2), np.int64),
        spread=np.broadcast_to([DOUBT / 4.0, 0.0], (*batch, 2)).copy(),
    )


@dataclass(frozen=True, kw_only=True)
class SwitchingSEM(GraphPolicy):
    """The policy to start with: no discount, no exploration rate, any delay, Bernoulli or continuous rewards.

    Each arm's mean is constant until it changes, together with a share of the other arms or alone. An exact filter
    tracks the time of the last change (20 hypotheses are kept). The decision is the s arms with the largest expected
    total effect, direct plus spill-over, plus an exploration bonus: the expected improvement from trying an arm, which
    is smaller while pulls of the arm are in flight. See docs/switching.md for the model.

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
            rewards_seen=np.zeros(line),
            prior=np.broadcast_to(self.prior_weights(problem), line).copy(),
            belief=empty_belief(problem.n_arms, batch),
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

    def weights(self, state: SwitchingState) -> Array:
        """The learned weights, shrunk towards the prior for arms with few rewards so far."""
        learned = state.graph.weights
        return np.asarray(learned + (state.prior - learned) / (1.0 + state.rewards_seen) ** 2)

    def means_and_index(self, state: SwitchingState) -> tuple[Array, Array, Array]:
        """Weights, expected rewards, and expected rewards plus the value of information."""
        belief, weights = state.belief, self.weights(state)
        low, high = state.reward_range[..., :1], state.reward_range[..., 1:]
        mean, index = kernels.switching_index(
            belief.mass,
            belief.counts_unchanged,
            belief.counts_since,
            belief.changed,
            weights,
            state.last_pull,
            state.in_flight,
            state.rounds,
            state.budget,
            (low / (high - low))[..., 0],
            IDLE_HAZARD,
            HORIZON,
        )
        return weights, np.asarray(low + (high - low) * mean), np.asarray(low + (high - low) * index)

    def index(self, state: SwitchingState) -> Array:
        """Expected rewards plus the value of information: arms are ranked by weight times index."""
        return self.means_and_index(state)[2]

    def select(self, state: SwitchingState, rng: Rng) -> Choice:
        weights, _, index = self.means_and_index(state)
        x = top_arms(scores(weights, index), state.budget, rng)
        return Choice(x, memo=self.graph.remember(state.graph))

    def played(self, state: SwitchingState, x: BoolArray) -> SwitchingState:
        x = validate.decision("x", x, state.in_flight.shape)
        rounds = state.rounds + 1
        return state._replace(
            rounds=rounds,
            last_pull=np.where(x, rounds[..., None], state.last_pull),
            in_flight=state.in_flight * fading(state.longest_delay, any_arrived(state))[..., None] + x,
        )

    def learn(self, state: SwitchingState, feedback: Feedback, rng: Rng) -> SwitchingState:
        feedback = validate.feedback(feedback, state.in_flight.shape, state.reward_range, state.rounds)
        x, age, arrived = feedback.x, feedback.age, feedback.arrived
        reward, played_at = rewards(state.reward_range, x, feedback.z), state.rounds - age
        fade = fading(state.longest_delay, any_arrived(state))  # before the belief is rewritten
        in_flight = kernels.end_pulls(state.in_flight, x, fade, age, arrived)
        expected = kernels.switching_arrival(*state.belief, x, reward, played_at, *CHANGE_PRIOR, arrived)
        longest = np.where(arrived, np.maximum(RECENT * state.longest_delay, age), state.longest_delay)
        return state._replace(
            in_flight=np.asarray(in_flight),
            longest_delay=longest,
            rewards_seen=state.rewards_seen + np.where(x & arrived[..., None], reward, 0.0),
            graph=self.absorb(state.graph, feedback, played_at, rescaled(state.reward_range, x, expected)),
        )

    def catch_up(self, state: SwitchingState, rounds: Feedback, first: int, rng: Rng) -> SwitchingState:
        count = len(rounds.x)
        if count < 2:
            few: SwitchingState = super().catch_up(state, rounds, first, rng)
            return few
        played_at = state.rounds + np.arange(1, count + 1)
        rounds = validate.feedback(rounds, rounds.x.shape, state.reward_range, played_at)
        x, arrived = rounds.x, rounds.arrived
        reward = rewards(state.reward_range, x, rounds.z)
        before: IntArray = np.cumsum(arrived) - arrived
        fade = fading(state.longest_delay * RECENT**before, any_arrived(state) | (before > 0))
        belief = (repeat_in_place(leaf, count) for leaf in state.belief)
        expected = kernels.switching_arrival(*belief, x, reward, played_at, *CHANGE_PRIOR, arrived)
        graph = self.absorb_rounds(state.graph, rounds, played_at, rescaled(state.reward_range, x, expected))
        left = np.cumprod(fade[::-1])[::-1]  # what is left after the last round of a pull before each round
        pending = np.append(left[1:], 1.0)[~arrived] @ x[~arrived]
        latest = state.rounds + count - x[::-1].argmax(axis=0)
        return state._replace(
            rounds=state.rounds + count,
            last_pull=np.where(x.any(axis=0), latest, state.last_pull),
            in_flight=np.asarray(state.in_flight * left[0] + pending),
            longest_delay=np.asarray(state.longest_delay * RECENT ** arrived.sum()),
            rewards_seen=state.rewards_seen + np.where(arrived[:, None], reward, 0.0).sum(axis=0),
            graph=graph,
        )

    def signals(self, state: SwitchingState) -> dict[str, Any]:
        found: dict[str, Any] = {"latest": state.belief.seen, "changes_seen": state.belief.detected[..., 0]}
        of_graph: dict[str, Any] = self.graph.signals(state.graph)
        return found | gram_signal(self.graph.gram(state.graph)) | of_graph

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
        """Itself if z is observed and there is no context; otherwise the policy for what is observed."""
        from spillover.policies.instrumental import InstrumentalSEM  # both derive their filter from this file
        from spillover.policies.payoff_regression import PayoffRegression

        if problem.observes == "payoff":
            return PayoffRegression()
        if problem.observes == "overall" or problem.context > 0:
            return InstrumentalSEM(signed=bool(self.graph.signed))
        return self

    def explain(self, state: SwitchingState, rng: Rng) -> Explanation:
        weights, mean, index = self.means_and_index(state)
        seen, gain = state.belief.seen > 0, np.array(self.graph.gain(state.graph))
        deviation = belief_deviation(state.belief) * (state.reward_range[..., 1:] - state.reward_range[..., :1])
        return Explanation(
            mean=np.where(seen, mean, np.nan),
            count=np.where(seen, observations(state.belief), 0.0),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=np.array(state.graph.adjacency),
            gain=gain,
            weights=weights,
            score=scores(weights, index),
            pending=np.array(state.in_flight),
            **intervals(state.graph.adjacency, weights, gain, mean, deviation, self.graph_errors(state, weights)),
        )


def rewards(reward_range: Array, x: BoolArray, z: Array) -> Array:
    """Rewards of the chosen arms, in units of the range."""
    low, high = reward_range[..., :1], reward_range[..., 1:]
    return np.where(x, np.clip((z - low) / (high - low), 0.0, 1.0), 0.0)


def rescaled(reward_range: Array, x: BoolArray, share: Array) -> Array:
    """Rewards of the chosen arms from their position in the range."""
    low, high = reward_range[..., :1], reward_range[..., 1:]
    return np.where(x, low + (high - low) * share, 0.0)


def any_arrived(state: SwitchingState) -> BoolArray:
    """Whether anything has arrived yet."""
    return np.asarray(state.belief.latest[..., 0] > 0)


def fading(longest_delay: Array, any_arrived: BoolArray) -> Array:
    """The share of a pull in flight that remains after a round: late pulls fade, faster if delays have been short."""
    expected = np.maximum(longest_delay, SOON)
    return np.asarray(np.where(any_arrived, 1.0 - 1.0 / (PATIENCE * (expected + 1.0)), 1.0))


def observations(belief: Belief) -> Array:
    """The expected number of observations behind each mean, over the hypotheses."""
    probability = belief.mass.sum(axis=-1)[..., None]
    unchanged, since = belief.counts_unchanged.sum(axis=-1) - 2.0, belief.counts_since.sum(axis=-1) - 2.0
    return np.asarray((probability * (unchanged + belief.changed * (since - unchanged))).sum(axis=-2))


def belief_deviation(belief: Belief) -> Array:
    """Standard deviation of each arm's mean, over the hypotheses, in units of the range."""
    probability = belief.mass.sum(axis=-1)[..., None]
    mean, square = np.zeros(belief.seen.shape), np.zeros(belief.seen.shape)
    for counts, share in ((belief.counts_unchanged, 1.0 - belief.changed), (belief.counts_since, belief.changed)):
        ones, total = counts[..., 0], counts.sum(axis=-1)
        mean += (probability * share * ones / total).sum(axis=-2)
        square += (probability * share * ones * (ones + 1.0) / (total * (total + 1.0))).sum(axis=-2)
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
