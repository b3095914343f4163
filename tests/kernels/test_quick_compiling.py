"""What makes Numba compile faster changes nothing but the time."""

import copy
import gc

import pytest
from numba import njit
from numba.core import ir

from spillover.kernels.quick_compiling import quick_compiling


@njit(inline="always")
def added(values, start):
    total = start
    for k in range(len(values)):
        if values[k] > 0.0:
            total = total + values[k]
    return total


def twice(values):
    total = added(values, 1.0)
    return added(values, total) - added(values, 0.0)


def typed_code(function, *arguments):
    """What Numba made of a function: the types of all variables, with their names as it numbered them."""
    compiled = njit(function)
    value = compiled(*arguments)
    return value, len(compiled.overloads[compiled.signatures[0]].type_annotation.typemap)


def test_inlined_functions_are_the_same():
    values = (1.0, -2.0, 3.5)
    usual = typed_code(twice, values)
    with quick_compiling():
        quick = typed_code(twice, values)
    assert quick == usual
    assert quick[0] == 1.0 + 4.5 + 4.5 - 4.5


def test_a_copied_table_of_variables_is_added_to_on_its_own():
    where = ir.Loc("here", 1)
    table = ir.Scope(None, where)
    own = table.define("a", where)
    table.redefine("a", where)
    with quick_compiling():
        twin = copy.deepcopy(table)
    assert twin == table
    assert twin.get_exact("a") is own
    assert twin.redefine("a", where).name == "a.2"
    assert table.get_versions_of("a") == {"a.1"}
    assert table.redefine("a", where).name == "a.2"


@pytest.mark.parametrize("collects", [True, False])
def test_everything_is_as_before_afterwards(collects):
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with quick_compiling():
            assert not gc.isenabled()
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
    assert "__deepcopy__" not in vars(ir.Scope)
