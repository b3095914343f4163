"""PayoffRegression: the payoff on the decision, without a graph and without the outcomes of single arms."""

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import CorePolicy, Lesson, Turn, choose_top, inner
from spillover.core.policy import first_fields
from spillover.kernels.switching import note_change
from spillover.kernels.switching_scores import normal_excess
from spillover.policies.switching_state import (
    HAZARD,
    IDLE_HAZARD,
    around,
    end_pull,
    fade_of,
    note_delay,
    note_pulls,
    rivals,
)
from spillover.rng import Purpose, Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    Constant,
    Explanation,
    Finite,
    IntArray,
    Probability,
    Problem,
    Round,
    Rounds,
)

HYPOTHESES = 20  # about the time of the last change; a new one replaces the least probable
HORIZON = 50.0  # rounds over which a better arm pays off
PRIOR_ROUNDS = 1.0  # what is assumed of the noise counts as so many payoffs
SPREAD = 0.5  # prior variance of an effect, in squared widths of the range of rewards
CONTEXT_ON = ("both", "baseline")
BASELINE_SCALE = 100.0  # prior variance of the baseline and of what context adds to it, in the same units
LEAST: Final = 1e-12  # probability of a hypothesis below which it does not count
EFFECT, DEVIATION, INDEX = 0, 1, 2  # lines that are filled in for each arm


class PayoffState(NamedTuple):
    """What PayoffRegression has learned; coefficients are of (x, x times each context column, 1, context)."""

    rounds: Rounds  # (*batch,): rounds played
    n_arms: Constant[IntArray]  # (*batch,)
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z, which is not used
    last_pull: Round  # (*batch, n): its round
    in_flight: Amount  # (*batch, n): pulls whose outcome is still expected
    longest_delay: Amount  # (*batch,)
    seen: Round  # (*batch, n): latest round of play of each arm whose outcome has arrived
    pulls: Amount  # (*batch, n): outcomes that have arrived of rounds with the arm
    context: Finite  # (*batch, k): of the coming round
    prior_mean: Finite  # (*batch, d)
    prior_variance: Amount  # (*batch, d)
    change_round: Round  # (*batch, hypotheses): of the last change; 0 if nothing has ever changed
    mass: Probability  # (*batch, hypotheses): probability
    mean: Finite  # (*batch, hypotheses, d)
    cover: Finite  # (*batch, hypotheses, d, d): covariance, in units of the noise variance
    noise: Amount  # (*batch, 2): sum of squared standardised errors, and their number
    latest: Round  # (*batch,): latest round of play whose outcome has arrived
    detected: Round  # (*batch, 2): changes detected so far, and the likeliest round of the last one


class Room(NamedTuple):
    """Room to work in."""

    features: Any  # (d,)
    reach: Any  # (d,)
    logs: Any  # (hypotheses,)
    squares: Any  # (hypotheses,)
    means: Any  # (hypotheses, n)
    spreads: Any  # (hypotheses, n)
    idle: Any  # (n,)
    signs: Any  # (n,)
    levels: Any  # (n,)
    shared: Any  # (n,): the covariance of each arm's effect with the payoff of the set
    joint: Any  # (n, n): of two arms' effects
    chosen: Any  # (n,): of booleans
    members: Any  # (n,): the chosen arms


