"""Ranges and baselines from the data: in the units of the table, whatever was declared beyond it."""

import numpy as np
import pytest

from spillover.history import read_history
from spillover.history.example import example_file
from spillover.history.record import reward_range_of, shows_baseline
from tests.history.tables import LONG, PAYOFF, changed

OWN = [cell if chosen else None for cell, chosen in zip(LONG["orders"], LONG["treated"], strict=True)]
TABLES = [LONG, PAYOFF, LONG | {"own": OWN}]


@pytest.mark.parametrize("table", TABLES)
def test_a_range_that_is_declared_wider_than_the_data_does_not_matter(table) -> None:
    history = read_history(table)
    expected = reward_range_of(history, None)
    for factor in (1.0, 2.0, 10.0, 100.0):
        declared = (-100.0 * factor, 100.0 * factor)
        assert reward_range_of(history, declared) == expected
    low, high = expected
    assert reward_range_of(history, (low / 2, high / 2)) == (low / 2, high / 2)
    assert reward_range_of(history, (high + 1, high + 2)) == (high + 1, high + 2)


def test_data_and_a_declared_range_that_hardly_overlap() -> None:
    """What both allow is too narrow for a range, and so is what a table without any size shows."""
    history = read_history(LONG | {"own": OWN})
    assert reward_range_of(history, (-6e16, 2e-309)) == (-6e16, 2e-309)
    tiny = [None if value is None else 1e-200 for value in OWN]
    assert reward_range_of(read_history(LONG | {"own": tiny}), None) == (0.0, 1.0)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("factor", [1e-6, 0.37, 1e6])
def test_ranges_scale_with_the_outcomes(table, factor) -> None:
    def units(name, values):
        outcome = name in ("orders", "revenue", "own")
        return [None if value is None else factor * value for value in values] if outcome else values

    scaled = {name: units(name, values) for name, values in table.items()}
    once, again = (reward_range_of(read_history(one), None) for one in (table, scaled))
    np.testing.assert_allclose(again, factor * np.array(once), rtol=1e-12)


def test_minimised_outcomes_turn_the_range_around() -> None:
    found = read_history(LONG | {"own": OWN}, minimise=True)
    low, high = reward_range_of(found, None)
    assert high == 0.0
    assert low == pytest.approx(-1.1 * 6.5)
    assert reward_range_of(found, (0.0, 3.0)) == (-3.0, 0.0)


def test_one_outlier_and_rare_events() -> None:
    orders = [*LONG["orders"][:-1], 1e9]
    assert reward_range_of(read_history(changed(LONG, orders=orders)), None)[1] <= 1e9
    rare = [1.0 if k == 5 else 0.0 for k in range(16)]
    low, high = reward_range_of(read_history(changed(LONG, orders=rare)), None)
    assert (low, high) == (-high, high)
    assert 0.5 < high < 2
    none = reward_range_of(read_history(changed(LONG, orders=[0.0] * 16)), None)
    assert none == (-1.0, 1.0)


def example(tmp_path, more=0.0):
    lines = example_file().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    texts = [",".join([*row[:4], str(float(row[4]) + more) if row[4] else ""]) for row in rows]
    path = tmp_path / "h.csv"
    path.write_text("\n".join([lines[0], *texts]))
    return read_history(path)


def test_a_baseline_is_noticed_in_the_plain_form(tmp_path) -> None:
    assert not example(tmp_path).has_baseline
    assert example(tmp_path, 0.3).has_baseline
    assert example(tmp_path, 0.01).has_baseline


def test_outcomes_where_nothing_was_chosen_are_a_baseline() -> None:
    x, arrived = np.zeros((2, 1), bool), np.ones(2, bool)
    zeros = np.zeros((2, 1))
    assert not shows_baseline(x, zeros, zeros, arrived)
    assert shows_baseline(x, zeros, zeros + 1, arrived)
    assert not shows_baseline(x, zeros, zeros + 1, ~arrived)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_baseline_and_a_baseline_is_not_lost_in_noise(seed) -> None:
    draw = np.random.default_rng(seed)
    x = draw.random((200, 4)) < 0.5
    x[~x.any(axis=1), 0] = True  # y that is not exactly 0 where nothing is chosen counts as a baseline
    z = np.where(x, draw.random((200, 4)), 0.0)
    y = z @ draw.uniform(0, 1, (4, 4)) + 0.1 * draw.normal(size=(200, 4))
    arrived = np.ones(200, bool)
    assert not shows_baseline(x, z, y, arrived)
    assert shows_baseline(x, z, y + 0.3, arrived)


def test_rewards_of_0_are_no_baseline() -> None:
    x = np.array([[True, False], [True, True]] * 20)
    z = np.where(x, [0.0, 0.5], 0.0)
    assert not shows_baseline(x, z, z, np.ones(40, bool))
    assert shows_baseline(x, z, z + 0.1, np.ones(40, bool))


def test_rewards_of_constant_sum_cannot_tell() -> None:
    x = np.array([[True, False], [False, True]] * 20)
    z = 0.5 * x
    assert not shows_baseline(x, z, z + 0.0, np.ones(40, bool))
