"""Every compiled line of the package, in files by concern.

After an edit the kernels of that file are compiled again, and those of the files that import it. Numba's on-disk cache
checks only the file of the function that it compiles; `cache.own_folder` sees to the others. Kernels are NumPy
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
    decided,
    detection,
    discounted_rounds,
    discounts,
    drawing,
    drifting,
    effects,
    evidence,
    factor,
    gram,
    graph,
    inversion,
    kclass,
    laws,
    measuring,
    pulls,
    regression,
    rewards,
    rounds,
    sets,
    silences,
    switching,
    switching_block,
    switching_many,
    switching_many_scores,
    switching_rounds,
    switching_scores,
    switching_steps,
    world,
)
from spillover.kernels.ahead import compile_apart, compiled_ahead, missing
from spillover.kernels.announce import awaited, silence
from spillover.kernels.build import KERNELS, compile_all, load, preload_numba
from spillover.kernels.rewards import BERNOULLI, BETA, DRAWN
from spillover.kernels.rounds import NO_GRAPH, SIGNED, UNSIGNED
from spillover.kernels.sets import SUM_ROUNDING
from spillover.kernels.switching_steps import ALARM, DONE, ESTIMATE, FAULT, SETTINGS
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
    "ALARM",
    "BERNOULLI",
    "BETA",
    "DONE",
    "DRAWN",
    "ESTIMATE",
    "FAULT",
    "FINE",
    "IMPOSSIBLE_AGE",
    "LARGEST_OUTCOME",
    "NARROWEST_RANGE",
    "NOT_FINITE",
    "NOT_PLAYED",
    "NO_GRAPH",
    "OUT_OF_RANGE",
    "SETTINGS",
    "SIGNED",
    "SUM_ROUNDING",
    "UNSIGNED",
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
