"""Tables at the edge: hardly anything known, nothing that varies, extreme units. An answer, and the right headline."""

import numpy as np
import pytest

import spillover as sp
from tests.recommendation.tables import wide

FRAME = wide(7, rounds=40)
CHOSEN = [column for column in FRAME if column.startswith("chosen_")]
SALES = [column for column in FRAME if column.startswith("sales_")]


def changed(columns, change):
    frame = FRAME.copy()
    frame[columns] = change(frame[columns])
    return frame


CASES = {
    "all pending": (changed(SALES, lambda part: part * np.nan), False),
    "two rounds": (FRAME.head(2), False),
    "nothing chosen": (changed(CHOSEN, lambda part: 0 * part), False),
    "everything chosen": (changed(CHOSEN, lambda part: 0 * part + 1), False),
    "constant outcomes": (changed(SALES, lambda part: 0 * part + 1.0), False),
    "one arm never chosen": (changed(CHOSEN[:1], lambda part: 0 * part), True),
    "a third missing": (changed(SALES[:1], lambda part: part.mask(np.arange(40)[:, None] % 3 == 0)), True),
    "huge": (changed(SALES, lambda part: 1e30 * part), True),
    "tiny": (changed(SALES, lambda part: 1e-30 * part), True),
}


@pytest.mark.parametrize("options", [{}, {"minimise": True}, {"explore": True}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_there_is_an_answer(name, options) -> None:
    frame, clear = CASES[name]
    found = sp.next_decision(frame, budget=2, **options)
    assert len(found.choose) <= 2
    assert str(found)
    assert found.explain()
    assert len(found.to_frame()) == len(found.to_dict()["arms"]) == 4
    if not options:
        assert (found.not_yet == ()) == clear
        assert ("not yet clear" in str(found).splitlines()[0]) == (not clear)


def test_constant_outcomes_are_warned_about() -> None:
    found = sp.next_decision(CASES["constant outcomes"][0], budget=2)
    assert any("All outcomes are always the same" in warning for warning in found.warnings)
