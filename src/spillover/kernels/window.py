"""Sums and counts over a sliding window of rounds."""

from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc


@njit
def forget_before(sums, counts, rewards, chosen, holds, oldest, first):
    """Subtract the rounds from `oldest` to `first` - 1 from sums and counts."""
    window, n = rewards.shape
    for played_at in range(max(oldest, first - window), first):
        slot = played_at % window
        if oldest <= holds[slot] < first:  # this round, or after a long gap one a window or more before it
            for i in range(n):
                if chosen[slot, i]:
                    counts[i] -= 1.0
                    sums[i] = sums[i] - rewards[slot, i] if counts[i] > 0.0 else 0.0


@gufunc(
    (
        float64[::1],
        float64[::1],
        float64[:, ::1],
        boolean[:, ::1],
        int64[::1],
        int64[:],
        boolean[:],
        float64[:],
        int64,
        int64,
        boolean,
        boolean[:],
    ),
    "(n),(n),(w,n),(w,n),(w),(o),(n),(n),(),(),()->()",
    writes=("sums", "counts", "rewards", "chosen", "holds", "oldest"),
)
def window_arrival(sums, counts, rewards, chosen, holds, oldest, x, reward, played_at, now, arrived, taken):
    """Put a round played at `played_at` into the window of rounds after now - w; rounds that left it are forgotten."""
    taken[0] = False
    if not arrived:
        return
    window = holds.shape[0]
    first = now - window + 1
    forget_before(sums, counts, rewards, chosen, holds, oldest[0], first)
    oldest[0] = max(oldest[0], first)
    if played_at < first:
        return
    taken[0] = True
    slot = played_at % window
    holds[slot] = played_at
    for i in range(x.shape[0]):
        chosen[slot, i] = x[i]
        rewards[slot, i] = reward[i]
        if x[i]:
            sums[i] += reward[i]
            counts[i] += 1.0


@gufunc(
    (
        float64[::1],
        float64[::1],
        float64[:, ::1],
        boolean[:, ::1],
        int64[::1],
        int64[:],
        int64,
        float64[:],
        float64[:],
    ),
    "(n),(n),(w,n),(w,n),(w),(o),()->(n),(n)",
)
def window_totals(sums, counts, rewards, chosen, holds, oldest, now, sums_now, counts_now):
    """Sums and counts of the rounds after now - w, without rewriting the window."""
    for i in range(sums.shape[0]):
        sums_now[i], counts_now[i] = sums[i], counts[i]
    first = now - holds.shape[0] + 1
    forget_before(sums_now, counts_now, rewards, chosen, holds, oldest[0], first)
