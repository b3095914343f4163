"""Discounted means, pulls in flight, the indices made of them, and the likelihood-ratio test for a change."""

import math
from typing import Final

from numba import float64, int64, njit, uint64

from spillover.kernels.compiling import gufunc
from spillover.kernels.decorators import bare, eight_doubles, eight_integers
from spillover.kernels.drawing import philox, take_top, to_unit
from spillover.kernels.laws import ARMS_AT_ONCE, draw_betas

# An arm whose bonus is so many times the width of the reward range is forgotten: it counts as never observed.
FORGOTTEN: Final = 1e6
LARGEST_EXPONENT: Final = 700.0


@njit(inline="always")
def power(powers, lag, log_discount):
    """discount^lag; from a table of these numbers as far as it reaches."""
    return powers[lag] if 0 <= lag < powers.shape[0] else math.exp(lag * log_discount)


@njit(inline="always")
def growth(growths, lag, log_discount):
    """discount^(-lag / 2), the growth of a bonus; from a table of these numbers as far as it reaches."""
    return growths[lag] if 0 <= lag < growths.shape[0] else math.exp(min(-0.5 * lag * log_discount, LARGEST_EXPONENT))


@gufunc((float64, float64[:], float64[:], float64[:]), "(),(l)->(l),(l)")
def discount_tables(discount, size, powers, growths):
    """The tables of `power` and `growth`, as long as `size`."""
    log_discount, none = math.log(discount), powers[:0]
    for lag in range(powers.shape[0]):
        powers[lag], growths[lag] = power(none, lag, log_discount), growth(none, lag, log_discount)


@njit(inline="always")
def add_rewards(sums, counts, stamps, x, z, played_at, log_discount, powers):
    """Add the rewards of a round to each played arm's discounted sum and count."""
    for i in range(x.shape[0]):
        if x[i]:
            lag = played_at - stamps[i]
            if counts[i] == 0.0:
                sums[i], counts[i], stamps[i] = z[i], 1.0, played_at
            elif lag >= 0:
                decay = power(powers, lag, log_discount)
                sums[i] = sums[i] * decay + z[i]
                counts[i] = counts[i] * decay + 1.0
                stamps[i] = played_at
            else:
                decay = power(powers, -lag, log_discount)
                sums[i] += decay * z[i]
                counts[i] += decay


@njit(inline="always")
def upper_bounds(sums, counts, stamps, now, clock, log_discount, width, unit, cap, range_width, growths, index):
    """mean / unit + sqrt(width log(clock) / discounted count), at most `cap`; range_width: that of mean / unit."""
    explores = width * math.log(max(clock, 1.0)) > 0.0
    for i in range(sums.shape[0]):
        index[i] = growth(growths, now - stamps[i], log_discount) if explores else 1.0
    grown_bounds(sums, counts, clock, width, unit, cap, range_width, index)


@njit(inline="always")
def grown_bounds(sums, counts, clock, width, unit, cap, range_width, index):
    """`upper_bounds`, in place of the growth of each bonus since the arm was last observed."""
    largest = FORGOTTEN * range_width
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):  # no branch, so that several arms are computed at once
        seen = counts[i] if counts[i] > 0.5 else 0.5  # a count is 0 or at least 1
        bonus = math.sqrt(width / seen) * index[i]
        value = sums[i] / (seen * unit) + bonus
        known = (counts[i] > 0.5) & (bonus <= largest) & (value < cap)
        index[i] = value if known else cap


@njit(inline="always")
def add_pulls(pulls, stamps, x, played_at, log_discount, powers):
    """Count the pulls of a round in each played arm's discounted number, as of its latest one (its stamp)."""
    for i in range(x.shape[0]):
        if x[i]:
            pulls[i] = pulls[i] * power(powers, played_at - stamps[i], log_discount) + 1.0
            stamps[i] = played_at


@njit(inline="always")
def pending_bounds(
    sums, counts, stamps, pulls, latest, now, clock, log_discount, width, unit, low, high, growths, index
):  # fmt: skip
    """mean / unit + sqrt(width log(clock) / discounted pulls); low, high: the range of mean / unit."""
    largest = FORGOTTEN * (high - low)
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):
        if counts[i] == 0.0 and pulls[i] == 0.0:
            index[i] = math.inf
            continue
        value = sums[i] / unit / counts[i] if counts[i] > 0.0 else high
        if width > 0.0:
            bonus = math.inf
            if counts[i] > 0.0:
                bonus = min(bonus, math.sqrt(width / counts[i]) * growth(growths, now - stamps[i], log_discount))
            if pulls[i] > 0.0:
                bonus = min(bonus, math.sqrt(width / pulls[i]) * growth(growths, now - latest[i], log_discount))
            value = math.inf if bonus > largest else value + bonus
        index[i] = value


