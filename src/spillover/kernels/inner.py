"""How functions are compiled that work on short rows inside of a kernel."""

from numba import njit

# For functions that work on short rows: without the counting of references, an atomic operation for each view of an
# array, so they must not allocate any; and dividing by 0 gives an infinity, without a check before each division.
bare = njit(_nrt=False, error_model="numpy")
# The same, compiled into its callers: a call passes seven numbers for each array.
within = njit(_nrt=False, error_model="numpy", forceinline=True)
