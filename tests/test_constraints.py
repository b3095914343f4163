"""Constraints: what they accept, what they say, and how they come from files."""

import json
from typing import Any, cast

import numpy as np
import pytest

from spillover.constraints import (
    Costs,
    Exclusive,
    Group,
    Include,
    Requires,
    Together,
    Unavailable,
    compile_rows,
    parse,
    to_entries,
)
from spillover.constraints.search import best_set

ARMS = ("north", "south", "east", "west")
ALL = (
    Costs([3, 1, 2.5, 0], limit=4, label="staff"),
    Costs({"north": 2, 3: 1}, limit=2),
    Group(["north", "east"], at_most=1),
    Group([0, 1, 2], at_least=1, at_most=2),
    Exclusive(["south", "west"]),
    Together([0, 2]),
    Requires("west", needs=["north", "south"], enough="any"),
    Include([1]),
    Unavailable(np.array([3]).tolist()),
)


def test_files_bring_back_the_same():
    entries = json.loads(json.dumps(to_entries(ALL[:1] + ALL[2:])))
    assert parse(entries, ARMS) == ALL[:1] + ALL[2:]
    named = Costs({"north": 2, "west": 1}, limit=2)
    assert parse(json.loads(json.dumps(to_entries([named]))), ARMS) == (named,)


def test_what_is_shown_can_be_typed():
    for constraint in ALL:
        assert eval(repr(constraint)) == constraint


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "grup", "arms": [0]}, r"constraint 1: kind = 'grup': must be one of costs, .*; did you mean group\?"),
        ({"arms": [0]}, "constraint 1: no kind in"),
        ("costs", "constraint 1: 'costs': must be a table with a kind"),
        ({"kind": "group", "arms": [0], "atmost": 1}, r"unknown key atmost: must be one of .*; did you mean at_most\?"),
        ({"kind": "costs", "costs": [1, 2, 3, 4]}, "no limit in a constraint of kind costs: must be given"),
        ({"kind": "exclusive", "arms": ["north", "soth"]}, r"arms = 'soth': must be one of .*; did you mean south\?"),
        ({"kind": "exclusive", "arms": [0, 4]}, "arms = 4: must be a position from 0 to 3"),
        ({"kind": "exclusive", "arms": [0, 0]}, r"arms = \[0, 0\]: must be a list of arms"),
        ({"kind": "exclusive", "arms": "north"}, "arms = 'north': must be a list of arms"),
        ({"kind": "include", "arms": [True]}, "arms = True: must be arms by position"),
        ({"kind": "costs", "costs": [1, 2], "limit": 3}, "number of costs = 2: must be 4, one for each arm"),
        ({"kind": "costs", "costs": [1, 2, -1, 0], "limit": 3}, r"costs = \[.*-1.*\]: must be finite numbers >= 0"),
        ({"kind": "costs", "costs": [1, 2, 1, 0], "limit": "3"}, "limit = '3': must be a finite number >= 0"),
        ({"kind": "group", "arms": [0, 1], "at_least": 3}, "at_least = 3: must be at most 2"),
        ({"kind": "group", "arms": [0, 1]}, "at_most = None: must be a whole number"),
        ({"kind": "requires", "arm": 0, "needs": [0]}, r"needs = \(0,\): must be other arms than 0 itself"),
        ({"kind": "requires", "arm": 0, "needs": [1], "enough": "some"}, "enough = 'some': must be 'all' or 'any'"),
        ({"kind": "include", "arms": [0], "label": 3}, "label = 3: must be a text"),
    ],
)
def test_mistakes_name_the_entry_the_key_and_what_is_accepted(entry, message):
    with pytest.raises(ValueError, match=message):
        parse([entry], ARMS)


NO_LISTS: tuple[Any, ...] = (
    np.array(3),
    np.array("a"),
    None,
    3,
    "ab",
    {1, 2},
    [],
    np.zeros((2, 2)),
    [None],
    [[1]],
    iter([1]),
)


@pytest.mark.parametrize("kind", [Exclusive, Together, Include, Unavailable, Group, Requires])
@pytest.mark.parametrize("given", NO_LISTS, ids=lambda given: type(given).__name__)
def test_what_is_no_list_of_arms_is_refused_in_the_usual_form(kind, given):
    field = "needs" if kind is Requires else "arms"
    more = {"arm": 0} if kind is Requires else {"at_most": 1} if kind is Group else {}
    with pytest.raises(ValueError, match=rf"{field} = .*: must be (a list of arms|arms by position)"):
        kind(**more, **{field: given})


@pytest.mark.parametrize("wrong", [np.array([1, 2]), [1, 1], {}, b"x", np.int64(2)], ids=repr)
def test_other_fields_of_the_wrong_kind_are_refused_too(wrong):
    with pytest.raises(ValueError, match=r"label = .*: must be a text"):
        Exclusive([0, 1], label=wrong)
    with pytest.raises(ValueError, match=r"label = .*: must be a text"):
        Costs([1, 2], limit=3, label=wrong)
    with pytest.raises(ValueError, match=r"enough = .*: must be 'all' or 'any'"):
        Requires(0, needs=[1], enough=wrong)
    if np.ndim(wrong):
        with pytest.raises(ValueError, match=r"limit = .*: must be a finite number"):
            Costs([1, 2], limit=wrong)
        with pytest.raises(ValueError, match=r"costs = .*: must be finite numbers"):
            Costs({0: wrong}, limit=3)
    with pytest.raises(ValueError, match="at_least = None: must be a whole number"):
        Group([0, 1], at_most=1, at_least=cast(Any, None))


def test_numbers_of_numpy_can_be_saved():
    one: Any = np.int64(1)
    two: Any = np.int64(2)
    rules = (Group([one, two], at_most=two, at_least=one), Requires(one, needs=[two]), Costs({"east": two}, limit=two))
    assert parse(json.loads(json.dumps(to_entries(rules))), ARMS) == rules


def test_names_need_names():
    with pytest.raises(ValueError, match="arms = 'north': must be a position: the names of the arms are not known"):
        parse([{"kind": "include", "arms": ["north"]}], 4)


def test_arms_that_are_fixed_take_one_row_however_many_they_are():
    n = 5_000
    constraints = (Unavailable(list(range(0, n, 2))), Include(list(range(1, 41, 2))))
    rows = compile_rows(constraints, n, 50)
    assert rows.matrix.shape == (3, n)
    x = best_set(np.linspace(1.0, 2.0, n), 50, constraints)
    assert x[1:41:2].all()
    assert not x[::2].any()
    assert x.sum() == 50
    np.testing.assert_array_equal(np.flatnonzero(x)[20:], np.arange(n - 59, n, 2))