@njit(inline="always")
def amounts_above_low(observed, x, low, unit, declared, amounts):
    """The amounts in an outcome, 0 for arms not chosen, at most one unit; returns the unit after it."""
    largest = 0.0
    for i in range(x.shape[0]):
        amounts[i] = max(observed[i] - low, 0.0) if x[i] else 0.0
        largest = max(largest, amounts[i])
    if not declared:
        unit = max(unit, largest)
    for i in range(x.shape[0]):
        amounts[i] = min(amounts[i], unit)
    return unit


@njit(inline="always")
def unit_or_one(unit):
    """The unit, or 1 before the first observation."""
    return unit if unit > 0.0 else 1.0


@njit(inline="always")
def rank(weights, low, unit, knows_graph, index):
    """The scores of the arms, in place: the index, or the weight times the index as a reward z."""
    if knows_graph:
        for i in range(index.shape[0]):
            index[i] = weights[i] * (low + unit * index[i])


# positions in `rules`
PENDING: Final = 0  # the bonus counts pulls in flight
IN_RANGE: Final = 1  # arms are forgotten by the width of the reward range; otherwise by that of a range of 1


@njit(inline="always")
def bounds_of_means(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, log_discount, width, unit, rules, growths,
    index,
):  # fmt: skip
    """Each arm's mean plus its bonus, in the units of the rewards; a unit of 0 is the width of the reward range."""
    low, high = reward_range[0], reward_range[1]
    if unit == 0.0:
        unit = high - low
    width *= budget + 1
    if rules[PENDING]:
        pending_bounds(
            sums, counts, stamps, pulls, latest, now, clock, log_discount, width, unit, low / unit, high / unit,
            growths, index,
        )  # fmt: skip
    else:
        range_width = high / unit - low / unit if rules[IN_RANGE] else 1.0
        upper_bounds(
            sums, counts, stamps, now, clock, log_discount, width, unit, math.inf, range_width, growths, index
        )  # fmt: skip
    for i in range(index.shape[0]):
        index[i] *= unit


@njit(inline="always")
def weigh(weights, index):
    """Weights times index, in place; an arm of weight 0 scores 0 even if its index is infinite."""
    for i in range(index.shape[0]):
        index[i] = weights[i] * index[i] if weights[i] != 0.0 else 0.0


@njit(inline="always")
def date_of(played, now, assumed):
    """The round in which an outcome is taken to have been played."""
    return played if assumed < 0 else max(now - assumed, 1)


@njit(inline="always")
def take_snapshot(adjacency, found):
    """Copy the graph."""
    for i in range(adjacency.shape[0]):
        for j in range(adjacency.shape[1]):
            found[i, j] = adjacency[i, j]


@bare
def add_side_by_side(
    sums, counts, stamps, evidence, discounts, evidence_discount, powers, x, z, reward_range, played_at,
    latest_observed,
):  # fmt: skip
    """Score every discount's prediction of the rewards of a round, then learn the rewards."""
    fading = math.exp(abs(played_at - latest_observed) * math.log(evidence_discount))
    weight = 1.0
    if played_at < latest_observed:
        weight = fading
    else:
        for k in range(discounts.shape[0]):
            evidence[k] *= fading
    for k in range(discounts.shape[0]):
        log_discount = math.log(discounts[k])
        worth = 0.0
        for i in range(x.shape[0]):
            if x[i]:
                lag = played_at - stamps[i]
                decay = power(powers[k], abs(lag), log_discount)
                total, count = sums[k, i] * decay, counts[k, i] * decay
                reward = min(max((z[i] - reward_range[0]) / (reward_range[1] - reward_range[0]), 0.0), 1.0)
                if reward > 0.0:  # a reward at an end of the range needs one logarithm
                    worth += reward * math.log((total + 1.0) / (count + 2.0))
                if reward < 1.0:
                    worth += (1.0 - reward) * math.log((count - total + 1.0) / (count + 2.0))
                if lag >= 0:
                    sums[k, i], counts[k, i] = total + reward, count + 1.0
                else:
                    sums[k, i] += decay * reward
                    counts[k, i] += decay
        evidence[k] += weight * worth
    for i in range(x.shape[0]):
        if x[i] and played_at > stamps[i]:
            stamps[i] = played_at


