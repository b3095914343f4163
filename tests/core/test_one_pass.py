"""Functions that are optimised once, with those that Python calls."""

import pytest
from numba import njit
from numba.core.codegen import CPUCodeLibrary

from spillover.core import compiled


@pytest.mark.parametrize("known", [True, False])
def test_they_give_the_same_and_numba_is_left_as_it_was(known, monkeypatch):
    monkeypatch.setattr(compiled, "KNOWN", known and compiled.KNOWN)
    before = CPUCodeLibrary.finalize
    double = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(lambda x: 2.0 * x)
    twice = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(lambda x: double(double(x)))
    above = njit(lambda x: twice(x) + 1.0)
    with compiled.one_pass():
        during = CPUCodeLibrary.finalize
        with compiled.one_pass():  # a function that Python calls is part of another one
            pass
        assert CPUCodeLibrary.finalize is during
        assert above(3.0) == 13.0
    assert CPUCodeLibrary.finalize is before
