"""SwitchingSEM: means that switch, a learned graph, pulls in flight that count; nothing to tune."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.hyperparameters import check_grid
from spillover.policies.graph_policy import GraphPolicy, scores
from spillover.policies.signals import gram_signal
from spillover.rng import Rng
from spillover.set_search import top_arms
from spillover.state import repeat_in_place
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem

HYPOTHESES = 20  # about the time of the last change; the least probable one makes room for a new one
HAZARD = 1e-3  # of a change that may touch many arms, a round
IDLE_HAZARD = 1e-4  # of an unseen change of one arm that is not played, a round
SHARES = np.array([0.0, 0.2, 0.9])  # of arms that a change touches; the first stands for idle arms alone
SHARE_PRIOR = np.array([0.0, 0.5, 0.5])
CHANGE_PRIOR = (SHARES, SHARE_PRIOR, HAZARD, IDLE_HAZARD)
HORIZON = 50.0  # rounds over which a better arm pays off
DOUBT = 10.0  # rewards for which continuous ones are taken to vary as much as Bernoulli draws
RECENT = 0.99  # factor on the longest delay with every arrival that took less
SOON = 20.0  # rounds of delay that are never unusual
PATIENCE = 2.0  # a pull is dropped after about so many times the longest delay so far


class Belief(NamedTuple):
    """The posterior over the hypotheses "the last change was at round r", with Beta counts (ones, zeros)."""

    change_round: IntArray  # (*batch, k): r; 0 for the hypothesis that nothing has ever changed
    mass: Array  # (*batch, k, shares): joint probability of r and of the share of arms that changed then
    counts_unchanged: Array  # (*batch, k, n, 2): counts of an arm if it did not change at r
    counts_since: Array  # (*batch, k, n, 2): counts since r
    ratio: Array  # (*batch, k, n): how much better the rewards since r fit an arm that changed
    idle_prior: Array  # (*batch, k, n): among changes of idle arms alone, the prior probability that it was this one
    changed: Array  # (*batch, k, n): probability under r that the arm changed at r
    seen: IntArray  # (*batch, n): latest round of play with a reward of the arm
    latest: IntArray  # (*batch, 1): latest round of play whose outcome has arrived
    detected: IntArray  # (*batch, 2): changes detected so far, and the likeliest round of the last one
    spread: Array  # (*batch, 2): sums of m (1 - m) and of z (1 - z), for the information in a reward


class SwitchingState(NamedTuple):
    """All that SwitchingSEM has learned."""

    rounds: IntArray  # (*batch,): rounds played
    budget: IntArray  # (*batch,)
    reward_range: Array  # (*batch, 2): of z
    last_pull: IntArray  # (*batch, n): its round
    in_flight: Array  # (*batch, n): pulls whose outcome is still expected
    longest_delay: Array  # (*batch,): of recent arrivals; a straggler is forgotten
    rewards_seen: Array  # (*batch, n): sum of the rewards that have arrived, in units of the range
    prior: Array  # (*batch, n): weights before anything is known
    belief: Belief
    graph: Any


def empty_belief(n_arms: int, batch: Batch) -> Belief:
    hypotheses = (*batch, HYPOTHESES, n_arms)
    mass = np.zeros((*batch, HYPOTHESES, len(SHARES)))
    mass[..., 0, 0] = 1.0  # nothing has changed
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

    Each arm's mean is constant until it changes: together with a share of the other arms, or alone. The posterior over
    when the last change was is filtered exactly (20 hypotheses are kept). The decision takes the s arms with the
    largest expected effect, direct plus spilled over. Another arm is tried where its expected improvement outweighs its
    cost, less so the more of its pulls are still in flight. See docs/switching.md for the model.

    graph: how the graph is learned, as in `NDCSEM`; by default whichever graph learner predicts the payoff best, and
        no graph where none helps.

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
            graph=self.learner.init(problem, batch),
        )

    def prior_weights(self, problem: Problem) -> Array:
        """Where the order of the arms is known, an arm can act on all before it: a later arm may spill over more.

        Each edge is guessed to be 1 / n, so weights are from 1 to about e; before the first arrival only their order
        matters.
        """
        n = problem.n_arms
        if not problem.acyclic or self.learner.signed or not self.learner.learns:
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
        """What arms are ranked by, times their weights."""
        return self.means_and_index(state)[2]

    def select(self, state: SwitchingState, rng: Rng) -> Choice:
        weights, _, index = self.means_and_index(state)
        x = top_arms(scores(weights, index), state.budget, rng)
        return Choice(x, memo=self.learner.remember(state.graph))

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
        kernels.switching_arrival(*state.belief, x, reward, played_at, *CHANGE_PRIOR, arrived)
        longest = np.where(arrived, np.maximum(RECENT * state.longest_delay, age), state.longest_delay)
        return state._replace(
            in_flight=np.asarray(in_flight),
            longest_delay=longest,
            rewards_seen=state.rewards_seen + np.where(x & arrived[..., None], reward, 0.0),
            graph=self.absorb(state.graph, feedback, played_at),
        )

    def catch_up(self, state: SwitchingState, rounds: Feedback, first: int, rng: Rng) -> SwitchingState:
        count = len(rounds.x)
        if not count or not self.learner.deferrable:
            one_by_one: SwitchingState = super().catch_up(state, rounds, first, rng)
            return one_by_one
        played_at = state.rounds + np.arange(1, count + 1)
        rounds = validate.feedback(rounds, rounds.x.shape, state.reward_range, played_at)
        x, arrived = rounds.x, rounds.arrived
        reward = rewards(state.reward_range, x, rounds.z)
        before: IntArray = np.cumsum(arrived) - arrived
        fade = fading(state.longest_delay * RECENT**before, any_arrived(state) | (before > 0))
        belief = (repeat_in_place(leaf, count) for leaf in state.belief)
        with ThreadPoolExecutor(1) as beside:  # belief and graph share nothing, and kernels run without Python's lock
            filtered = beside.submit(kernels.switching_arrival, *belief, x, reward, played_at, *CHANGE_PRIOR, arrived)
            graph = self.absorb_rounds(state.graph, rounds, played_at)
            filtered.result()
        left = np.cumprod(fade[::-1])[::-1]  # of a pull before each round, after the last
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
        found = {"latest": state.belief.seen, "changes_seen": state.belief.detected[..., 0]}
        return found | gram_signal(self.learner.gram(state.graph))

    def explain(self, state: SwitchingState, rng: Rng) -> Explanation:
        weights, mean, index = self.means_and_index(state)
        seen = state.belief.seen > 0
        return Explanation(
            mean=np.where(seen, mean, np.nan),
            count=np.where(seen, observations(state.belief), 0.0),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=np.array(state.graph.adjacency),
            gain=np.array(self.learner.gain(state.graph)),
            weights=weights,
            score=scores(weights, index),
            pending=np.array(state.in_flight),
        )


def rewards(reward_range: Array, x: BoolArray, z: Array) -> Array:
    """Rewards of the chosen arms, in units of the range."""
    low, high = reward_range[..., :1], reward_range[..., 1:]
    return np.where(x, np.clip((z - low) / (high - low), 0.0, 1.0), 0.0)


def any_arrived(state: SwitchingState) -> BoolArray:
    """Whether anything has arrived yet."""
    return np.asarray(state.belief.latest[..., 0] > 0)


def fading(longest_delay: Array, any_arrived: BoolArray) -> Array:
    """What remains of a pull in flight after a round: it is dropped once it is later than any delay seen so far."""
    expected = np.maximum(longest_delay, SOON)
    return np.asarray(np.where(any_arrived, 1.0 - 1.0 / (PATIENCE * (expected + 1.0)), 1.0))


def observations(belief: Belief) -> Array:
    """How many observations stand behind each mean, in expectation over the hypotheses."""
    probability = belief.mass.sum(axis=-1)[..., None]
    unchanged, since = belief.counts_unchanged.sum(axis=-1) - 2.0, belief.counts_since.sum(axis=-1) - 2.0
    return np.asarray((probability * (unchanged + belief.changed * (since - unchanged))).sum(axis=-2))