@dataclass(frozen=True, kw_only=True)
class PayoffRegression(CorePolicy):
    """Bayesian linear regression of the payoff on the decision; for data with one outcome, and as a graph-free rival.

    The payoff is a baseline plus the total effects of the chosen arms, each with a part that the context moves; amounts
    (doses) multiply an arm's effect. All effects are constant until they change: as in `SwitchingSEM`, the time of the
    last change is filtered, and an exploration bonus, the expected improvement, is added.

    context_on: what the context may move, "both" (the baseline and effects), or "baseline".
    noise: its variance as assumed before the first payoff, in units of budget / 4 squared widths of the range of
        rewards. The range of a table is often far wider than the noise.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=600, changes=())
    >>> runs = [sp.simulate(policy, world, 10, replications=10) for policy in (PayoffRegression(), sp.policies.CUCB())]
    >>> bool(runs[0].final_regret.mean() < runs[1].final_regret.mean())
    True
    """

    context_on: str = "both"
    noise: float = 1.0

    compiled = "without arrays"
    traits = Traits(
        needs_rewards=False,
        needs_outcomes=False,
        uses_context=True,
        accepts_doses=True,
        order_free=False,
        fits_baseline=True,
        explains=True,
    )

    def __post_init__(self) -> None:
        validate.require(
            self.context_on in CONTEXT_ON, "context_on", self.context_on, f"one of {', '.join(CONTEXT_ON)}"
        )
        least, most = 1 / validate.LARGEST, validate.LARGEST
        validate.number("noise", self.noise, f"a positive number, from {least:g} to {most:g}", low=least, high=most)
        validate.require(np.ndim(self.noise) == 0, "noise", self.noise, "a single number")

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> PayoffState:
        first, n, k = first_fields(self, problem, batch), problem.n_arms, problem.context
        line, hypotheses, d = (*batch, n), (*batch, HYPOTHESES), n * (1 + k) + 1 + k
        low, high = np.moveaxis(first["reward_range"], -1, 0)
        unit, prior_mean = (high - low)[..., None] ** 2, np.zeros((*batch, d))
        prior_variance = np.broadcast_to(BASELINE_SCALE * unit, (*batch, d)).copy()
        prior_mean[..., :n] = ((low + high) / 2.0)[..., None]
        prior_variance[..., : n * (1 + k)] = SPREAD * unit
        if self.context_on == "baseline":
            prior_variance[..., n : n * (1 + k)] = 0.0
        if not problem.baseline:
            prior_variance[..., n * (1 + k)] = 0.0
        noise = self.noise * problem.budget * unit / 4.0
        cover = (prior_variance / noise)[..., None] * np.eye(d)
        mass = np.zeros(hypotheses)
        mass[..., 0] = 1.0
        return PayoffState(
            **first,
            last_pull=np.zeros(line, np.int64),
            in_flight=np.zeros(line),
            longest_delay=np.zeros(batch),
            seen=np.zeros(line, np.int64),
            pulls=np.zeros(line),
            context=np.zeros((*batch, k)),
            prior_mean=prior_mean,
            prior_variance=prior_variance,
            change_round=np.zeros(hypotheses, np.int64),
            mass=mass,
            mean=np.repeat(prior_mean[..., None, :], HYPOTHESES, axis=-2),
            cover=np.repeat(cover[..., None, :, :], HYPOTHESES, axis=-3),
            noise=np.concatenate([PRIOR_ROUNDS * noise, np.full((*batch, 1), PRIOR_ROUNDS)], axis=-1),
            latest=np.zeros(batch, np.int64),
            detected=np.zeros((*batch, 2), np.int64),
        )

    def prepare(self, s: Any) -> Any:
        hypotheses, d = s.mean.shape
        a, b = np.empty((2, d)), np.empty((2, hypotheses))
        c, e = np.empty((2, hypotheses, s.n_arms)), np.empty((4, s.n_arms))
        joint, chosen = np.empty((s.n_arms, s.n_arms)), np.empty(s.n_arms, np.bool_)
        members = np.empty(s.n_arms, np.int64)
        return Room(a[0], a[1], b[0], b[1], c[0], c[1], e[0], e[1], e[2], e[3], joint, chosen, members)

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """The expected effects on the payoff, their deviations, and the effects plus the value of information."""
        value_arms(s, turn.room, turn.lines[3], found)
        value_together(s, turn, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        self.index(s, turn, turn.lines)
        choose_top(turn.lines[INDEX], s.budget, turn, x)

    def note_play(self, s: Any, x: Any) -> None:
        note_pulls(s, x, s.latest > 0)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        x, payoff, age = lesson.x, 0.0, s.rounds - lesson.round
        for i in range(x.shape[0]):
            payoff += lesson.y[i]
        fill_features(lesson, turn.room.features)
        remains = fade_of(s, s.latest > 0) ** age
        if s.latest == 0:
            expect_around(s, payoff)
        if lesson.round > s.latest:
            if s.latest > 0:
                open_hypothesis(s, lesson.round, 1.0 - (1.0 - HAZARD) ** (lesson.round - s.latest))
            s.latest = lesson.round
        weigh_payoff(s, turn.room, payoff, lesson.round)
        note_change(s.change_round, s.mass, s.detected)
        note_delay(s, age)
        for i in range(x.shape[0]):
            if x[i]:
                end_pull(s, i, remains)
                s.seen[i] = max(s.seen[i], lesson.round)
                s.pulls[i] += 1.0

    def effects(self, state: PayoffState) -> tuple[Array, Array, Array]:
        """The expected effects on the payoff, their deviations, and the effects plus the value of information."""
        found = self.indices(state, Rng(0).at(Purpose.CHOICE), (3, state.pulls.shape[-1]))
        return found[..., EFFECT, :], found[..., DEVIATION, :], found[..., INDEX, :]

    def signals(self, state: PayoffState) -> dict[str, Any]:
        return {"latest": state.seen, "changes_seen": state.detected[..., 0]}

    def explain(self, state: PayoffState, rng: Rng) -> Explanation:
        effect, deviation, index = self.effects(state)
        seen, n = state.seen > 0, effect.shape[-1]
        usual = self.effects(state._replace(context=np.zeros_like(state.context)))[0]
        return Explanation(
            mean=np.where(seen, effect, np.nan),
            count=np.array(state.pulls),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=np.full((*effect.shape, n), np.nan),
            gain=np.ones_like(effect),
            weights=np.ones_like(effect),
            score=index,
            pending=np.array(state.in_flight),
            context_effect=effect - usual if state.context.shape[-1] else None,
            total_interval=around(effect, deviation**2),
        )


@inner
def fill_features(lesson: Lesson, features: Any) -> None:
    """The regressors: the amounts of the chosen arms, the same times each context column, 1 and the context."""
    n, k = lesson.x.shape[0], lesson.context.shape[0]
    for i in range(n):
        amount = lesson.dose[i] if lesson.x[i] else 0.0
        features[i] = amount
        for c in range(k):
            features[(1 + c) * n + i] = amount * lesson.context[c]
    features[n * (1 + k)] = 1.0
    for c in range(k):
        features[n * (1 + k) + 1 + c] = lesson.context[c]


@inner
def expect_around(s: Any, payoff: Any) -> None:
    """Expect the baseline around the first payoff: adding a constant to all payoffs then changes nothing else."""
    baseline = s.n_arms * (1 + s.context.shape[0])
    if s.prior_variance[baseline] > 0.0:
        s.prior_mean[baseline] = payoff
        for k in range(s.mass.shape[0]):
            s.mean[k, baseline] = payoff


@inner
def open_hypothesis(s: Any, played_at: Any, chance: Any) -> None:
    """Add the hypothesis that the effects changed just before `played_at`, in place of the least probable one.

    The baseline and what context does to it are kept, as the most probable hypothesis knows them.
    """
    mass, mean, cover = s.mass, s.mean, s.cover
    slot, likely, total = 0, 0, 0.0
    for k in range(mass.shape[0]):
        slot = k if mass[k] < mass[slot] else slot
        likely = k if mass[k] > mass[likely] else likely
    mass[slot] = 0.0
    for k in range(mass.shape[0]):
        total += mass[k]
    for k in range(mass.shape[0]):
        mass[k] *= (1.0 - chance) / total
    mass[slot], s.change_round[slot] = chance, played_at
    variance = s.noise[0] / s.noise[1]
    for a in range(mean.shape[1]):
        known = a >= s.n_arms
        mean[slot, a] = mean[likely, a] if known else s.prior_mean[a]
        for b in range(mean.shape[1]):
            cover[slot, a, b] = cover[likely, a, b] if known and b >= s.n_arms else 0.0
        if not known:
            cover[slot, a, a] = s.prior_variance[a] / variance


@inner
def weigh_payoff(s: Any, room: Any, payoff: Any, played_at: Any) -> None:
    """Update all hypotheses "the last change was at round r" with the payoff of a round, however late it arrives."""
    mass, change_round, features, reach = s.mass, s.change_round, room.features, room.reach
    count, d = s.mean.shape
    variance, best = s.noise[0] / s.noise[1], -math.inf
    for k in range(count):
        room.squares[k] = 0.0
        if change_round[k] > played_at or mass[k] < LEAST * LEAST:
            continue
        mean, cover = s.mean[k], s.cover[k]
        error, spread = payoff, 1.0
        for a in range(d):
            error -= mean[a] * features[a]
            reach[a] = 0.0
        for b in range(d):
            if features[b] != 0.0:
                for a in range(d):
                    reach[a] += cover[b, a] * features[b]
        for a in range(d):
            spread += features[a] * reach[a]
        room.squares[k] = error * error / spread
        room.logs[k] = -0.5 * math.log(spread) - 0.5 * room.squares[k] / variance
        best = max(best, room.logs[k])
        for a in range(d):  # recursive least squares
            step = reach[a] / spread
            mean[a] += step * error
            for b in range(d):
                cover[a, b] -= step * reach[b]
    before, after = 0.0, 0.0
    for k in range(count):
        if change_round[k] <= played_at and mass[k] >= LEAST * LEAST:
            before += mass[k]
            mass[k] *= math.exp(max(room.logs[k] - best, -700.0))
            after += mass[k]
    surprise, total = 0.0, 0.0
    for k in range(count):
        if change_round[k] > played_at:  # a payoff from before the change: the likelihood is that of the others
            mass[k] *= after / before if before > 0.0 else 1.0
        else:
            surprise += mass[k] * room.squares[k]
        total += mass[k]
    for k in range(count):
        mass[k] /= total
    if after > 0.0:
        s.noise[0] += surprise / after
        s.noise[1] += 1.0


@inner
def law_of_effect(mean: Any, cover: Any, context: Any, arm: Any, n: Any) -> Any:
    """Mean and variance of what choosing an arm adds to the payoff in the given context."""
    m, v = mean[arm], cover[arm, arm]
    for q in range(context.shape[0]):
        a = (q + 1) * n + arm
        m += context[q] * mean[a]
        v += 2.0 * context[q] * cover[arm, a]
        for p in range(context.shape[0]):
            v += context[q] * context[p] * cover[a, (p + 1) * n + arm]
    return m, max(v, 0.0)


@inner
def value_arms(s: Any, room: Any, ordered: Any, found: Any) -> None:
    """The expected effect of each arm on the payoff, its deviation, and the effect plus the value of information.

    The value is `HORIZON` times the expected improvement over the s-th best arm, for the s best the expected loss from
    keeping them, divided by (1 + pulls in flight)^2.
    """
    mass, means, spreads, n = s.mass, room.means, room.spreads, s.n_arms
    count, variance, squares = mass.shape[0], s.noise[0] / s.noise[1], 0.0
    for k in range(count):
        squares += mass[k] * mass[k]
        if mass[k] >= LEAST:
            for i in range(n):
                means[k, i], spreads[k, i] = law_of_effect(s.mean[k], s.cover[k], s.context, i, n)
    for i in range(n):
        idle = 1.0 - (1.0 - IDLE_HAZARD) ** (s.rounds - s.last_pull[i])
        first, second, total, prior = 0.0, 0.0, 0.0, s.prior_mean[i]
        for k in range(count):
            if mass[k] >= LEAST:
                total += mass[k]
                first += mass[k] * means[k, i]
                second += mass[k] * (means[k, i] ** 2 + variance * spreads[k, i])
        first, second = first / total, second / total
        second = (1.0 - idle) * second + idle * (prior * prior + s.prior_variance[i])
        found[EFFECT, i] = (1.0 - idle) * first + idle * prior
        found[DEVIATION, i] = math.sqrt(max(second - found[EFFECT, i] ** 2, 0.0))
        room.idle[i] = idle
    threshold, runner_up = rivals(found[EFFECT], s.budget, ordered)
    missed, signs, levels = found[INDEX], room.signs, room.levels
    for i in range(n):
        inside = found[EFFECT, i] >= threshold and found[EFFECT, i] > 0.0
        signs[i], levels[i] = (-1.0, runner_up) if inside else (1.0, threshold)
        gap = signs[i] * (s.prior_mean[i] - levels[i])
        missed[i] = room.idle[i] * normal_excess(gap, math.sqrt(s.prior_variance[i]))
    for k in range(count):
        if mass[k] >= LEAST:
            share = mass[k] * mass[k] / squares  # squared: payoffs in flight will settle an improbable change anyway
            for i in range(n):
                gap, own = signs[i] * (means[k, i] - levels[i]), math.sqrt(variance * spreads[k, i])
                missed[i] += (1.0 - room.idle[i]) * share * normal_excess(gap, own)
    for i in range(n):
        missed[i] = found[EFFECT, i] + HORIZON * missed[i] / (1.0 + s.in_flight[i]) ** 2


@inner
def value_together(s: Any, turn: Turn, found: Any) -> None:
    """Count the value of information of an arm as far as the payoff of the set shows its effect apart from the others'.

    It shows nothing of arms apart that have always been played together, however uncertain each of them is. Starting
    from the arms with the highest indices, arms are exchanged one by one while that adds to the total. Then the index
    of an arm of the set is what it adds to it; that of another one, what it would in place of the one that adds least.
    """
    n, room, likely = s.n_arms, turn.room, 0
    for k in range(s.mass.shape[0]):
        likely = k if s.mass[k] > s.mass[likely] else likely
    for i in range(n):
        room.levels[i] = found[INDEX, i] - found[EFFECT, i]
        room.chosen[i] = False
        for j in range(i + 1):
            room.joint[i, j] = room.joint[j, i] = joint_cover(s.cover[likely], s.context, i, j, n)
    choose_top(found[INDEX], s.budget, turn, room.chosen)
    size = list_members(room)
    for _ in range(size):
        now = total_value(room, found, size, -1, -1)
        best, out, into = now + 1e-9 * abs(now), -1, -1
        for q in range(size):
            for i in range(n):
                if not room.chosen[i]:
                    value = total_value(room, found, size, room.members[q], i)
                    if value > best:
                        best, out, into = value, room.members[q], i
        if out < 0:
            break
        room.chosen[out], room.chosen[into] = False, True
        list_members(room)
    now, least, last = total_value(room, found, size, -1, -1), math.inf, -1
    for q in range(size):
        i = room.members[q]
        found[INDEX, i] = now - total_value(room, found, size, i, -1)
        if found[INDEX, i] < least:
            least, last = found[INDEX, i], i
    if last >= 0:
        for i in range(n):
            if not room.chosen[i]:
                found[INDEX, i] = total_value(room, found, size, last, i) - (now - least)


@inner
def list_members(room: Any) -> Any:
    """List the chosen arms, with the covariance of every arm's effect and the payoff of them; their number."""
    size = 0
    for i in range(room.chosen.shape[0]):
        if room.chosen[i]:
            room.members[size] = i
            size += 1
    for i in range(room.chosen.shape[0]):
        room.shared[i] = 0.0
        for q in range(size):
            room.shared[i] += room.joint[i, room.members[q]]
    return size


@inner
def total_value(room: Any, found: Any, size: Any, out: Any, into: Any) -> Any:
    """What the chosen arms are worth with one of them taken out and another one taken in; -1: none."""
    total = 0.0
    for q in range(size + 1):
        i = room.members[q] if q < size else into
        if i >= 0 and i != out:
            shown, own = room.shared[i], room.joint[i, i]
            if out >= 0:
                shown -= room.joint[i, out]
            if into >= 0:
                shown += room.joint[i, into]
            share = min(max(shown / own, 0.0), 1.0) if own > 0.0 else 1.0
            total += found[EFFECT, i] + room.levels[i] * share
    return total


@inner
def joint_cover(cover: Any, context: Any, i: Any, j: Any, n: Any) -> Any:
    """The covariance of what two arms add to the payoff in the given context, in units of the noise variance."""
    found = cover[i, j]
    for q in range(context.shape[0]):
        a, b = (q + 1) * n + i, (q + 1) * n + j
        found += context[q] * (cover[a, j] + cover[i, b])
        for p in range(context.shape[0]):
            found += context[q] * context[p] * cover[a, (p + 1) * n + j]
    return found
