"""Means that drift, and arms that do not report: how far the rewards speak for either."""

import math
from typing import Final

from numba import njit

from spillover.kernels.decorators import bare

LEAST_MEAN: Final = 0.01  # means of rewards in [0, 1] stay so far inside: the normal approximation does not know it


@njit(inline="always")
def transition(scale, variance, elapsed):
    """A Matern process of smoothness 3/2 over so many rounds: the matrix for (level, slope), and the new variance."""
    rate = math.sqrt(3.0) / scale
    kept = math.exp(-rate * elapsed)
    f00, f01 = kept * (1.0 + rate * elapsed), kept * elapsed
    f10, f11 = -kept * rate * rate * elapsed, kept * (1.0 - rate * elapsed)
    slope = rate * rate * variance
    q00 = variance * (1.0 - f00 * f00) - f01 * f01 * slope
    q01 = -f00 * f10 * variance - f01 * f11 * slope
    q11 = slope * (1.0 - f11 * f11) - f10 * f10 * variance
    return f00, f01, f10, f11, q00, q01, q11


@njit(inline="always")
def move_arm(track, i, moves):
    """Let an arm drift, as `transition` says; its track is (level, slope, their variances and covariance)."""
    f00, f01, f10, f11, q00, q01, q11 = moves
    level, slope, p00, p01, p11 = track[i, 0], track[i, 1], track[i, 2], track[i, 3], track[i, 4]
    track[i, 0] = f00 * level + f01 * slope
    track[i, 1] = f10 * level + f11 * slope
    track[i, 2] = f00 * f00 * p00 + 2.0 * f00 * f01 * p01 + f01 * f01 * p11 + q00
    track[i, 3] = f00 * f10 * p00 + (f00 * f11 + f01 * f10) * p01 + f01 * f11 * p11 + q01
    track[i, 4] = f10 * f10 * p00 + 2.0 * f10 * f11 * p01 + f11 * f11 * p11 + q11


@njit(inline="always")
def move_on(track, scale, variance, elapsed):
    """Let every arm drift over so many rounds."""
    moves = transition(scale, variance, elapsed)
    for i in range(track.shape[0]):
        move_arm(track, i, moves)


@njit(inline="always")
def correct(track, reward, noise):
    """Kalman update of one arm's track with a reward of this variance."""
    p00, p01 = track[2], track[3]
    gain, slope_gain = p00 / (p00 + noise), p01 / (p00 + noise)
    error = reward - 0.5 - track[0]
    track[0] += gain * error
    track[1] += slope_gain * error
    track[2] -= gain * p00
    track[3] -= gain * p01
    track[4] -= slope_gain * p01


@njit(inline="always")
def learn_drift(track, i, drifts, reward, counted, likely, weight, precision, moved):
    """Learn a reward of an arm, and compare how well drifting and switching predict it.

    moved: variance of the arm's mean since the reward was earned.
    """
    mean = min(max(0.5 + track[i, 0], LEAST_MEAN), 1.0 - LEAST_MEAN)
    if likely > 0.0:
        power = weight * precision
        chance = math.exp(power * (counted * math.log(mean) + (1.0 - counted) * math.log(1.0 - mean)))
        drifting, switching = drifts[0] * chance, (1.0 - drifts[0]) * likely
        if drifting + switching > 0.0:
            drifts[0] = drifting / (drifting + switching)
    correct(track[i], reward, mean * (1.0 - mean) / (weight * precision) + moved)


