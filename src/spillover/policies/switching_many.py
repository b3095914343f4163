"""SwitchingSEM for many arms: a round takes time for the arms that are active in it, and little for the others."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba import njit

from spillover import validate
from spillover.contracts import Policy, ScoredWorld
from spillover.core import Turn, choose_top
from spillover.core.compiled import rare
from spillover.kernels.arithmetic import BLOCK, enter, listed
from spillover.kernels.averages import take_rewards, weigh
from spillover.kernels.decorators import bare
from spillover.kernels.drifting import LEAST_MEAN, drifting_forecast, learn_drift, move_arm, transition
from spillover.kernels.switching import (
    MOST_ALONE,
    add_shares,
    expected_changes,
    moments,
    note_change,
    open_counts,
    open_mass,
    precision_of,
    redraw_range,
    start_arm,
    weakest,
    weigh_reward,
    within_reach,
)
from spillover.kernels.switching_scores import (
    ABOUT,
    MANY_ARMS,
    MOST_SORTED,
    expected_miss,
    normal_excess,
    thresholds,
    weigh_laws,
    weigh_untried,
)
from spillover.policies.graph_policy import GraphPolicy
from spillover.policies.switching import SwitchingSEM, rescale
from spillover.policies.switching_state import (
    DRIFT_PRIOR,
    DRIFT_SCALE,
    DRIFT_VARIANCE,
    HAZARDS,
    HORIZON,
    HORIZON_OF_DELAY,
    IDLE_HAZARD,
    OTHER_WORLD,
    SHARE_PRIOR,
    SHARES,
    SwitchingState,
    empty_crowd,
    fade_of,
    observations,
)
from spillover.rng import Rng
from spillover.types import Array, Batch, Problem

UNSETTLED: Final = 0.2  # if so much probability moves between hypotheses in a round, all arms are brought up to date
TURNS = 8


@dataclass(frozen=True, kw_only=True)
class SwitchingOfMany(SwitchingSEM):
    """What `SwitchingSEM` becomes with more than 500 arms.

    Arms without rewards share one set of hypotheses, and the bonus of weights that are about equal. An arm with rewards
    is brought up to date when it reports, and otherwise in turn: in one of `turns` outcomes, or at once if an outcome
    moves a fifth of the probability between the hypotheses. With turns=1 all decisions are those of `SwitchingSEM`.

    >>> import spillover as sp
    >>> SwitchingSEM().for_problem(sp.Problem(n_arms=1000, budget=10)).turns
    8
    """

    turns: int = TURNS

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("turns", self.turns, 1)

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> Policy:
        suited = super().for_problem(problem)
        return suited if problem.observes != "both" or problem.context > 0 else GraphPolicy.for_problem(self, problem)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SwitchingState:
        return super().init(problem, rng, batch)._replace(crowd=empty_crowd(problem.n_arms, batch))

    # --- one learner ------------------------------------------------------------------------------------------------

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        weights, mean, index = turn.lines[0], turn.lines[1], turn.lines[2]
        index_crowd(s, turn.room.places, turn.lines[3], weights, mean[:0], index)
        weigh(weights, index)
        choose_top(index, s.budget, turn, x)

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        index_crowd(s, turn.room.places, turn.lines[3], found[0], found[1], found[2])
        drifting_forecast(
            s.drift.track, s.rounds + 1 - s.drift.latest[0], DRIFT_SCALE, DRIFT_VARIANCE, found[3], found[4]
        )  # fmt: skip

    def learn_arms(self, s: Any, x: Any, z: Any, weight: Any, played_at: Any, turn: Turn, expected: Any) -> None:
        reward = turn.lines[0]
        remains = fade_of(s, s.belief.latest[0] > 0) ** (s.rounds - played_at)
        take_rewards(s.in_flight, s.rewards_seen, x, z, s.reward_range, remains, reward)
        learn_arms_of_many(s, x, reward, weight, played_at, self.turns, expected)

    def expect(self, s: Any, x: Any, found: Any) -> None:
        for i in range(x.shape[0]):
            found[i] = s.belief.mean[i] if s.belief.seen[i] > 0 else s.crowd.shared[0]
        rescale(s.reward_range, x, found, found)

    # --- what it says -----------------------------------------------------------------------------------------------

    def believed(self, state: SwitchingState) -> tuple[Array, Array]:
        seen, shared = state.belief.seen > 0, state.crowd.shared
        mean, square = state.belief.mean, state.belief.square
        return np.where(seen, mean, shared[..., :1]), np.where(seen, square, shared[..., 1:])

    def observations(self, state: SwitchingState) -> Array:
        """As in `SwitchingSEM`; of one learner for the arms with rewards only, whose counts may be few."""
        if state.rounds.ndim > 0:
            return super().observations(state)
        seen, found = np.flatnonzero(state.belief.seen), np.zeros(state.belief.seen.shape)
        of_arms = {name: state.belief._asdict()[name][seen] for name in ("counts", "changed", "seen")}
        found[seen] = observations(state.belief._replace(**of_arms))
        return found


@njit
def taken_from(line, arms):
    """What a line has at these arms."""
    found = np.empty(arms.shape[0], line.dtype)
    for q in range(arms.shape[0]):
        found[q] = line[arms[q]]
    return found


@bare
def open_missed(s, i):
    """Give an arm the hypotheses that were opened since it was last brought up to date; it did not report then."""
    belief, checked = s.belief, s.crowd.checked[i]
    fresh = belief.redrawn[0] + belief.redrawn[1]
    for k in range(belief.change_round.shape[0]):
        if belief.change_round[k] > checked:
            open_hypothesis(belief, i, k, 0.0, fresh)


@njit(inline="always", error_model="numpy")
def open_hypothesis(belief, i, slot, idle, fresh):
    """Give an arm a new hypothesis; idle: the prior probability that it changed alone."""
    belief.idle_prior[i, slot] = belief.changed[i, 0, slot] = idle
    for g in range(1, SHARES.shape[0]):
        belief.changed[i, g, slot] = SHARES[g]
    belief.ratio[i, slot] = 1.0
    open_counts(belief.counts[i], slot, belief.mean[i], belief.square[i], fresh)


@bare
def judge_arm(belief, totals, i, room):
    """What is expected of an arm, over all hypotheses."""
    counts = belief.counts[i]
    belief.mean[i], belief.square[i] = moments(belief.mass, totals, counts[0], counts[1], belief.changed[i], room)


@njit(error_model="numpy")
def moved_mass(mass, before):
    """How much probability has moved between the hypotheses."""
    moved = 0.0
    for g in range(mass.shape[0]):
        for k in range(mass.shape[1]):
            moved += abs(mass[g, k] - before[g, k])
    return 0.5 * moved


@rare
def learn_crowd(
    s: Any, chosen: Any, tried: Any, reward: Any, weight: Any, played_at: Any, turns: Any, expected: Any, counted: Any,
    likely: Any,
) -> Any:  # fmt: skip
    """`learn_rewards` of switching.py for the chosen arms; `tried`: the arms with rewards before.

    expected, counted, likely: of the chosen arms, in their order.
    """
    belief, crowd = s.belief, s.crowd
    mass, mean, square, seen, untried = belief.mass, belief.mean, belief.square, belief.seen, belief.untried
    checked, change_round, latest, redrawn = crowd.checked, belief.change_round, belief.latest, belief.redrawn
    n, hypotheses = seen.shape[0], change_round.shape[0]
    room = np.empty((4 + mass.shape[0], 2 * hypotheses))
    totals, there = room[3, :hypotheses], room[3, hypotheses:]
    before, precision = mass.copy(), precision_of(belief.spread)
    opened = latest[0]
    crowd.arrivals[0] += 1
    new_arms = 0
    add_shares(mass, totals)
    for q in range(chosen.shape[0]):
        i = chosen[q]
        if seen[i] == 0:
            start_arm(untried, belief.counts[i], belief.ratio[i], belief.idle_prior[i], belief.changed[i], SHARES)
            mean[i], square[i] = crowd.shared[0], crowd.shared[1]
            new_arms += 1
        elif checked[i] < opened:
            open_missed(s, i)
            judge_arm(belief, totals, i, room)
        checked[i] = opened
        expected[q], counted[q] = mean[i], within_reach(reward[i], mean[i], square[i], precision)
        belief.spread[0] += weight * mean[i] * (1.0 - mean[i])
        belief.spread[1] += weight * reward[i] * (1.0 - reward[i])
    if played_at > latest[0] > 0:  # the hypothesis of a change just before, instead of the least probable one
        slot, changes_seen = weakest(totals), expected_changes(mass, totals, belief.changes)
        redraw_range(taken_from(mean, tried), taken_from(seen, tried), latest[0], redrawn)
        fresh, total_idle = redrawn[0] + redrawn[1], 0.0
        for i in chosen:
            if played_at > seen[i]:
                total_idle += 1.0 - (1.0 - IDLE_HAZARD) ** (played_at - seen[i])
        if tried.shape[0] < n:
            open_counts(untried, slot, crowd.shared[0], crowd.shared[1], fresh)
        for i in chosen:
            idle = (1.0 - (1.0 - IDLE_HAZARD) ** max(played_at - seen[i], 0)) / max(total_idle, 1e-300)
            open_hypothesis(belief, i, slot, idle, fresh)
            checked[i] = played_at
        change_round[slot], belief.changes[slot] = played_at, changes_seen
        hazard = (HAZARDS[0] + changes_seen) / (HAZARDS[1] + latest[0])
        together = 1.0 - (1.0 - hazard) ** (played_at - latest[0])
        open_mass(mass, totals, slot, together, min(total_idle, MOST_ALONE * (1.0 - together)), SHARE_PRIOR)
        opened = played_at
    latest[0] = max(latest[0], played_at)
    all_there = True
    for k in range(hypotheses):
        there[k] = 1.0 if change_round[k] <= played_at else 0.0
        all_there &= change_round[k] <= played_at
    for q in range(chosen.shape[0]):
        i = chosen[q]
        likely[q] = weigh_reward(
            there, all_there, mass, belief.counts[i], belief.ratio[i], belief.idle_prior[i], belief.changed[i], SHARES,
            counted[q], reward[i], weight * precision, room,
        )  # fmt: skip
        seen[i] = max(seen[i], played_at)
    add_shares(mass, totals)
    for i in chosen:
        judge_arm(belief, totals, i, room)
    everyone = moved_mass(mass, before) > UNSETTLED
    for i in tried:
        if everyone or (crowd.arrivals[0] + i) % turns == 0:
            open_missed(s, i)
            checked[i] = opened
            judge_arm(belief, totals, i, room)
    if tried.shape[0] + new_arms < n:
        taking_part = room[4:, :hypotheses]
        for g in range(mass.shape[0]):
            for k in range(hypotheses):
                taking_part[g, k] = SHARES[g] if g > 0 else 0.0
        crowd.shared[0], crowd.shared[1] = moments(mass, totals, untried[0], untried[1], taking_part, room)
    note_change(change_round, totals, belief.detected)
    return precision


@rare
def learn_drifting(
    drift: Any, chosen: Any, tried: Any, reward: Any, counted: Any, likely: Any, precision: Any, weight: Any,
    played_at: Any,
) -> None:  # fmt: skip
    """`drifting_arrival` of drifting.py: arms without rewards stay where every arm begins."""
    track, drifts, latest = drift.track, drift.probability, drift.latest
    elapsed = played_at - latest[0]
    if elapsed > 0:
        if latest[0] > 0:
            moves = transition(DRIFT_SCALE, DRIFT_VARIANCE, elapsed)
            for i in tried:
                move_arm(track, i, moves)
            drifts[0] += (1.0 - (1.0 - OTHER_WORLD) ** elapsed) * (DRIFT_PRIOR - drifts[0])
        latest[0] = played_at
    moved = 0.0
    if elapsed < 0:
        moved = 2.0 * DRIFT_VARIANCE * (1.0 - transition(DRIFT_SCALE, DRIFT_VARIANCE, -elapsed)[0])
    for q in range(chosen.shape[0]):
        i = chosen[q]
        learn_drift(track, i, drifts, reward[i], counted[q], likely[q], weight, precision, moved)


@rare
def learn_arms_of_many(s: Any, x: Any, reward: Any, weight: Any, played_at: Any, turns: Any, expected: Any) -> None:
    """`learn_rewards` and `drifting_arrival`; fills in what was expected of the chosen arms."""
    chosen, tried = listed(x), listed(s.belief.seen)
    size = chosen.shape[0]
    means, counted, likely = np.empty(size), np.empty(size), np.empty(size)
    precision = learn_crowd(s, chosen, tried, reward, weight, played_at, turns, means, counted, likely)
    learn_drifting(s.drift, chosen, tried, reward, counted, likely, precision, weight, played_at)
    for q in range(size):
        expected[chosen[q]] = means[q]


@njit
def pulled_or_seen(last_pull, seen, found):
    """The arms that differ from those that were never pulled, in order; found: room for all arms."""
    n, size = seen.shape[0], 0
    whole = n - n % BLOCK
    for start in range(0, whole, BLOCK):
        marks = 0
        for k in range(BLOCK):
            marks |= last_pull[start + k] | seen[start + k]
        if marks != 0:
            for i in range(start, start + BLOCK):
                size = enter(found, size, i, (last_pull[i] | seen[i]) != 0)
    for i in range(whole, n):
        size = enter(found, size, i, (last_pull[i] | seen[i]) != 0)
    return found[:size]


@njit
def drift_start():
    """The track of an arm without rewards, as a row of its own."""
    return np.array([[0.0, 0.0, DRIFT_VARIANCE, 0.0, 3.0 * DRIFT_VARIANCE / DRIFT_SCALE**2]])


@njit(inline="always", error_model="numpy")
def drift_of_arm(track, i, moves):
    """Mean and standard deviation of an arm in the coming round, if the means drift."""
    f00, f01, _, _, q00, _, _ = moves
    level = 0.5 + f00 * track[i, 0] + f01 * track[i, 1]
    spread = f00 * f00 * track[i, 2] + 2.0 * f00 * f01 * track[i, 3] + f01 * f01 * track[i, 4] + q00
    return min(max(level, LEAST_MEAN), 1.0 - LEAST_MEAN), math.sqrt(max(spread, 1e-12))


@njit(inline="always", error_model="numpy")
def redrawn_miss(redrawn, level, inside):
    """E[(m - level)+] for a mean that is uniform on `redrawn`, or of its negative if the arm is inside."""
    middle, span = 0.5 * (redrawn[0] + redrawn[1]), redrawn[1] - redrawn[0]
    below, above = max(level - redrawn[0], 0.0), max(redrawn[1] - level, 0.0)
    if inside:
        return 0.5 * below**2 / span if above > 0.0 else level - middle
    return 0.5 * above**2 / span if below > 0.0 else middle - level


@bare
def value_of_trying(ones, zeros, laws, idle, drifting, deviation, level, inside, pulls, known):
    """The bonus of an arm: the expected gain from trying it, or the expected loss from keeping it if it is inside."""
    redrawn, drifts, scale, gaps, deviations, parts = known
    if inside and level == 0.0:
        return 0.0  # nothing can be better
    missed = expected_miss(ones, zeros, laws, level, -1.0 if inside else 1.0, gaps, deviations, parts)
    missed += idle * (redrawn_miss(redrawn, level, inside) - missed)
    missed *= 1.0 - drifts
    if not inside:
        missed += drifts * normal_excess(drifting - level, deviation)
    crowd = 1.0 + pulls
    return scale * missed / (crowd * math.sqrt(crowd))


@bare
def value_active(s, active, idle, moves, totals, weight, scores, weights, new, rivals, known, index):
    """Add the bonuses of the arms that were pulled."""
    belief = s.belief
    threshold, runner_up, offset = rivals
    for q in range(active.shape[0]):
        i = active[q]
        inside = scores[i] >= threshold and scores[i] > 0.0
        rival = runner_up if inside else threshold
        if weights[i] <= 0.0 or weights[i] * (1.0 + offset) <= rival:
            continue  # out of reach even with the best mean
        level = max(rival / weights[i] - offset, 0.0)
        if belief.seen[i] > 0:
            ones, zeros = belief.counts[i, 0], belief.counts[i, 1]
            weigh_laws(belief.mass, totals, belief.changed[i], weight)
            drifting, deviation = drift_of_arm(s.drift.track, i, moves)
        else:
            ones, zeros = belief.untried[0], belief.untried[1]
            weigh_untried(belief.mass, totals, SHARES, weight)
            drifting, deviation = new
        pulls = s.in_flight[i]
        index[i] += value_of_trying(ones, zeros, weight, idle[q], drifting, deviation, level, inside, pulls, known)


@bare
def value_new(last_pull, seen, untried, weight, scores, weights, new, rivals, known, index):
    """Add the bonuses of the arms that were never pulled."""
    threshold, runner_up, offset = rivals
    idle, drifting, deviation = new
    n, best = index.shape[0], 1.0 + offset
    about = ABOUT if n > MANY_ARMS else 0.0
    held_weight, held_inside, held_bonus = 0.0, False, 0.0  # of the last one with a bonus of its own
    for start in range(0, n, BLOCK):
        if start + BLOCK <= n:
            near = 0
            for k in range(BLOCK):
                near += weights[start + k] * best > runner_up
            if near == 0:
                continue  # all of them are out of reach
        for i in range(start, min(start + BLOCK, n)):
            inside = scores[i] >= threshold and scores[i] > 0.0
            rival = runner_up if inside else threshold
            if weights[i] <= 0.0 or weights[i] * best <= rival or (last_pull[i] | seen[i]) != 0:
                continue
            same = abs(weights[i] - held_weight) * rival <= about * weights[i] * held_weight
            if not same or inside != held_inside or held_weight == 0.0:
                level = max(rival / weights[i] - offset, 0.0)
                held_weight, held_inside = weights[i], inside
                held_bonus = value_of_trying(
                    untried[0], untried[1], weight, idle, drifting, deviation, level, inside, 0.0, known
                )  # fmt: skip
            index[i] += held_bonus


@rare
def index_crowd(s: Any, places: Any, scores: Any, weights: Any, mean: Any, index: Any) -> None:
    """`value_arms` of switching_scores.py: arms that were never pulled differ in their weights only.

    They share what follows from the rest. places, scores: scratch memory. mean may have no room: then it is left out.
    """
    belief, shared, drifts, learned, prior = s.belief, s.crowd.shared, s.drift.probability[0], s.graph.weights, s.prior
    mass, seen, believed, redrawn, latest = belief.mass, belief.seen, belief.mean, belief.redrawn, belief.latest[0]
    kinds, hypotheses = mass.shape
    n = learned.shape[0]
    low, width = s.reward_range[0], s.reward_range[1] - s.reward_range[0]
    offset, middle = low / width, 0.5 * (redrawn[0] + redrawn[1])
    room = np.empty((5, 2 * hypotheses))
    totals, weight, parts, gaps, deviations = room[0, :hypotheses], room[1], room[2], room[3], room[4]
    add_shares(mass, totals)
    changes_seen, share = 0.0, 0.0
    for k in range(hypotheses):
        changes_seen += totals[k] * (belief.changes[k] + 1.0) - mass[0, k]
    hazard = (HAZARDS[0] + changes_seen) / (HAZARDS[1] + latest)
    for g in range(kinds):
        share += SHARES[g] * SHARE_PRIOR[g]
    stays = 1.0 - share * (1.0 - (1.0 - hazard) ** max(s.rounds - latest, 0))
    moves = transition(DRIFT_SCALE, DRIFT_VARIANCE, s.rounds + 1 - s.drift.latest[0])
    new_drift, new_deviation = drift_of_arm(drift_start(), 0, moves)
    new_idle = 1.0 - stays * (1.0 - IDLE_HAZARD) ** s.rounds
    new_mean = shared[0] + new_idle * (middle - shared[0])
    new_mean += drifts * (new_drift - new_mean)
    new_worth, new_reward = new_mean + offset, low + width * new_mean
    for i in range(n):  # as if none had been pulled: without branches, so that processors do several at once
        weights[i] = learned[i] + max(prior[i] - learned[i], 0.0)
        scores[i] = weights[i] * new_worth
        index[i] = new_reward
    active = pulled_or_seen(s.last_pull, seen, places)
    idle = np.empty(active.shape[0])
    for q in range(active.shape[0]):
        i = active[q]
        weights[i] = learned[i] + max(prior[i] - learned[i], 0.0) / (1.0 + s.rewards_seen[i]) ** 2
        idle[q] = 1.0 - stays * (1.0 - IDLE_HAZARD) ** (s.rounds - s.last_pull[i])
        level = believed[i] if seen[i] > 0 else shared[0]
        expected = level + idle[q] * (middle - level)
        drifting = drift_of_arm(s.drift.track, i, moves)[0] if seen[i] > 0 else new_drift
        expected += drifts * (drifting - expected)
        scores[i] = weights[i] * (expected + offset)
        index[i] = low + width * expected
    for i in range(mean.shape[0]):
        mean[i] = index[i]
    threshold, runner_up = thresholds(scores, s.budget, np.empty(min(s.budget, MOST_SORTED) + 1))
    horizon = HORIZON + HORIZON_OF_DELAY * s.typical_delay
    known = redrawn, drifts, width * horizon, gaps, deviations, parts
    rivals = threshold, runner_up, offset
    value_active(
        s, active, idle, moves, totals, weight, scores, weights, (new_drift, new_deviation), rivals, known, index
    )
    weigh_untried(mass, totals, SHARES, weight)
    new = new_idle, new_drift, new_deviation
    value_new(s.last_pull, seen, belief.untried, weight, scores, weights, new, rivals, known, index)
