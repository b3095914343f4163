"""Switching means: the posterior probability of each hypothesis "the last change was at round r".

Hypotheses are the innermost axis and arms an outer one: loops over hypotheses are contiguous, so that the processor
computes several at once, and arms without any reward so far cost nothing. Sums over hypotheses have four partial sums
for the same reason.
"""

import math
from typing import Final

from numba import njit

from spillover.kernels.arithmetic import exp_of, log_of
from spillover.kernels.decorators import bare

# The likelihood ratio of a change is clipped to these bounds, so that products of many do not overflow or underflow;
# beyond them the question is settled anyway.
LEAST_RATIO: Final = 1e-30
MOST_RATIO: Final = 1e30
MOST_PRECISE: Final = 20.0  # a continuous reward is worth at most this many Bernoulli draws
MOST_STRENGTH: Final = 1e9  # a summary is worth at most this many observations; beyond, its variance is rounding
MOST_ALONE: Final = 0.4  # upper bound on the probability that an idle arm changed alone, if there was no shared change
CERTAIN: Final = 0.99  # a change counts as detected from this probability on
SAME_CHANGE: Final = 20  # hypotheses that differ by at most so many rounds are about the same change
LEAST_AVERAGE: Final = 0.01  # the average mean of the arms counts as at least so far inside of the range
ROUNDS_TO_REDRAW: Final = 50.0  # after so many rounds, the average mean of the arms is half trusted
OUTLYING: Final = 4.0  # continuous rewards count as at most so many standard deviations from what was expected


@njit(inline="always", error_model="numpy")
def added(values):
    """The sum, in four partial sums."""
    size = values.shape[0]
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = size - size % 4
    for k in range(0, whole, 4):
        first += values[k]
        second += values[k + 1]
        third += values[k + 2]
        fourth += values[k + 3]
    for k in range(whole, size):
        first += values[k]
    return (first + second) + (third + fourth)


@njit(inline="always", error_model="numpy")
def add_shares(mass, totals):
    """The probability of each hypothesis, over the shares of arms that changed."""
    for k in range(totals.shape[0]):
        totals[k] = mass[0, k]
    for g in range(1, mass.shape[0]):
        for k in range(totals.shape[0]):
            totals[k] += mass[g, k]


@njit(inline="always", error_model="numpy")
def scale(mass, factor):
    for g in range(mass.shape[0]):
        for k in range(mass.shape[1]):
            mass[g, k] *= factor


@njit(inline="always", error_model="numpy")
def precision_of(spread):
    """How many Bernoulli draws a reward is worth: their variance m (1 - m) over the rewards'.

    The variance of the rewards is m (1 - m) - E z (1 - z), so rewards of 0 and 1 are worth exactly 1 draw, even while
    the means are uncertain.
    """
    return min(spread[0] / max(spread[0] - spread[1], spread[0] / MOST_PRECISE), MOST_PRECISE)


@njit(inline="always", error_model="numpy")
def weakest(totals):
    """The least probable hypothesis."""
    place, least = 0, math.inf
    for k in range(totals.shape[0]):
        if totals[k] < least:
            place, least = k, totals[k]
    return place


@njit(inline="always", error_model="numpy")
def expected_changes(mass, totals, changes):
    """The expected number of changes together so far: those before each hypothesis, and its own."""
    expected, total = 0.0, 0.0
    for k in range(totals.shape[0]):
        expected += totals[k] * (changes[k] + 1.0) - mass[0, k]
        total += totals[k]
    return expected / total


@njit(inline="always", error_model="numpy")
def within_reach(reward, mean, square, precision):
    """A continuous reward, cut off at some deviations from what was expected: so no outlier looks like a change.

    Means are averages of what is not cut off. Where all rewards are 0 or 1 (precision 1), none is cut off.
    """
    if precision == 1.0:
        return reward
    most = OUTLYING * math.sqrt(mean * (1.0 - mean) / precision + max(square - mean * mean, 0.0))
    return min(max(reward, mean - most), mean + most)


@njit(inline="always", error_model="numpy")
def start_arm(untried, counts, ratio, idle_prior, changed, shares):
    """What all hypotheses say of an arm without rewards."""
    for side in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            counts[side, k] = untried[side, k]
    for k in range(ratio.shape[0]):
        ratio[k], idle_prior[k] = 1.0, 0.0
    for g in range(shares.shape[0]):
        for k in range(ratio.shape[0]):
            changed[g, k] = shares[g] if g > 0 else 0.0


