"""Small, fixed versions of the benchmark of shops: the answer is not worse than a plain regression, and says so."""

import numpy as np
import pytest
from scipy.special import stdtrit

from benchmarks.shop_kinds import KINDS, Shop, promotions
from benchmarks.shops import amounts_of, chosen_by, least_squares
from spillover.regression import Effects, estimate_effects

SHOPS = 10


def shops(kind: str) -> list[Shop]:
    return [KINDS[kind](np.random.default_rng([2026, which])) for which in range(SHOPS)]


def estimated(shop: Shop) -> Effects:
    return estimate_effects(amounts_of(shop), shop.y, np.zeros((len(shop.y), 0)), np.zeros(0))


@pytest.mark.parametrize(
    ("kind", "better"),
    [
        ("promotions, 104 weeks", 0.02),
        ("promotions, much noise", 0.0),
        ("one outcome, 52 weeks", -0.03),
        ("one of eight", -0.02),
        ("fat tails", 0.05),
        ("autocorrelated noise", 0.0),
        ("a season", 0.05),
        ("a growing shop", 0.03),
        ("orders 0-4 days later", 0.03),
        ("dips after promotions", 0.03),
        ("spend", -0.02),
        ("choices follow demand", 0.05),
    ],
)
def test_it_is_as_good_as_least_squares_or_better(kind, better) -> None:
    found = [(shop.share(chosen_by(estimated(shop).total, shop)), shop) for shop in shops(kind)]
    plain = [shop.share(chosen_by(least_squares(shop), shop)) for shop in shops(kind)]
    assert np.mean([share for share, _ in found]) > np.mean(plain) + better


@pytest.mark.parametrize(
    "kind",
    [
        "promotions, 52 weeks",
        "one outcome, 52 weeks",
        "one outcome, 104 weeks",
        "a growing shop",
        "a season",
        "dips after promotions",
        "effects switched",
    ],
)
def test_intervals_contain_the_truth(kind) -> None:
    inside = []
    for shop in shops(kind):
        found = estimated(shop)
        width = stdtrit(found.freedom, 0.975) * np.sqrt(np.diag(found.covariance))
        inside += (np.abs(found.total - shop.truth) < width).tolist()
    assert np.mean(inside) >= 0.88  # of 60 to 80 intervals


def test_a_shop_that_is_followed_switches_as_it_should() -> None:
    shop = promotions(np.random.default_rng(0), rounds=20, switch=20)
    before = shop.truth.copy()
    assert shop.following is not None
    shop.following(np.zeros(8, bool))
    assert (shop.truth != before).all()
