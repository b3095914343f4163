"""Random numbers and choices for functions of one learner, in Python and in compiled code.

Each is a function of the learner's stream, the round and the purpose, so a simulation gives the same numbers on any
number of threads. `later` gives a turn whose numbers are independent of those drawn before.
"""

from typing import Any

import numpy as np
from numba import uint64

from spillover.core.compiled import entry, inner
from spillover.core.driver import Turn
from spillover.kernels.drawing import philox, take_top, to_unit

ONE = np.uint64(1)


def number_at(key: Any, call: Any, at_round: Any, purpose: Any, i: Any) -> Any:
    words = philox(uint64(i // 4 * 4), uint64(call), uint64(at_round), uint64(purpose), key[0], key[1])
    return to_unit(words[i % 4])


draw_number = entry(number_at)
draw_top = entry(take_top.py_func)


@inner
def later(turn: Turn) -> Turn:
    """The turn with other random numbers, for a second use of them in the same decision.

    >>> import spillover as sp
    >>> rng = sp.Rng(0).at(sp.rng.Purpose.CHOICE, 1)
    >>> turn = Turn(*rng.address(), lines=np.empty((8, 3)), best=np.empty(16), room=None)
    >>> uniform(later(turn), 0) == uniform(turn, 0)
    False
    """
    return Turn(turn.key, uint64(turn.call) + ONE, turn.round, turn.purpose, turn.lines, turn.best, turn.room)


@inner
def uniform(turn: Turn, i: int) -> float:
    """The i-th number of a turn, uniform in [0, 1).

    >>> import spillover as sp
    >>> rng = sp.Rng(0).at(sp.rng.Purpose.CHOICE, 1)
    >>> turn = Turn(*rng.address(), lines=np.empty((8, 3)), best=np.empty(16), room=None)
    >>> bool(uniform(turn, 2) == rng.restarted().uniform(3)[2])  # as the four functions draw them
    True
    """
    return draw_number(turn.key, turn.call, turn.round, turn.purpose, i)  # type: ignore[no-any-return]


@inner
def choose_top(scores: Any, budget: int, turn: Turn, x: Any) -> None:
    """Choose the at most `budget` arms with the highest positive scores; ties are broken at random.

    >>> import spillover as sp
    >>> rng = sp.Rng(0).at(sp.rng.Purpose.CHOICE, 1)
    >>> turn = Turn(*rng.address(), lines=np.empty((8, 3)), best=np.empty(16), room=None)
    >>> x = np.zeros(3, np.bool_)
    >>> choose_top(np.array([0.3, 0.1, 0.5]), 2, turn, x)
    >>> x
    array([ True, False,  True])
    """
    draw_top(scores, budget, turn.key, turn.call, turn.round, turn.purpose, turn.best, x)