@njit(inline="always", error_model="numpy")
def redraw_range(mean, seen, rounds, redrawn):
    """Where means are after a change: anywhere in [0, 1], unless the arms' means are all near one end of it.

    The average mean m of the arms observed, 1/2 before the first round, moves the middle to m (1 + 4 m) if m is below
    1/4; and likewise from above.
    """
    total, arms = 0.0, 0
    for i in range(seen.shape[0]):
        if seen[i] > 0:
            total += mean[i]
            arms += 1
    if arms > 0:
        average = 0.5 + (total / arms - 0.5) * rounds / (rounds + ROUNDS_TO_REDRAW)
        low, high = max(average, LEAST_AVERAGE), max(1.0 - average, LEAST_AVERAGE)
        redrawn[0] = max(1.0 - 2.0 * high * (1.0 + 4.0 * high), 0.0)
        redrawn[1] = min(2.0 * low * (1.0 + 4.0 * low), 1.0)


@njit(inline="always", error_model="numpy")
def open_counts(counts, slot, mean, square, fresh):
    """The counts of an arm under a new hypothesis.

    If it did not change, it has the mean and variance of the whole mixture so far, as a Beta distribution; if it did,
    one worth two observations, `fresh` of them ones.
    """
    since = counts.shape[1] // 2 + slot
    most = mean * (1.0 - mean)
    # relative to the mean: near 0 and 1 an absolute floor would discard almost all observations
    variance = max(square - mean * mean, most / MOST_STRENGTH)
    strength = max(most / variance - 1.0, 2.0)
    counts[0, slot], counts[1, slot] = mean * strength, (1.0 - mean) * strength
    counts[0, since], counts[1, since] = fresh, 2.0 - fresh


@njit(inline="always", error_model="numpy")
def idle_total(x, seen, played_at, idle_hazard, alone):
    """The expected number of arms of a round that changed alone while they were not played; alone: of each arm."""
    total = 0.0
    for i in range(x.shape[0]):
        alone[i] = 0.0
        if x[i] and played_at > seen[i]:
            alone[i] = 1.0 - (1.0 - idle_hazard) ** (played_at - seen[i])
            total += alone[i]
    return total


@njit(inline="always", error_model="numpy")
def open_mass(mass, totals, slot, shared, alone, prior):
    """The probability of a new hypothesis: of a change of a share of the arms, or (type 0) of one idle arm."""
    totals[slot] = 0.0
    scale(mass, (1.0 - shared - alone) / added(totals))
    mass[0, slot] = alone
    for g in range(1, mass.shape[0]):
        mass[g, slot] = shared * prior[g]


@njit(inline="always", error_model="numpy")
def predict(ones, zeros, reward, precision, likely, room):
    """The likelihood p^z (1 - p)^(1 - z) of a reward, to the power of the precision, under each Beta distribution.

    Bernoulli at the ends of the range with precision 1. Each function has a loop of its own: the processor overlaps
    more of them.
    """
    for k in range(likely.shape[0]):
        likely[k] = ones[k] / (ones[k] + zeros[k])
    if precision == 1.0 and reward == 0.0:
        for k in range(likely.shape[0]):
            likely[k] = 1.0 - likely[k]
    elif precision != 1.0 or reward != 1.0:
        for k in range(likely.shape[0]):
            room[k] = (1.0 - reward) * log_of(1.0 - likely[k])
        for k in range(likely.shape[0]):
            likely[k] = reward * log_of(likely[k])
        for k in range(likely.shape[0]):
            likely[k] = exp_of(precision * (likely[k] + room[k]))


@njit(inline="always", error_model="numpy")
def count(counts, there, amount):
    """Add to the counts of an arm: unchanged for all hypotheses, since r for those whose change came before."""
    hypotheses = there.shape[0]
    unchanged, since = counts[:hypotheses], counts[hypotheses:]
    for k in range(hypotheses):
        unchanged[k] += amount
    for k in range(hypotheses):
        since[k] += there[k] * amount


@njit(inline="always", error_model="numpy")
def update_ratio(ratio, there, unchanged, since):
    for k in range(ratio.shape[0]):
        updated = min(max(ratio[k] * since[k] / unchanged[k], LEAST_RATIO), MOST_RATIO)
        ratio[k] = updated if there[k] > 0.0 else ratio[k]


