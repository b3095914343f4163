"""What the pages of examples/real say of the raw data."""

import numpy as np
import pytest

from tests.real.scripts import analysed, module


def test_promoting_one_heinz_bottle_takes_buyers_from_another(tmp_path, monkeypatch) -> None:
    found = analysed("catsup", tmp_path, monkeypatch)
    difference = module("estimates").difference_of_means
    promoted = found.promotions["heinz28"]
    assert difference(found.sold["heinz32"], promoted) == pytest.approx(-0.290, abs=5e-4)
    assert difference(found.sold["heinz28"], promoted) == pytest.approx(+0.393, abs=5e-4)
    together = difference(found.sold[found.HEINZ].sum(axis=1), promoted)
    assert together == pytest.approx(0.057, abs=5e-4)
    assert found.for_heinz["heinz28"].low > 0
    assert found.for_heinz["heinz28"].high < 0.1


def test_one_catsup_is_bought_at_every_purchase(tmp_path, monkeypatch) -> None:
    """So the effects of a promotion on all brands together are 0, whatever it is."""
    found = analysed("catsup", tmp_path, monkeypatch)
    assert (found.sold.sum(axis=1) == 1).all()
    assert found.promotions.sum(axis=1).max() == 2


def test_yogurts_are_featured_one_at_a_time_and_sell_by_it(tmp_path, monkeypatch) -> None:
    found = analysed("yogurt", tmp_path, monkeypatch)
    assert found.promotions.sum(axis=1).max() == 1
    assert all(found.estimated[brand, brand].low > 0 for brand in found.BRANDS)
    others = [found.estimated[pair] for pair in found.estimated if pair[0] != pair[1]]
    assert all(estimate.value < 0 for estimate in others)
    assert sum(estimate.high < 0 for estimate in others) == 2


def test_the_seat_belt_law_came_once_and_stayed(tmp_path, monkeypatch) -> None:
    found = analysed("seatbelts", tmp_path, monkeypatch)
    law = found.table["law"].to_numpy()
    assert (np.diff(law) >= 0).all()
    assert law.sum() == 23
    assert found.estimated["drivers"].high < -150
    assert found.estimated["front"].high < -100
    assert found.estimated["rear"].low > 0
    quiet = found.placebos("drivers")
    assert min(quiet) < -200, "steps almost as large as the law's are found in months in which nothing happened"


def test_the_season_explains_most_of_what_advertising_seems_to_do(tmp_path, monkeypatch) -> None:
    found = analysed("robyn", tmp_path, monkeypatch)
    assert found.plain["facebook_S"].low > 0
    assert found.seasonal["facebook_S"].low < 0 < found.seasonal["facebook_S"].value
    assert found.plain["search_S"].value > 4 * found.seasonal["search_S"].value
    assert {channel for channel in found.CHANNELS if found.seasonal[channel].low > 0} == {"tv_S", "print_S"}
