"""Functions that are computed many at a time, against exact decimal arithmetic, number by number and in a loop."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_array_equal

from spillover.kernels.arithmetic import cos_of_turns, exp_of, log_of

DRAWS = np.random.default_rng(5)
POSITIVE = np.concatenate(
    [
        DRAWS.uniform(size=100),
        1.0 - DRAWS.uniform(size=100) * 2.0**-40,
        10.0 ** DRAWS.uniform(-300, 300, 100),
        [1.0, 2.0, 0.5, math.sqrt(0.5), 2.0**-1022, np.finfo(float).max],
    ]
)
REAL = np.concatenate([DRAWS.uniform(-700, 700, 150), 1e-3 * DRAWS.normal(size=100), [0.0, -700.0, 700.0]])
TURNS = np.concatenate([DRAWS.uniform(size=200), np.arange(9) / 8.0, [1.0 - 2.0**-53]])


def over(function):
    """The function for arrays."""

    @njit
    def compiled(given, found):
        for i in range(given.shape[0]):
            found[i] = function(given[i])

    def applied(given):
        found = np.empty_like(given)
        compiled(given, found)
        return found

    return applied


def units_off(found, given, exact):
    """The largest error, in units of the last place of the result."""
    with localcontext() as context:
        context.prec = 40
        wanted = [exact(Decimal(float(x))) for x in given]
        return max(
            abs(Decimal(float(y)) - w) / Decimal(float(np.spacing(abs(float(w)))))
            for y, w in zip(found, wanted, strict=True)
        )


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "given", "exact", "most"),
    [(log_of, POSITIVE, Decimal.ln, 2), (exp_of, REAL, Decimal.exp, 2)],
    ids=["log", "exp"],
)
def test_errors_are_below_two_units_in_the_last_place(function, given, exact, most):
    found = over(function)(given)
    assert units_off(found, given, exact) < most
    alone = np.array([over(function)(given[k : k + 1])[0] for k in range(0, len(given), 7)])
    assert_array_equal(found[::7], alone)  # the same bits however many are computed at once


def test_exponents_out_of_range_count_as_its_ends():
    found = over(exp_of)(np.array([-1e9, -math.inf, 1e9, math.inf]))
    assert_array_equal(found, over(exp_of)(np.array([-700.0, -700.0, 700.0, 700.0])))


def test_the_cosine_of_turns():
    found = over(cos_of_turns)(TURNS)
    np.testing.assert_allclose(found, np.cos(2.0 * np.pi * TURNS), atol=1.5e-15, rtol=0.0)
    assert_array_equal(np.abs(found) <= 1.0, True)