@njit(inline="always", error_model="numpy")
def weigh(mass, there, changed, unchanged, since):
    """Multiply the probabilities of the hypotheses of one share by the likelihood."""
    for k in range(mass.shape[0]):
        likely = changed[k] * since[k] + (1.0 - changed[k]) * unchanged[k]
        mass[k] *= likely if there[k] > 0.0 else 1.0


@njit(inline="always", error_model="numpy")
def update_changed(changed, prior, ratio):
    """Posterior probability of a change of the arm, from its prior probability and its likelihood ratio."""
    for k in range(changed.shape[0]):
        odds = prior[k] * ratio[k]
        changed[k] = odds / (odds + (1.0 - prior[k]))


@njit(inline="always", error_model="numpy")
def mass_there(mass, there):
    """The probability of the hypotheses whose change came before."""
    total = 0.0
    for g in range(mass.shape[0]):
        for k in range(mass.shape[1]):
            total += there[k] * mass[g, k]
    return total


@njit(inline="always", error_model="numpy")
def weigh_reward(there, all_there, mass, counts, ratio, idle_prior, changed, shares, reward, raw, precision, room):
    """Update every hypothesis with one arm's reward: its probability (by the reward as it is cut off) and its counts.

    there: 1 for the hypotheses whose change came before the reward was earned. For the others (feedback out of order),
    the reward is one more observation from before the change, with the likelihood that the earlier hypotheses give it
    on average, which is returned: 0 if they have underflowed, so that nothing can be said.

    Many short loops over few arrays: the compiler can prove that they are independent.
    """
    hypotheses = there.shape[0]
    likely, prior = room[0], room[1, :hypotheses]
    unchanged, since = likely[:hypotheses], likely[hypotheses:]
    predict(counts[0], counts[1], reward, precision, likely, room[2])
    count(counts[0], there, precision * raw)
    count(counts[1], there, precision * (1.0 - raw))
    before = 1.0 if all_there else mass_there(mass, there)
    update_ratio(ratio, there, unchanged, since)
    total = 0.0
    for g in range(mass.shape[0]):
        weigh(mass[g], there, changed[g], unchanged, since)
        total += added(mass[g])
        if g == 0:
            update_changed(changed[g], idle_prior, ratio)
        else:
            for k in range(hypotheses):
                prior[k] = shares[g]
            update_changed(changed[g], prior, ratio)
    after = total if all_there else mass_there(mass, there)
    if not after > 0.0:  # the earlier hypotheses have underflowed: there is no average
        scale(mass, 1.0 / total)
        return 0.0
    if not all_there:
        for k in range(hypotheses):
            if there[k] == 0.0:
                for g in range(mass.shape[0]):
                    total += (after / before - 1.0) * mass[g, k]
                    mass[g, k] *= after / before
    scale(mass, 1.0 / total)
    return after / before


@njit(inline="always", error_model="numpy")
def moments(mass, totals, ones, zeros, changed, room):
    """Mean and expected square of an arm's mean, over the hypotheses.

    One division for each Beta distribution: divisions dominate the run time.
    """
    hypotheses = totals.shape[0]
    weight, first, second = room[0], room[1], room[2]
    unchanged, since = weight[:hypotheses], weight[hypotheses:]
    for k in range(hypotheses):
        since[k] = mass[0, k] * changed[0, k]
    for g in range(1, mass.shape[0]):
        share, of_share = mass[g], changed[g]
        for k in range(hypotheses):
            since[k] += share[k] * of_share[k]
    for k in range(hypotheses):
        unchanged[k] = totals[k] - since[k]
    for k in range(weight.shape[0]):
        n = ones[k] + zeros[k]
        part = weight[k] * ones[k] / (n * (n + 1.0))
        first[k], second[k] = part * (n + 1.0), part * (ones[k] + 1.0)
    return added(first), added(second)


@njit(inline="always", error_model="numpy")
def note_change(change_round, totals, detected):
    """Count a change once it is nearly certain, summing over hypotheses of neighbouring rounds; update its round."""
    date, most = 0, 0.0
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and totals[k] > most:
            date, most = change_round[k], totals[k]
    near = 0.0
    for k in range(change_round.shape[0]):
        if change_round[k] > 0 and abs(change_round[k] - date) <= SAME_CHANGE:
            near += totals[k]
    if near > CERTAIN:
        if detected[0] == 0 or date > detected[1] + SAME_CHANGE:
            detected[0] += 1
            detected[1] = date
        elif date >= detected[1] - SAME_CHANGE:
            detected[1] = date