@njit(inline="always")
def add_pulls_side_by_side(pulls, stamps, discounts, powers, x, played_at):
    """Count the pulls of a round under every discount, as of each played arm's latest one (its stamp)."""
    for k in range(discounts.shape[0]):
        log_discount = math.log(discounts[k])
        for i in range(x.shape[0]):
            if x[i]:
                pulls[k, i] = pulls[k, i] * power(powers[k], played_at - stamps[i], log_discount) + 1.0
    for i in range(x.shape[0]):
        if x[i]:
            stamps[i] = played_at


@njit(inline="always")
def draw_discount(evidence, n, key, call, at_round, purpose):
    """Draw the position of a discount in proportion to exp(evidence); n: number of arms, whose draws come before."""
    best = evidence[0]
    for k in range(evidence.shape[0]):
        best = max(best, evidence[k])
    total = 0.0
    for k in range(evidence.shape[0]):
        total += math.exp(evidence[k] - best)
    point = total * to_unit(philox(uint64(2 * n), call, at_round, purpose, key[0], key[1])[0])
    lead = 0
    while lead < evidence.shape[0] - 1 and point >= math.exp(evidence[lead] - best):
        point -= math.exp(evidence[lead] - best)
        lead += 1
    return lead


@bare
def fill_means(
    sums, counts, stamps, pulls, latest, evidence, discounts, powers, now, latest_observed, key, call, at_round,
    purpose, draw, mean, count, flying,
):  # fmt: skip
    """`side_by_side_draw`; returns the position of the discount."""
    n = draw.shape[0]
    ones, zeros = eight_doubles(), eight_doubles()
    found, arms = eight_doubles(), eight_integers()
    lead = draw_discount(evidence, n, key, call, at_round, purpose)
    log_discount = math.log(discounts[lead])
    for start in range(0, n, ARMS_AT_ONCE):
        size = min(n - start, ARMS_AT_ONCE)
        for j in range(size):
            i = start + j
            decay = power(powers[lead], latest_observed - stamps[i], log_discount)
            good, seen = sums[lead, i] * decay, counts[lead, i] * decay
            played = pulls[lead, i] * power(powers[lead], now - latest[i], log_discount)
            arrived = counts[lead, i] * power(powers[lead], now - stamps[i], log_discount)
            flying[i] = max(played - arrived, 0.0)
            count[i] = seen
            mean[i] = (good + 1.0) / (seen + 2.0)
            ones[j], zeros[j], arms[j] = good + 1.0, seen - good + 1.0, i
        draw_betas(ones, zeros, arms, size, call, at_round, purpose, key[0], key[1], found)
        for j in range(size):
            i = start + j
            seen = count[i]
            draw[i] = mean[i] + (found[j] - mean[i]) * math.sqrt((seen + 2.0) / (seen + 2.0 + flying[i]))
    return lead


@njit(inline="always")
def fading(longest_delay, any_arrived, soon, patience):
    """The share of a pull in flight that remains after a round: late pulls fade, faster if delays have been short."""
    return 1.0 - 1.0 / (patience * (max(longest_delay, soon) + 1.0)) if any_arrived else 1.0


@njit(inline="always")
def start_pulls(last_pull, in_flight, x, now, fade):
    """The last pull of each arm and its pulls in flight, after round `now` was played."""
    for i in range(x.shape[0]):
        in_flight[i] *= fade
    for i in range(x.shape[0]):
        if x[i]:
            last_pull[i] = now
            in_flight[i] += 1.0


@njit(inline="always")
def take_rewards(in_flight, rewards_seen, x, z, reward_range, remains, reward):
    """Rewards of the chosen arms in units of the range; they end pulls in flight, and are added to their sum so far.

    remains: what is left of a pull of their round.
    """
    low, width = reward_range[0], reward_range[1] - reward_range[0]
    for i in range(x.shape[0]):  # of most arms there is none: a loop without branches
        reward[i] = 0.0
    for i in range(x.shape[0]):
        if x[i]:
            reward[i] = min(max((z[i] - low) / width, 0.0), 1.0)
            in_flight[i] = max(in_flight[i] - remains, 0.0)
            rewards_seen[i] += reward[i]


