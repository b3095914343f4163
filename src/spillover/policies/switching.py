"""SwitchingSEM: means that switch, a graph that is learned, pulls under way that count; nothing to set."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.graph import ROW_BOUND, NoGraph, absorb_rounds
from spillover.oracle import top_arms
from spillover.policies.sem import LearnsGraph, judge_rounds, scores
from spillover.policies.signals import gram_of
from spillover.rng import Purpose, Rng
from spillover.state import in_turn
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem

HYPOTHESES = 20  # of when the last change was; the least probable one makes room for a new one
HAZARD = 1e-3  # of a change that may touch many arms, a round
IDLE_HAZARD = 1e-4  # of a change of one arm that nobody sees because it is not played, a round
SHARES = np.array([0.0, 0.2, 0.9])  # of arms that a change touches; the first stands for idle arms alone
SHARE_PRIOR = np.array([0.0, 0.5, 0.5])
HORIZON = 50.0  # rounds over which a better arm pays off
DOUBT = 10.0  # rewards for which continuous ones are taken to vary as much as Bernoulli draws
RECENT = 0.99  # what is left of the longest delay with every arrival that took less
SOON = 20.0  # rounds of delay that are nothing unusual, whatever was met so far
PATIENCE = 2.0  # pulls are given up on after about so many times the longest delay met


class Belief(NamedTuple):
    """What the rewards say of each hypothesis "the last change was at round r", with Beta counts (ones, zeros)."""

    born: IntArray  # (*batch, k): r; 0 for the one that nothing has ever changed
    mass: Array  # (*batch, k, shares): joint probability of r and of the share of arms that changed then
    kept: Array  # (*batch, k, n, 2): counts of an arm if it did not change at r
    fresh: Array  # (*batch, k, n, 2): counts since r
    ratio: Array  # (*batch, k, n): how much better the rewards since r fit an arm that changed
    silent: Array  # (*batch, k, n): among changes of idle arms alone, the prior probability that it was this one
    changed: Array  # (*batch, k, n): probability under r that the arm changed at r
    seen: IntArray  # (*batch, n): latest round of play with a reward of the arm
    latest: IntArray  # (*batch, 1): latest round of play that was heard of
    noticed: IntArray  # (*batch, 2): changes noticed so far, and the likeliest round of the last one
    spread: Array  # (*batch, 2): sums of m (1 - m) and of z (1 - z), for how much a reward tells


class SwitchingState(NamedTuple):
    """All that SwitchingSEM has learned."""

    rounds: IntArray  # (*batch,): rounds played
    budget: IntArray  # (*batch,)
    limits: Array  # (*batch, 2): range of z
    pulled: IntArray  # (*batch, n): round of the last pull
    flight: Array  # (*batch, n): pulls whose outcome is still expected
    longest: Array  # (*batch,): longest delay met of late; a straggler is forgotten
    effects: Array  # (*batch, n): rewards that have arrived, in units of the range: what the weights were learned from
    prior: Array  # (*batch, n): weights before anything is known
    belief: Belief
    graph: Any


def no_belief(n_arms: int, batch: Batch) -> Belief:
    hypotheses = (*batch, HYPOTHESES, n_arms)
    mass = np.zeros((*batch, HYPOTHESES, len(SHARES)))
    mass[..., 0, 0] = 1.0  # nothing has changed
    return Belief(
        born=np.zeros((*batch, HYPOTHESES), np.int64),
        mass=mass,
        kept=np.ones((*hypotheses, 2)),
        fresh=np.ones((*hypotheses, 2)),
        ratio=np.ones(hypotheses),
        silent=np.zeros(hypotheses),
        changed=np.zeros(hypotheses),
        seen=np.zeros((*batch, n_arms), np.int64),
        latest=np.zeros((*batch, 1), np.int64),
        noticed=np.zeros((*batch, 2), np.int64),
        spread=np.broadcast_to([DOUBT / 4.0, 0.0], (*batch, 2)).copy(),
    )


@dataclass(frozen=True, kw_only=True)
class SwitchingSEM(LearnsGraph):
    """The policy to start with: no discount, no exploration rate, any delay, Bernoulli or continuous rewards.

    Each arm's mean stays until it is drawn anew: together with a share of the others, or alone. All hypotheses of when
    that was last are weighed by the rewards (20 are kept). The decision takes the s arms with the most expected
    effect, direct plus spilled over; another arm is tried where what it may bring outweighs what it costs, and the
    less, the more of its pulls are still under way. See docs/switching.md for the model.

    graph, sparsity, row_bound, required, forbidden, signed: how the graph is learned, as in `NDCSEM`; as it comes,
    whichever way foretells the payoff best, and none where none helps.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=1500, changes=(700,))
    >>> runs = [sp.simulate(policy, world, 20, replications=5) for policy in (SwitchingSEM(), sp.NDCSEM())]
    >>> bool(runs[0].final_regret.mean() < runs[1].final_regret.mean())
    True
    """

    graph: Any = "adaptive"
    sparsity: Any = 1e-3
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    signed: bool = False

    order_free = False
    grids = ("sparsity",)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SwitchingState:
        validate.problem(problem)
        validate.grid(self, batch)
        line = (*batch, problem.n_arms)
        return SwitchingState(
            rounds=np.zeros(batch, np.int64),
            budget=np.full(batch, problem.budget, np.int64),
            limits=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
            pulled=np.zeros(line, np.int64),
            flight=np.zeros(line),
            longest=np.zeros(batch),
            effects=np.zeros(line),
            prior=np.broadcast_to(self.weights_before(problem), line).copy(),
            belief=no_belief(problem.n_arms, batch),
            graph=self.learner.init(problem, batch),
        )

    def weights_before(self, problem: Problem) -> Array:
        """Where the order of the arms is known, an arm can act on all before it: the later, the more it may spill over.

        1 / n an edge is the guess, so weights from 1 to about e; while nothing has arrived, only their order matters.
        """
        n = problem.n_arms
        if not problem.acyclic or self.signed or isinstance(self.learner, NoGraph):
            return np.ones(n)
        return np.asarray((1.0 + 1.0 / n) ** np.arange(n))

    def weights(self, state: SwitchingState) -> Array:
        """The learned ones, led by the prior for arms of which hardly any effect has arrived."""
        learned = state.graph.weights
        return np.asarray(learned + (state.prior - learned) / (1.0 + state.effects) ** 2)

    def judged(self, state: SwitchingState) -> tuple[Array, Array, Array]:
        """Weights, expected rewards, and these plus what finding out is worth."""
        belief, weights = state.belief, self.weights(state)
        low, high = state.limits[..., :1], state.limits[..., 1:]
        mean, index = kernels.switching_index(
            belief.mass,
            belief.kept,
            belief.fresh,
            belief.changed,
            weights,
            state.pulled,
            state.flight,
            state.rounds,
            state.budget,
            (low / (high - low))[..., 0],
            IDLE_HAZARD,
            HORIZON,
        )
        return weights, np.asarray(low + (high - low) * mean), np.asarray(low + (high - low) * index)

    def index(self, state: SwitchingState) -> Array:
        """What an arm is ranked by, times its weight."""
        return self.judged(state)[2]

    def select(self, state: SwitchingState, rng: Rng) -> Choice:
        remember = getattr(self.learner, "remember", None)
        memo = None if remember is None else remember(state.graph)
        weights, _, index = self.judged(state)
        return Choice(top_arms(scores(weights, index), state.budget, rng), memo)

    def played(self, state: SwitchingState, x: BoolArray) -> SwitchingState:
        x = validate.decision("x", x, state.flight.shape)
        rounds = state.rounds + 1
        return state._replace(
            rounds=rounds,
            pulled=np.where(x, rounds[..., None], state.pulled),
            flight=state.flight * fading(state.longest, heard_before(state))[..., None] + x,
        )

    def update(self, state: SwitchingState, feedback: Feedback, rng: Rng) -> SwitchingState:
        x, z, y, age, arrived, memo = validate.feedback(feedback, state.flight.shape, state.limits, state.rounds)
        reward, moment = rewards(state.limits, x, z), state.rounds - age
        fade = fading(state.longest, heard_before(state))  # before the belief is rewritten
        flight = kernels.end_pulls(state.flight, x, fade, age, arrived)
        kernels.switching_arrival(*state.belief, x, reward, moment, SHARES, SHARE_PRIOR, HAZARD, IDLE_HAZARD, arrived)
        judge = getattr(self.learner, "judge", None)
        graph = state.graph if judge is None else judge(state.graph, z, y, arrived, memo)
        heard = x & arrived[..., None]
        return state._replace(
            flight=np.asarray(flight),
            longest=np.where(arrived, np.maximum(RECENT * state.longest, age), state.longest),
            effects=state.effects + np.where(heard, reward, 0.0),
            graph=self.learner.solve(self.learner.absorb(graph, z, y, arrived, moment)),
        )

    def catch_up(self, state: SwitchingState, rounds: Feedback) -> SwitchingState:
        """Many rounds of one learner at once, the first axis, in their order; outcomes came at the end of each.

        As `played` and `update` for each of them, but that no graph is solved for.
        """
        count, shape = len(rounds.x), rounds.x.shape
        if not count:
            return state
        moment = state.rounds + np.arange(1, count + 1)
        x, z, y, _, arrived, memo = validate.feedback(rounds, shape, state.limits, moment)
        reward, before = rewards(state.limits, x, z), np.cumsum(arrived) - arrived
        fade = fading(state.longest * RECENT**before, heard_before(state) | (before > 0))
        belief = (in_turn(leaf, count) for leaf in state.belief)
        told = (x, reward, moment, SHARES, SHARE_PRIOR, HAZARD, IDLE_HAZARD, arrived)
        with ThreadPoolExecutor(1) as beside:  # belief and graph share nothing, and kernels run without Python's lock
            weighed = beside.submit(kernels.switching_arrival, *belief, *told)
            graph = judge_rounds(self.learner, state.graph, z, y, arrived, memo)
            graph = absorb_rounds(self.learner, graph, z, y, arrived, moment)
            weighed.result()
        left = np.cumprod(fade[::-1])[::-1]  # of a pull before each round, after the last
        pending = np.append(left[1:], 1.0)[~arrived] @ x[~arrived]
        latest = state.rounds + count - x[::-1].argmax(axis=0)
        return state._replace(
            rounds=state.rounds + count,
            pulled=np.where(x.any(axis=0), latest, state.pulled),
            flight=np.asarray(state.flight * left[0] + pending),
            longest=np.asarray(state.longest * RECENT ** arrived.sum()),
            effects=state.effects + np.where(arrived[:, None], reward, 0.0).sum(axis=0),
            graph=graph,
        )

    def signals(self, state: SwitchingState) -> dict[str, Any]:
        """What health signals need (`spillover.policies.signals`)."""
        told: dict[str, Any] = {"latest": state.belief.seen, "changes_seen": state.belief.noticed[..., 0]}
        gram = gram_of(state.graph)
        return told if gram is None else told | {"gram": gram}

    def explain(self, state: SwitchingState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        ties = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        weights, mean, index = self.judged(state)
        score, seen = scores(weights, index), state.belief.seen > 0
        return Explanation(
            mean=np.where(seen, mean, np.nan),
            count=np.where(seen, observations(state.belief), 0.0),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=np.array(state.graph.adjacency),
            gain=np.array(getattr(state.graph, "gain", np.ones_like(weights))),
            weights=weights,
            score=score,
            chosen=top_arms(score, state.budget, ties),
            planned=np.zeros(state.rounds.shape, np.bool_),
            pending=np.array(state.flight),
        )


def rewards(limits: Array, x: BoolArray, z: Array) -> Array:
    """Rewards of the arms that were chosen, in units of the range."""
    low, high = limits[..., :1], limits[..., 1:]
    return np.where(x, np.clip((z - low) / (high - low), 0.0, 1.0), 0.0)


def heard_before(state: SwitchingState) -> BoolArray:
    """Whether anything has arrived yet."""
    return np.asarray(state.belief.latest[..., 0] > 0)


def fading(longest: Array, heard: BoolArray) -> Array:
    """What remains of a pull in flight after a round: it is given up on when it is late beyond anything met."""
    expected = np.maximum(longest, SOON)
    return np.asarray(np.where(heard, 1.0 - 1.0 / (PATIENCE * (expected + 1.0)), 1.0))


def observations(belief: Belief) -> Array:
    """How many observations stand behind each mean, in expectation over the hypotheses."""
    probability = belief.mass.sum(axis=-1)[..., None]
    kept, fresh = belief.kept.sum(axis=-1) - 2.0, belief.fresh.sum(axis=-1) - 2.0
    return np.asarray((probability * (kept + belief.changed * (fresh - kept))).sum(axis=-2))
