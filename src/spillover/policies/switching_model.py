"""The assumptions of SwitchingSEM: how means change, how long outcomes take, and what better arms are worth."""

import numpy as np

from spillover.types import Array, BoolArray

HAZARD = 1e-3  # probability a round of a change that may affect many arms, before anything is observed
IDLE_HAZARD = 1e-4  # probability a round that an arm that is not played changes unobserved
SHARE_PRIOR = np.array([0.0, 0.5, 0.5])
HAZARDS = np.array([1.0, 1.0 / HAZARD])  # the hazard is learned, as if one change in so many rounds had been observed
OTHER_WORLD = 1e-3  # probability a round that means that drift begin to switch, or the other way round
HORIZON = 20.0  # rounds over which a better arm pays off, if outcomes arrive at once
HORIZON_OF_DELAY = 0.25  # and so much longer for each round of the typical delay
RECENT = 0.99  # decay of the longest delay with every shorter one
TYPICAL = 0.02  # weight of a new delay in the typical one
SOON = 20.0  # delays of up to so many rounds are always expected
PATIENCE = 2.0  # a pull is dropped after about so many times the longest delay so far


def fading(longest_delay: Array, any_arrived: BoolArray) -> Array:
    """The share of a pull in flight that remains after a round: late pulls fade, faster if delays have been short."""
    expected = np.maximum(longest_delay, SOON)
    return np.asarray(np.where(any_arrived, 1.0 - 1.0 / (PATIENCE * (expected + 1.0)), 1.0))
