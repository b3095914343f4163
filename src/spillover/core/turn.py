"""What functions of one learner are told, and random numbers and choices for them, in Python and in compiled code.

Each number is a function of the learner's stream, the round and the purpose, so a simulation gives the same numbers on
any number of threads. `later` gives a turn whose numbers are independent of those drawn before.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from spillover.core.compiled import entry, inner
from spillover.kernels.drawing import philox, take_top, to_unit


class Turn(NamedTuple):
    """The streams of random numbers of a learner in a round, and room to work in; see `uniform` and `choose_top`.

    >>> import spillover as sp
    >>> keys, call, round, purpose = sp.Rng(0).at(sp.rng.Purpose.CHOICE, 1).address()
    >>> turn = Turn(keys, call, round, purpose, lines=np.empty((8, 3)), best=np.empty(16), room=None)
    """

    key: Any  # (2,): of the learner
    call: Any  # how many times numbers were drawn before
    round: Any
    purpose: Any
    lines: Any  # (8, n): room to work in
    best: Any  # room for the highest scores
    room: Any  # what `prepare` made, for as long as the same learner has its turns


class Lesson(NamedTuple):
    """The outcome of a round that was played.

    >>> x, y = np.array([True, False]), np.array([0.5, 0.1])
    >>> Lesson(x, z=np.where(x, 0.5, 0.0), y=y, round=1, memo=np.zeros((0, 2)), arrival=np.zeros(0, int)).y
    array([0.5, 0.1])
    """

    x: Any  # (n,): the decision
    z: Any  # (n,): rewards of the chosen arms
    y: Any  # (n,): outcomes of all arms
    round: Any  # in which it was played
    memo: Any  # (m, n): what `remember` noted down when it was decided
    arrival: Any  # (n,): the round in which each arm reports, `NEVER` if not at all; (0,): all of them together
    # for policies that use context or accept doses; None for others
    context: Any = None  # (k,): of that round
    dose: Any = None  # (n,): amounts of the chosen arms; 1 for the others


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
