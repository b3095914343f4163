"""Memory that histories share."""

import numpy as np
import pytest

from spillover.service.tables import SharedRows


def test_tables_are_what_was_joined_and_stay_so() -> None:
    draw, rows = np.random.default_rng(0), SharedRows()
    tables, copies = [np.zeros((0, 3)), np.zeros((0, 2), np.int64)], []
    for _ in range(300):
        keep = len(tables[0]) if draw.random() < 0.8 else int(draw.integers(len(tables[0]) + 1))
        count = int(draw.integers(1, 5))
        new = [draw.random((count, 3)), draw.integers(9, size=(count, 2))]
        joined = [np.concatenate([old[:keep], part]) for old, part in zip(tables, new, strict=True)]
        tables = rows.joined(tables, keep, new)
        copies.append((tables, joined))
    for found, wanted in copies:
        for table, copy in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(table, copy)
            assert table.dtype == copy.dtype


def test_rows_are_added_in_place() -> None:
    rows = SharedRows()
    first = rows.joined([np.zeros((0, 1))], 0, [np.ones((10, 1))])
    longer = rows.joined(first, 10, [np.ones((1, 1))])
    assert np.shares_memory(first[0], longer[0])


@pytest.mark.parametrize("keep", [10, 7])
def test_two_that_go_on_from_the_same_rows_do_not_meet(keep: int) -> None:
    rows = SharedRows()
    first = rows.joined([np.zeros((0, 1))], 0, [np.ones((10, 1))])
    one = rows.joined(first, keep, [np.full((1, 1), 2.0)])[0]
    other = rows.joined(first, keep, [np.full((1, 1), 3.0)])[0]
    assert (one[-1, 0], other[-1, 0]) == (2.0, 3.0)
    assert (first[0] == 1.0).all()