@bare
def learn_rewards(
    change_round, mass, untried, counts, ratio, idle_prior, changed, mean, square, seen, latest, detected, spread,
    changes, redrawn, x, reward, weight, played_at, shares, prior, hazards, idle_hazard, room, expected, counted,
    likely,
):  # fmt: skip
    """Update all hypotheses with the rewards of a round, however late it arrives.

    weight: of the rewards, as evidence; 1 if they were observed. hazards: changes and rounds that the probability of a
    change per round is worth before anything is observed; those that are observed are added.

    Fills in what they expected of the chosen arms before they learned from it, the rewards as they are cut off, and
    their likelihood (0 if nothing can be said), each 0 for the other arms; returns how many draws a reward was worth.
    room: scratch memory, (4 + shares, 2 hypotheses).
    """
    for i in range(x.shape[0]):
        expected[i] = counted[i] = likely[i] = 0.0
    precision = precision_of(spread)
    hypotheses = change_round.shape[0]
    totals, there = room[3, :hypotheses], room[3, hypotheses:]
    for i in range(x.shape[0]):
        if x[i]:
            if seen[i] == 0:
                start_arm(untried, counts[i], ratio[i], idle_prior[i], changed[i], shares)
            expected[i], counted[i] = mean[i], within_reach(reward[i], mean[i], square[i], precision)
            spread[0] += weight * mean[i] * (1.0 - mean[i])
            spread[1] += weight * reward[i] * (1.0 - reward[i])
    if played_at > latest[0] > 0:  # the hypothesis of a change just before, instead of the least probable one
        add_shares(mass, totals)
        slot, changes_seen = weakest(totals), expected_changes(mass, totals, changes)
        redraw_range(mean, seen, latest[0], redrawn)
        alone = likely  # until the likelihoods are known
        fresh, total_idle = redrawn[0] + redrawn[1], idle_total(x, seen, played_at, idle_hazard, alone)
        for i in range(x.shape[0]):
            if seen[i] == 0:
                open_counts(untried, slot, mean[i], square[i], fresh)
                break
        for i in range(x.shape[0]):
            if seen[i] > 0 or x[i]:
                idle_prior[i, slot] = changed[i, 0, slot] = alone[i] / max(total_idle, 1e-300)
                for g in range(1, shares.shape[0]):
                    changed[i, g, slot] = shares[g]
                ratio[i, slot] = 1.0
                open_counts(counts[i], slot, mean[i], square[i], fresh)
        change_round[slot], changes[slot] = played_at, changes_seen
        hazard = (hazards[0] + changes_seen) / (hazards[1] + latest[0])
        shared = 1.0 - (1.0 - hazard) ** (played_at - latest[0])
        open_mass(mass, totals, slot, shared, min(total_idle, MOST_ALONE * (1.0 - shared)), prior)
    latest[0] = max(latest[0], played_at)
    all_there = True
    for k in range(hypotheses):
        there[k] = 1.0 if change_round[k] <= played_at else 0.0
        all_there &= change_round[k] <= played_at
    for i in range(x.shape[0]):
        if x[i]:
            likely[i] = weigh_reward(
                there,
                all_there,
                mass,
                counts[i],
                ratio[i],
                idle_prior[i],
                changed[i],
                shares,
                counted[i],
                reward[i],
                weight * precision,
                room,
            )
            seen[i] = max(seen[i], played_at)
    add_shares(mass, totals)
    all_tried = True
    for i in range(x.shape[0]):
        if seen[i] > 0:
            mean[i], square[i] = moments(mass, totals, counts[i, 0], counts[i, 1], changed[i], room)
        else:
            all_tried = False
    if not all_tried:
        taking_part = room[4:, :hypotheses]
        for g in range(mass.shape[0]):
            for k in range(hypotheses):
                taking_part[g, k] = shares[g] if g > 0 else 0.0
        first, second = moments(mass, totals, untried[0], untried[1], taking_part, room)
        for i in range(x.shape[0]):
            if seen[i] == 0:
                mean[i], square[i] = first, second
    note_change(change_round, totals, detected)
    return precision
