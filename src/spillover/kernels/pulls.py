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


@gufunc(
    (
        *(int64[::1], float64[::1], boolean[:], int64, float64, boolean, float64, float64),
        *(int64[::1], float64[::1]),
    ),
    "(n),(n),(n),(),(),(),(),()->(n),(n)",
)
def start_pulls(last_pull, in_flight, x, now, longest_delay, any_arrived, soon, patience, pulled, flying):
    """The last pull of each arm and its pulls in flight, after round `now` was played."""
    fade = fading(longest_delay, any_arrived, soon, patience)
    for i in range(x.shape[0]):
        pulled[i] = last_pull[i]
        flying[i] = in_flight[i] * fade
    for i in range(x.shape[0]):
        if x[i]:
            pulled[i] = now
            flying[i] += 1.0


@gufunc(
    (
        *(float64[::1], float64[::1], boolean[:], float64[:], float64[:], int64, float64, boolean, float64, float64),
        *(boolean, float64[::1]),
    ),
    "(n),(n),(n),(n),(t),(),(),(),(),(),()->(n)",
    writes=("in_flight", "rewards_seen"),
)
def take_rewards(
    in_flight, rewards_seen, x, z, reward_range, age, longest_delay, any_arrived, soon, patience, arrived, reward
):  # fmt: skip
    """Rewards of the chosen arms in units of the range; they end pulls in flight, and are added to their sum so far."""
    low, width = reward_range[0], reward_range[1] - reward_range[0]
    remains = fading(longest_delay, any_arrived, soon, patience) ** age if arrived else 0.0
    for i in range(x.shape[0]):  # of most arms there is none: a loop without branches
        reward[i] = 0.0
    for i in range(x.shape[0]):
        if x[i]:
            reward[i] = min(max((z[i] - low) / width, 0.0), 1.0)
            in_flight[i] = max(in_flight[i] - remains, 0.0)
            rewards_seen[i] += reward[i] if arrived else 0.0
