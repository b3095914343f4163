"""Every compiled line of the package, in files by concern.

After an edit those kernels are compiled again that use what has changed (`kernels/cache.py`). Kernels are NumPy
generalised ufuncs: the layout string lists the core dimensions, any leading axes are the batch. Kernels trust their
input; callers check it.
"""

import numpy as np

from spillover.kernels import (  # noqa: F401  # so that every kernel is declared
    averages,
    candidates,
    confounding,
    drawing,
    effects,
    evidence,
    laws,
    outcomes,
    sets,
    switching_scores,
)
from spillover.kernels.compiling import (
    KERNELS,
    awaited,
    compile_all,
    load,
    preload_numba,
    silence,
)
from spillover.kernels.outcomes import (
    BERNOULLI,
    BETA,
    DRAWN,
    FINE,
    IMPOSSIBLE_AGE,
    LARGEST_OUTCOME,
    NARROWEST_RANGE,
    NOT_FINITE,
    NOT_PLAYED,
    OUT_OF_RANGE,
)
from spillover.kernels.sets import SUM_ROUNDING

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
    "preload_numba",
    "silence",
]


def __getattr__(name: str) -> np.ufunc:
    if name not in KERNELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernel = globals()[name] = load(name)
    return kernel
