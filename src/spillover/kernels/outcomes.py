"""The outcome of a round: rewards, spill-over, when it arrives, what is wrong with it, and what it is worth."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.arithmetic import add_columns, add_multiple, bits_of
from spillover.kernels.compiling import gufunc
from spillover.kernels.decorators import bare, eight_doubles, eight_integers
from spillover.kernels.drawing import FIRST, SMALL_BUDGET, philox_inside, selected_border, sorted_border, to_unit
from spillover.kernels.laws import ARMS_AT_ONCE, draw_betas


@njit(inline="always")
def spread_rewards(total, b, x, z, y):
    """z = diag(b) x and y = total z (eqs. 1 and 4), total = (I - A)^-1 F."""
    n = x.shape[0]
    for i in range(n):
        z[i] = b[i] if x[i] else 0.0
        y[i] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for i in range(n):
                y[i] += total[i, j] * z[j]


@gufunc((float64[:, :], float64[:], boolean[:], float64[:], float64[:]), "(n,n),(n),(n)->(n),(n)")
def play(total, b, x, z, y):
    """The outcome of a round, from the rewards b of all arms."""
    spread_rewards(total, b, x, z, y)


FINE: Final = 0
NOT_FINITE: Final = 1
NOT_PLAYED: Final = 2
OUT_OF_RANGE: Final = 3
IMPOSSIBLE_AGE: Final = 4
LARGEST_OUTCOME: Final = 1e40  # sums of products of six such numbers do not overflow
NARROWEST_RANGE: Final = 1e-40  # nor does division by them
LARGEST_BITS: Final = np.float64(LARGEST_OUTCOME).view(np.uint64)
MAGNITUDE: Final = np.uint64(0x7FFFFFFFFFFFFFFF)  # all bits but the sign
NOTHING: Final = np.uint64(0)


@njit(inline="always")
def is_fine(x, z, y, low, high):
    """Whether nothing is wrong with an outcome, without a branch for each arm; what is, `fault_of` says.

    For kernels whose floating-point warnings are ignored: a comparison with NaN may leave one.
    """
    fine = True
    for i in range(x.shape[0]):
        fine &= (abs(z[i]) <= LARGEST_OUTCOME) & (abs(y[i]) <= LARGEST_OUTCOME)
        fine &= ((z[i] >= low) & (z[i] <= high)) if x[i] else z[i] == 0.0
    return fine


@njit(inline="always")
def is_known(y):
    """`is_fine` of an outcome whose rewards z are not observed."""
    known = True
    for i in range(y.shape[0]):
        known &= abs(y[i]) <= LARGEST_OUTCOME
    return known


@njit(inline="always")
def is_plain(x, z, y, low, high):
    """`is_fine` for kernels whose floating-point warnings are heard: it compares no numbers unless all are finite.

    But their bits: those of positive doubles are ordered as they are, and those of NaN come last.
    """
    fine = True
    for i in range(x.shape[0]):
        reward, outcome = bits_of(z[i]) & MAGNITUDE, bits_of(y[i]) & MAGNITUDE
        fine &= (reward <= LARGEST_BITS) & (outcome <= LARGEST_BITS) & (x[i] | (reward == NOTHING))
    if fine:
        for i in range(x.shape[0]):
            fine &= (not x[i]) | ((z[i] >= low) & (z[i] <= high))
    return fine


@njit(inline="always")
def fault_of(x, z, y, reward_range, age, rounds):
    """The first thing wrong with the outcome of a round, as one of the codes above."""
    if age < 0 or age >= rounds:
        return IMPOSSIBLE_AGE
    if is_plain(x, z, y, reward_range[0], reward_range[1]):
        return FINE
    for i in range(x.shape[0]):
        # not math.isfinite, which subtracts infinities and so leaves a floating-point warning
        if not (abs(z[i]) <= LARGEST_OUTCOME and abs(y[i]) <= LARGEST_OUTCOME):
            return NOT_FINITE
        if z[i] != 0.0 and not x[i]:
            return NOT_PLAYED
        if x[i] and (z[i] < reward_range[0] or z[i] > reward_range[1]):
            return OUT_OF_RANGE
    return FINE


@gufunc(
    (boolean[::1], float64[::1], float64[::1], float64[:], boolean, int64, int64, int64[:]),
    "(n),(n),(n),(r),(),(),()->()",
)
def feedback_fault(x, z, y, reward_range, arrived, age, rounds, fault):
    """The first thing wrong with a piece of feedback; nothing is, where none has arrived."""
    fault[0] = fault_of(x, z, y, reward_range, age, rounds) if arrived else FINE


@gufunc((int64[:], int64[:], float64[:], float64[:], float64[:]), "(p),(e),(e),(n)->(n)")
def spread_edges(start, effect, weight, own, y):
    """y = own + A y for edges sorted by cause, where every cause comes after its effects."""
    for j in range(y.shape[0]):
        y[j] = own[j]
    for j in range(y.shape[0] - 1, -1, -1):
        if y[j] != 0.0:
            for edge in range(start[j], start[j + 1]):
                y[effect[edge]] += weight[edge] * y[j]


@gufunc((int64[:], int64[:], float64[:], float64[:]), "(p),(e),(e)->(p)")
def total_effects_and_one(start, effect, weight, total):
    """w = 1 + A'w for the same edges; the last number is no arm's."""
    for j in range(total.shape[0] - 1):
        total[j] = 1.0
        for edge in range(start[j], start[j + 1]):
            total[j] += weight[edge] * total[effect[edge]]
    total[total.shape[0] - 1] = 0.0


# how rewards follow from what a course has for each arm and round
DRAWN: Final = 0  # they are that
BERNOULLI: Final = 1  # it is their mean
BETA: Final = 2  # it is their mean; a + b is the concentration
LEAST_PARAMETER: Final = 1e-9  # of a beta law

WORLD: Final = np.uint64(0)  # the purpose of their streams, see `rng.Purpose`; they are the first draw of a round
BLOCK: Final = 4


@njit(inline="always")
def bernoulli_of(word, mean, chosen):
    """1 or 0, without a branch: nobody can tell which way it would go."""
    return float64(chosen & (to_unit(word) < mean))


@njit(inline="always")
def draw_bernoulli(means, key, at_round, x, z):
    """Whether `uniform` draws are below the means; blocks of the generator that no chosen arm needs are skipped."""
    n, k0, k1 = x.shape[0], key[0], key[1]
    for start in range(0, n, BLOCK):
        wanted = False
        for i in range(start, min(start + BLOCK, n)):
            z[i] = 0.0
            wanted |= x[i]
        if wanted:
            a, b, c, d = philox_inside(uint64(start), FIRST, at_round, WORLD, k0, k1)
            z[start] = bernoulli_of(a, means[start], x[start])
            if start + 1 < n:
                z[start + 1] = bernoulli_of(b, means[start + 1], x[start + 1])
            if start + 2 < n:
                z[start + 2] = bernoulli_of(c, means[start + 2], x[start + 2])
            if start + 3 < n:
                z[start + 3] = bernoulli_of(d, means[start + 3], x[start + 3])


@bare
def draw_beta(means, concentration, key, at_round, x, z):
    """As `SEMWorld.rewards` draws them: a mean of 0 or 1 is a constant."""
    a, b = eight_doubles(), eight_doubles()
    found, arms = eight_doubles(), eight_integers()
    n, waiting = x.shape[0], 0
    for i in range(n):
        z[i] = 1.0 if x[i] and means[i] >= 1.0 else 0.0
        if x[i] and 0.0 < means[i] < 1.0:
            a[waiting] = max(concentration * means[i], LEAST_PARAMETER)
            b[waiting] = max(concentration * (1.0 - means[i]), LEAST_PARAMETER)
            arms[waiting] = i
            waiting += 1
        if waiting == ARMS_AT_ONCE or (waiting > 0 and i == n - 1):
            draw_betas(a, b, arms, waiting, FIRST, at_round, WORLD, key[0], key[1], found)
            for j in range(waiting):
                z[arms[j]] = found[j]
            waiting = 0


@njit(inline="always")
def draw_chosen(law, given, concentration, key, at_round, x, z):
    """z: the rewards of the arms x, and 0 for the others."""
    if law == BERNOULLI:
        draw_bernoulli(given, key, at_round, x, z)
    elif law == BETA:
        draw_beta(given, concentration, key, at_round, x, z)
    else:
        for i in range(x.shape[0]):
            z[i] = given[i] if x[i] else 0.0


@gufunc(
    (int64, float64[:], float64, uint64[:], uint64, boolean[:], float64[:]),
    "(),(n),(),(k),(),(n)->(n)",
)
def draw_rewards(law, given, concentration, key, at_round, x, z):
    """The rewards of the arms x in a round of the world, and 0 for the others."""
    draw_chosen(law, given, concentration, key, at_round, x, z)


# positions in `course`
LAW: Final = 0  # how rewards are drawn, one of the laws above
ADDED: Final = 1  # whether anything is added to y

# what is observed of an outcome: z and y, y, or the sum of y
ALL: Final = 0
OVERALL: Final = 1
PAYOFF: Final = 2

FEW_ARMS: Final = 16  # up to this, adding what was not chosen is faster than leaving it out


@njit(inline="always")
def add_spillover(columns, x, z, y):
    """y = total z, from the columns of `total`; as `spread_rewards`, where adding zeros changes nothing."""
    if x.shape[0] <= FEW_ARMS:  # also those not chosen: no branch, and y is written once
        add_columns(columns, z, y)
        return
    for i in range(x.shape[0]):
        y[i] = 0.0
    for j in range(x.shape[0]):
        if x[j]:
            add_multiple(y, z[j], columns[j])


@njit(inline="always")
def fill_outcome(r, t, key, course, concentration, columns, rewards, shocks, baseline, x, z, y):
    """Fill in z and y of round t, the r-th of the stretch, for the decision x."""
    draw_chosen(course[LAW], rewards[min(r, rewards.shape[0] - 1)], concentration, key, uint64(t), x, z)
    add_spillover(columns, x, z, y)
    if course[ADDED]:
        for i in range(x.shape[0]):
            y[i] = y[i] + shocks[r, i] + baseline[r, i]


@njit(inline="always")
def hide(observed, z, y):
    """Replace what is not observed of an outcome, as `foresight.observed` does."""
    if observed != ALL:
        total = 0.0
        for i in range(z.shape[0]):
            z[i] = math.nan
            total += y[i]
            if observed == PAYOFF:
                y[i] = 0.0
        if observed == PAYOFF:
            y[0] = total


NEVER: Final = np.iinfo(np.int64).max  # the delay of an outcome that is lost


@njit(inline="always")
def slow_bad_news(x, z, good, bad):
    """From `good` rounds for rewards of 1 to `bad` for rewards of 0, linear in the average of the arms played."""
    total, played = 0.0, 0
    for i in range(x.shape[0]):
        if x[i]:
            total += z[i]
            played += 1
    share = min(max(1.0 - total / max(played, 1), 0.0), 1.0)
    return int64(np.rint(good + (bad - good) * share))


@gufunc((boolean[:], float64[:], int64, int64, int64[:]), "(n),(n),(),()->()")
def bad_news_delay(x, z, good, bad, late):
    """The delay of a round under `BadNewsDelay`."""
    late[0] = slow_bad_news(x, z, good, bad)


@njit(inline="always")
def common_delay(x, z, late, slowest):
    """The delay of the arms that report, which is the same for all; see `delay_of`."""
    return late if late == NEVER or slowest == late else slow_bad_news(x, z, late, slowest)


@njit(inline="always")
def delay_of(x, z, late, slowest, silent):
    """The delay of a round that brought the rewards z.

    late: the delay if all rewards are 1; slowest: if all are 0, the same if it does not depend on them; silent: the
    arms that never report a reward of 0, (0,) if there are none.
    """
    for i in range(silent.shape[0]):
        if silent[i] and x[i] and z[i] == 0.0:
            return NEVER
    return common_delay(x, z, late, slowest)


@njit(inline="always")
def post(t, late, horizon, first, last, following):
    """Enter round t into the list of the round in which its outcome arrives, if that is within the horizon.

    first, last: of the list of each round of arrival; following: the next one in the list of each round of play. All
    are rings, whose length is a power of 2; 0 is no round.
    """
    if late <= horizon - t:
        mask = first.shape[0] - 1
        slot = (t + late) & mask
        following[t & mask] = 0
        if first[slot] == 0:
            first[slot] = t
        else:
            following[last[slot] & mask] = t
        last[slot] = t


@njit(inline="always")
def post_part(t, part, late, horizon, first, last, following, parts):
    """`post` of a part of round t, the first of its arms, unless another arm is in that list; see `types.Flight`."""
    if late <= horizon - t:
        mask = first.shape[0] - 1
        slot, entry = (t + late) & mask, t * parts + part
        following[t & mask, part] = 0
        if first[slot] == 0:
            first[slot] = last[slot] = entry
        elif last[slot] // parts != t:
            following[(last[slot] // parts) & mask, last[slot] % parts] = entry
            last[slot] = entry


@njit(inline="always")
def post_arms(t, x, z, late, slowest, silent, by_arm, horizon, first, last, following, arrival):
    """Post the outcomes of the arms of round t, each for its own round of arrival, which goes into the ring `arrival`.

    by_arm: the delay of each arm, (0,) if they report together, unless they are `silent`.
    """
    home, common = t & (first.shape[0] - 1), common_delay(x, z, late, slowest)
    for i in range(x.shape[0]):
        own = common
        if by_arm.shape[0] > 0:
            own = by_arm[i]
        elif silent.shape[0] > 0 and silent[i] and x[i] and z[i] == 0.0:
            own = NEVER
        arrival[home, i] = t + own if own <= NEVER - t else NEVER
        post_part(t, i, own, horizon, first, last, following, following.shape[1])


@gufunc((float64[:], int64, boolean[:]), "(n),()->(n)")
def best_arms(scores, budget, best):
    """The at most `budget` arms with the highest positive scores; of arms with the same score the first ones."""
    if budget <= SMALL_BUDGET:
        border, held = sorted_border(scores, budget, np.empty(budget))
    else:
        border, held = selected_border(scores, budget)
    places = held
    for i in range(scores.shape[0]):
        best[i] = held > 0 and scores[i] > border
        places -= best[i]
    for i in range(scores.shape[0]):
        if places > 0 and scores[i] == border:
            best[i] = True
            places -= 1


@gufunc((float64[:], boolean[:], float64[:], float64[:]), "(n),(n)->(),()")
def set_worth(scores, chosen, total, lowest):
    """The sum of the scores of chosen arms, and the lowest of them."""
    total[0], lowest[0] = 0.0, math.inf
    for i in range(scores.shape[0]):
        if chosen[i]:
            total[0] += scores[i]
            lowest[0] = min(lowest[0], scores[i])


@gufunc((float64[:], boolean[:], float64, boolean[:], int64[:]), "(n),(n),(),(n)->()")
def matches_of(scores, best, lowest, chosen, matches):
    """How many of the chosen arms belong to an optimal set; if there are several, to the closest one.

    They differ in the arms that have the lowest score of an optimal set.
    """
    certain, level, possible = 0, 0, 0
    for i in range(scores.shape[0]):
        at_border = scores[i] == lowest
        certain += chosen[i] and scores[i] > lowest
        level += chosen[i] and at_border
        possible += best[i] and at_border
    matches[0] = certain + min(level, possible)


@gufunc((float64[:], boolean[:], float64, float64, boolean[:], float64[:], int64[:]), "(n),(n),(),(),(n)->(),()")
def score_decision(scores, best, lowest, value, chosen, regret, matches):
    """The value of the best set less `set_worth` of a decision, and its `matches_of`, in one pass."""
    worth, certain, level, possible = 0.0, 0, 0, 0
    for i in range(scores.shape[0]):
        at_border = scores[i] == lowest
        worth += scores[i] if chosen[i] else 0.0
        certain += chosen[i] & (scores[i] > lowest)
        level += chosen[i] & at_border
        possible += best[i] & at_border
    regret[0], matches[0] = value - worth, certain + min(level, possible)


@gufunc((float64[:, :], float64[:], float64[:]), "(n,c),(c)->(n)")
def added_by_context(effects, context, added):
    """The effects of each arm times the context."""
    for i in range(added.shape[0]):
        added[i] = 0.0
        for k in range(context.shape[0]):
            added[i] += effects[i, k] * context[k]
