"""Every compiled line of the package, in files by concern.

After an edit those kernels are compiled again that use what has changed (`kernels/cache.py`). Kernels are NumPy
generalised ufuncs: the layout string lists the core dimensions, any leading axes are the batch. Kernels trust their
input; callers check it.
"""

import numpy as np

from spillover.kernels import (  # noqa: F401  # so that every kernel is declared
    arrivals,
    averages,
    candidate_rows,
    candidate_search,
    candidates,
    confounding,
    detection,
    drawing,
    drifting,
    effects,
    evidence,
    factor,
    gram,
    graph,
    instrumental,
    instrumental_rows,
    instrumental_scores,
    instrumental_solve,
    instrumental_weights,
    inversion,
    kclass,
    laws,
    measuring,
    pulls,
    regression,
    rewards,
    sets,
    shocks,
    silences,
    switching,
    switching_many,
    switching_many_scores,
    switching_scores,
    world,
)
from spillover.kernels.announce import awaited, silence
from spillover.kernels.build import KERNELS, compile_all, compile_apart, compiled_ahead, load, missing, preload_numba
from spillover.kernels.rewards import BERNOULLI, BETA, DRAWN
from spillover.kernels.sets import SUM_ROUNDING
from spillover.kernels.world import (
    FINE,
    IMPOSSIBLE_AGE,
    LARGEST_OUTCOME,
    NARROWEST_RANGE,
    NOT_FINITE,
    NOT_PLAYED,
    OUT_OF_RANGE,
)

__all__ = [
    "BERNOULLI",
    "BETA",
    "DRAWN",
    "FINE",
    "IMPOSSIBLE_AGE",
    "LARGEST_OUTCOME",
    "NARROWEST_RANGE",
    "NOT_FINITE",
    "NOT_PLAYED",
    "OUT_OF_RANGE",
    "SUM_ROUNDING",
    "awaited",
    "compile_all",
    "compile_apart",
    "compiled_ahead",
    "missing",
    "preload_numba",
    "silence",
]


def __getattr__(name: str) -> np.ufunc:
    if name not in KERNELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernel = globals()[name] = load(name)
    return kernel