NOBODY: Final = -1  # no arm is due for a forced trial
LONGEST: Final = 2.0**62
BELOW: Final = 1.0 - 1e-9  # so that rounding leaves no split point out


@bare
def bernoulli_divergence(p, q):
    """kl(p, q) of two Bernoulli distributions, q inside (0, 1)."""
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q)
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


@bare
def likelihood_ratio(counts, totals, used, unit, least):
    """max over split points of n_1 kl(mean_1, mean) + n_2 kl(mean_2, mean) of observations in buckets.

    What is not above `least` may be any smaller number.

    kl(p, q) <= (p - q)^2 / (q (1 - q)), so most split points are seen to be below the least one that matters without a
    logarithm.
    """
    n, total = 0.0, 0.0
    for b in range(used):
        n += counts[b]
        total += totals[b] / unit
    mean = total / n
    best, left, left_total, spread = 0.0, 0.0, 0.0, mean * (1.0 - mean)
    if mean <= 0.0 or mean >= 1.0:
        return best  # all observations are equal
    for b in range(used - 1):
        left += counts[b]
        left_total += totals[b] / unit
        right, right_total = n - left, total - left_total
        off = left_total - left * mean
        if off * off * n < BELOW * max(best, least) * left * right * spread:
            continue
        before = min(max(left_total / left, 0.0), 1.0)
        after = min(max(right_total / right, 0.0), 1.0)
        ratio = left * bernoulli_divergence(before, mean) + right * bernoulli_divergence(after, mean)
        best = max(best, ratio)
    return best


@bare
def merge_buckets(counts, totals):
    """Merge the two neighbours whose joint size is smallest relative to the number of observations after them."""
    buckets = counts.shape[0]
    place, least, newer = 0, math.inf, 1.0
    for b in range(buckets - 2, -1, -1):
        size = (counts[b] + counts[b + 1]) / newer
        if size < least:
            place, least = b, size
        newer += counts[b + 1]
    counts[place] += counts[place + 1]
    totals[place] += totals[place + 1]
    for b in range(place + 1, buckets - 1):
        counts[b], totals[b] = counts[b + 1], totals[b + 1]


@bare
def note_and_test(counts, totals, used, x, reward, unit, false_alarms):
    """Add a reward to the history of each played arm; returns whether one has changed, at level `false_alarms`.

    A history is kept in buckets, so memory is constant. A new observation gets a bucket of its own; when all are in
    use, two neighbours are merged, so that the size of a bucket grows in proportion to its age.
    """
    alarm, buckets = False, counts.shape[1]
    for i in range(x.shape[0]):
        if x[i]:
            if used[i] == buckets:
                merge_buckets(counts[i], totals[i])
                used[i] -= 1
            counts[i, used[i]], totals[i, used[i]] = 1.0, reward[i]
            used[i] += 1
            n = 0.0
            for b in range(used[i]):
                n += counts[i, b]
            least = math.log(3.0 / false_alarms) + 1.5 * math.log(n)
            alarm |= likelihood_ratio(counts[i], totals[i], used[i], unit, least) > least
    return alarm


@njit(inline="always")
def due_arm(n, since, rate):
    """The arm that is due for a forced trial: each once in every n / rate rounds since the restart."""
    if rate == 0.0:
        return NOBODY
    turn = since % int64(max(min(n / rate, LONGEST), n))
    return turn if turn < n else NOBODY


@gufunc((float64[:], int64, float64, int64[:]), "(n),(),()->()")
def forced_arm(arms, since, rate, due):
    """`due_arm` of as many arms as the length of `arms`."""
    due[0] = due_arm(arms.shape[0], since, rate)


@njit(inline="always")
def force_arm(since, rate, budget, key, call, at_round, purpose, scores, best, x):
    """Replace x by a random set with the arm that is due for a forced trial, if one is; scores, best: to work in."""
    n = x.shape[0]
    due = due_arm(n, since, rate)
    if due != NOBODY:
        for i in range(n):
            words = philox(uint64(i // 4 * 4), call, at_round, purpose, key[0], key[1])
            scores[i] = to_unit(words[i % 4]) + 1.0
        scores[due] = math.inf
        take_top(scores, budget, key, call + uint64(1), at_round, purpose, best, x)