@bare
def drifting_arrival(
    track,
    drifts,
    latest,
    x,
    reward,
    counted,
    likely,
    precision,
    weight,
    played_at,
    scale,
    variance,
    prior,
    hazard,
):
    """Learn the rewards of a round as those of drifting means, and compare how well drifting and switching predict.

    counted: the rewards without outliers, by which the two are compared. likely: their likelihood if the means switch
    (0: unknown). drifts: the probability that the means drift. With probability `hazard` per round the world becomes
    another one, which drifts with probability `prior`. A reward older than the latest round is a noisier observation
    of the latest mean.
    """
    elapsed = played_at - latest[0]
    if elapsed > 0:
        if latest[0] > 0:
            move_on(track, scale, variance, elapsed)
            drifts[0] += (1.0 - (1.0 - hazard) ** elapsed) * (prior - drifts[0])
        latest[0] = played_at
    moved = 0.0
    if elapsed < 0:
        moved = 2.0 * variance * (1.0 - transition(scale, variance, -elapsed)[0])
    for i in range(x.shape[0]):
        if x[i]:
            learn_drift(track, i, drifts, reward[i], counted[i], likely[i], weight, precision, moved)


@njit(inline="always")
def drifting_forecast(track, elapsed, scale, variance, mean, deviation):
    """Mean and standard deviation of each arm so many rounds after its track."""
    f00, f01, _, _, q00, _, _ = transition(scale, variance, elapsed)
    for i in range(track.shape[0]):
        level = 0.5 + f00 * track[i, 0] + f01 * track[i, 1]
        spread = f00 * f00 * track[i, 2] + 2.0 * f00 * f01 * track[i, 3] + f01 * f01 * track[i, 4] + q00
        mean[i] = min(max(level, LEAST_MEAN), 1.0 - LEAST_MEAN)
        deviation[i] = math.sqrt(max(spread, 1e-12))


REPORTED_ZERO: Final = 0.02  # if silence means a reward of 0: share of such rewards that are reported all the same
MEMORY: Final = 0.995  # factor on the counts with every round
MOST_EVIDENCE: Final = 20.0  # bound on the logarithm of the odds, so that they can still turn


@bare
def weigh_silence(answers, odds, x, known, z, reward_range):
    """Compare two explanations of the chosen arms of a round that never report.

    Either outcomes are lost by chance, equally often for every arm; or a reward of 0 is not reported. Under the second,
    arms with lower rewards report less often, and what they do report is good news. odds: the logarithm of the odds for
    the second. answers: rewards, rewards of 0 (or of the end of the range that is next to it) and silences of each arm.
    Returns the probability of the second: the weight of a silence as a reward of 0.
    """
    low, high = reward_range[0], reward_range[1]
    zero = min(max(0.0, low), high)
    answered, silent = 0.0, 0.0
    for i in range(x.shape[0]):
        heard, lacking = answers[i, 0] + answers[i, 1], answers[i, 2]
        if heard + lacking == 0.0:
            continue  # as most of many arms
        answered += heard
        silent += lacking
        if not x[i]:
            for kind in range(3):
                answers[i, kind] *= MEMORY
    lost = (silent + 0.5) / (answered + silent + 1.0)
    for i in range(x.shape[0]):
        if x[i]:
            among_answers = (answers[i, 0] + 0.5) / (answers[i, 0] + answers[i, 1] + 1.0)
            among_all = (answers[i, 0] + 0.5) / (answers[i, 0] + answers[i, 1] + answers[i, 2] + 1.0)
            if known[i] and min(max(z[i], low), high) != zero:
                odds[0] += math.log(among_all) - math.log(among_answers * (1.0 - lost))
            elif known[i]:
                odds[0] += math.log((1.0 - among_all) * REPORTED_ZERO)
                odds[0] -= math.log((1.0 - among_answers) * (1.0 - lost))
            else:
                odds[0] += math.log((1.0 - among_all) * (1.0 - REPORTED_ZERO)) - math.log(lost)
            for kind in range(3):
                answers[i, kind] *= MEMORY
            answers[i, 2 if not known[i] else 1 if min(max(z[i], low), high) == zero else 0] += 1.0
    odds[0] = min(max(odds[0], -MOST_EVIDENCE), MOST_EVIDENCE)
    return 1.0 / (1.0 + math.exp(-odds[0]))
