"""Outcomes as SwitchingSEM takes them in: rewards in units of their range, delays, silence, and pulls in flight."""

from typing import Any

import numpy as np

from spillover import kernels
from spillover.policies.switching_model import (
    HAZARDS,
    HORIZON,
    HORIZON_OF_DELAY,
    IDLE_HAZARD,
    PATIENCE,
    RECENT,
    SHARE_PRIOR,
    SOON,
    TYPICAL,
)
from spillover.policies.switching_state import SHARES, SwitchingState
from spillover.types import Array, BoolArray, Feedback, IntArray


def is_whole(feedback: Feedback) -> bool:
    """Whether no outcome that has arrived is missing, as far as they are numbers: what is not is refused by name."""
    try:
        with np.errstate(all="ignore"):
            if np.isfinite(np.sum(feedback.y) + np.sum(feedback.z)):  # most are: this is faster
                return True
        missing = np.isnan(feedback.y) | np.isnan(feedback.z)
    except (TypeError, ValueError):
        return True
    return not missing.any() or not missing[np.asarray(feedback.arrived, np.bool_)].any()


def with_delay(state: SwitchingState, age: IntArray, arrived: BoolArray) -> SwitchingState:
    """Take in how late an outcome arrived; arms that never report have no delay."""
    ordinary = np.minimum(age, 2.0 * state.typical_delay + SOON)  # so that no straggler counts for much
    return state._replace(
        longest_delay=np.where(arrived, np.maximum(RECENT * state.longest_delay, age), state.longest_delay),
        typical_delay=state.typical_delay + np.where(arrived, TYPICAL * (ordinary - state.typical_delay), 0.0),
    )


def no_reward(reward_range: Array) -> Array:
    """The reward of an arm without one, (*batch, 1): 0, or the end of the range that is next to it."""
    return np.asarray(np.clip(0.0, reward_range[..., :1], reward_range[..., 1:]), float)


def weigh_silence(state: SwitchingState, feedback: Feedback, known: BoolArray, complete: BoolArray) -> Array:
    """Learn in place which arms of a complete round reported; the probability that silence means no reward."""
    answers = (feedback.x, known, feedback.z, state.reward_range, complete)
    return np.asarray(kernels.weigh_silence(*state.silence, *answers)[..., 0])


def rewards(reward_range: Array, x: BoolArray, z: Array) -> Array:
    """Rewards of the chosen arms, in units of the range."""
    low, high = reward_range[..., :1], reward_range[..., 1:]
    found = np.where(x, np.clip((z - low) / (high - low), 0.0, 1.0), 0.0)
    return np.ascontiguousarray(found)  # as kernels read it, also from tables that are stored by columns


def rescaled(reward_range: Array, x: BoolArray, share: Array, into: Array | None = None) -> Array:
    """Rewards of the chosen arms from their position in the range; into: an array of 0 for the others, also `share`."""
    low, high = reward_range[..., :1], reward_range[..., 1:]
    found = np.zeros(x.shape) if into is None else into
    np.multiply(high - low, share, out=found, where=x)
    return np.add(low, found, out=found, where=x)


def any_arrived(state: SwitchingState) -> BoolArray:
    """Whether anything has arrived yet."""
    return np.asarray(state.belief.latest[..., 0] > 0)


def fades(state: SwitchingState) -> tuple[Array, BoolArray, float, float]:
    """What kernels need to know of how fast pulls in flight fade; see `fading`."""
    return state.longest_delay, any_arrived(state), SOON, PATIENCE


def fading(longest_delay: Array, any_arrived: BoolArray) -> Array:
    """The share of a pull in flight that remains after a round: late pulls fade, faster if delays have been short."""
    expected = np.maximum(longest_delay, SOON)
    return np.asarray(np.where(any_arrived, 1.0 - 1.0 / (PATIENCE * (expected + 1.0)), 1.0))


def decision_arguments(state: SwitchingState) -> tuple[Any, ...]:
    """What every kernel of an index takes beside the means: weights, pulls in flight, ranges, the prior of changes."""
    return (
        state.graph.weights,
        state.prior,
        state.rewards_seen,
        state.last_pull,
        state.in_flight,
        state.rounds,
        state.budget,
        state.reward_range,
        HAZARDS,
        SHARES,
        SHARE_PRIOR,
        IDLE_HAZARD,
        HORIZON + HORIZON_OF_DELAY * state.typical_delay,
    )
