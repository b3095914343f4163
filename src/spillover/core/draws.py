"""Random numbers and choices for functions of one learner, in Python and in compiled code.

Each is a function of the learner's stream, the round and the purpose, so a simulation gives the same numbers on any
number of threads. `later` gives a turn whose numbers are independent of those drawn before.
"""

from typing import Any

import numpy as np
from numba import njit, uint64

from spillover.core.driver import Turn
from spillover.kernels.drawing import philox, take_top, to_unit

ONE = np.uint64(1)


@njit(inline="always")
def later(turn: Any) -> Any:
    """The turn with other random numbers, for a second use of them in the same decision."""
    return Turn(turn.key, uint64(turn.call) + ONE, turn.round, turn.purpose, turn.lines, turn.best, turn.room)


@njit(inline="always")
def uniform(turn: Any, i: int) -> float:
    """The i-th number of a turn, uniform in [0, 1)."""
    counter = uint64(i // 4 * 4), uint64(turn.call), uint64(turn.round), uint64(turn.purpose)
    words = philox(*counter, turn.key[0], turn.key[1])
    return to_unit(words[i % 4])


@njit(inline="always")
def choose_top(scores: Any, budget: int, turn: Any, x: Any) -> None:
    """Choose the at most `budget` arms with the highest positive scores; ties are broken at random."""
    call, at_round, purpose = uint64(turn.call), uint64(turn.round), uint64(turn.purpose)
    take_top(scores, budget, turn.key, call, at_round, purpose, turn.best, x)
