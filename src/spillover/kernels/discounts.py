"""Averages under several discounts side by side, and the log-likelihood of their predictions."""

import math

from numba import boolean, float64, int64

from spillover.kernels.build import gufunc


@gufunc(
    (
        *(float64[:, :], float64[:, :], int64[:], float64[:], float64[:], float64),
        *(boolean[:], float64[:], float64[:], int64, int64, boolean, boolean[:]),
    ),
    "(d,n),(d,n),(n),(d),(d),(),(n),(n),(r),(),(),()->()",
    writes=("sums", "counts", "stamps", "evidence"),
)
def side_by_side_arrival(
    sums,
    counts,
    stamps,
    evidence,
    discounts,
    evidence_discount,
    x,
    z,
    reward_range,
    played_at,
    latest_observed,
    arrived,
    taken,
):
    """Score every discount's prediction of the rewards of a round, then learn the rewards.

    Sums and counts are as of each arm's stamp, the evidence as of `latest_observed`, the latest round observed before
    this one. u is the reward rescaled to [0, 1], p the predicted mean under a Beta(1, 1) prior, and the score is the
    log-likelihood log(p^u (1 - p)^(1 - u)).
    """
    taken[0] = arrived
    if not arrived:
        return
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
                decay = math.exp(abs(lag) * log_discount)
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


@gufunc(
    (float64[:, :], int64[:], float64[:], boolean[:], int64, float64[:, :], int64[:]),
    "(d,n),(n),(d),(n),()->(d,n),(n)",
)
def side_by_side_pulls(pulls, stamps, discounts, x, played_at, counted, stamped):
    """Each arm's discounted number of pulls under every discount, as of its latest one (its stamp)."""
    for i in range(x.shape[0]):
        stamped[i] = played_at if x[i] else stamps[i]
    for k in range(discounts.shape[0]):
        log_discount = math.log(discounts[k])
        for i in range(x.shape[0]):
            counted[k, i] = pulls[k, i]
            if x[i]:
                counted[k, i] = pulls[k, i] * math.exp((played_at - stamps[i]) * log_discount) + 1.0
