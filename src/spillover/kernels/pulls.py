"""Pulls in flight and the rewards that end them."""

from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc


@gufunc((float64[:], boolean[:], float64, int64, boolean, float64[:]), "(n),(n),(),(),()->(n)")
def end_pulls(in_flight, x, fade, age, arrived, left):
    """Remove the pulls of a round that has arrived from the pulls in flight; of each, fade^age was left."""
    remains = fade**age if arrived else 0.0
    for i in range(in_flight.shape[0]):
        left[i] = max(in_flight[i] - remains, 0.0) if x[i] else in_flight[i]


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
