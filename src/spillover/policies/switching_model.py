"""What SwitchingSEM takes for granted: how means change, how long outcomes take, and what better arms are worth."""

import numpy as np

from spillover import kernels
from spillover.graph.change_detection import QUIET
from spillover.graph.doubts import NOISY
from spillover.graph.instrument import ENOUGH_INFORMATION, UNKNOWN
from spillover.graph.k_class import ALARM, MORE_ROUNDS, ROUNDS_FOR_ARMS, SUSPICION
from spillover.graph.payoff import LEAST_WEIGHT, PRIOR_VARIANCE
from spillover.graph.regression import FLOOR, RIDGE
from spillover.policies.dates import for_kernels
from spillover.policies.switching_state import DRIFT_PRIOR, DRIFT_SCALE, DRIFT_VARIANCE, HYPOTHESES, SHARES
from spillover.types import Array

HAZARD = 1e-3  # probability a round of a change that may affect many arms, before anything is observed
IDLE_HAZARD = 1e-4  # probability a round that an arm that is not played changes unobserved
SHARE_PRIOR = np.array([0.0, 0.5, 0.5])
HAZARDS = np.array([1.0, 1.0 / HAZARD])  # the hazard is learned, as if one change in so many rounds had been observed
CHANGE_PRIOR = (SHARES, SHARE_PRIOR, HAZARDS, IDLE_HAZARD)
OTHER_WORLD = 1e-3  # probability a round that means that drift begin to switch, or the other way round
DRIFT = (DRIFT_SCALE, DRIFT_VARIANCE)
HORIZON = 20.0  # rounds over which a better arm pays off, if outcomes arrive at once
HORIZON_OF_DELAY = 0.25  # and so much longer for each round of the typical delay
RECENT = 0.99  # decay of the longest delay with every shorter one
TYPICAL = 0.02  # weight of a new delay in the typical one
SOON = 20.0  # delays of up to so many rounds are always expected
PATIENCE = 2.0  # a pull is dropped after about so many times the longest delay so far


def settings_for_kernels(signed: bool, assumed_delay: int | None) -> Array:
    """All of it in one array, for the kernels in `kernels/switching_rounds.py`."""
    settings = {
        "hypotheses": HYPOTHESES,
        "idle_hazard": IDLE_HAZARD,
        "other_world": OTHER_WORLD,
        "drift_scale": DRIFT_SCALE,
        "drift_variance": DRIFT_VARIANCE,
        "drift_prior": DRIFT_PRIOR,
        "horizon": HORIZON,
        "horizon_of_delay": HORIZON_OF_DELAY,
        "recent": RECENT,
        "typical": TYPICAL,
        "soon": SOON,
        "patience": PATIENCE,
        "signed": signed,
        "quiet": QUIET,
        "floor": FLOOR,
        "ridge": RIDGE,
        "enough_information": ENOUGH_INFORMATION,
        "unknown": UNKNOWN,
        "least_weight": LEAST_WEIGHT,
        "prior_variance": PRIOR_VARIANCE,
        "more_rounds": MORE_ROUNDS,
        "rounds_for_arms": ROUNDS_FOR_ARMS,
        "alarm": ALARM,
        "suspicion": SUSPICION,
        "noisy": NOISY,
        "assumed_delay": for_kernels(assumed_delay),
    }
    return np.concatenate([[float(settings[name]) for name in kernels.SETTINGS], HAZARDS, SHARES, SHARE_PRIOR])
