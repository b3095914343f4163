"""What `spillover next` answers on public tables, against what the raw data and a careful analyst say."""

import json

import pytest

from tests.cli.calls import call
from tests.real.scripts import analysed


def answer(*words):
    """The answer of `spillover next`, as a dictionary."""
    result = call("next", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def arms_of(found):
    return {arm["arm"]: arm for arm in found["arms"]}


def effects_of(found):
    """Effects of promoting one arm on the outcome of another, with intervals, by (promoted, bought)."""
    return {(one["from"], one["to"]): one for one in found["reasons"]["graph"]["effects"]}


def codes_of(found):
    return {finding["code"] for finding in found["findings"]}


def covers(interval, value) -> bool:
    return interval[0] <= value <= interval[1]


def test_heinz_cannibalises_itself(tmp_path, monkeypatch) -> None:
    """The raw data say -0.29: promoting the 28-ounce bottle takes buyers from the 32-ounce one."""
    analyst = analysed("catsup", tmp_path, monkeypatch)
    found = answer("heinz.csv", "--context", "hunts32_is_promoted", "--budget", 1)
    taken = effects_of(found)["heinz28", "heinz32"]
    assert taken["effect"] < 0
    assert taken["interval"][1] < 0
    assert covers(taken["interval"], -0.290)
    for arm, row in arms_of(
        found
    ).items():  # the analyst compares purchases of the same household, the answer all of them
        low, high = row["total_interval"]
        assert low <= analyst.for_heinz[arm].high
        assert analyst.for_heinz[arm].low <= high
    assert arms_of(found)["heinz28"]["total"] < 0.5 * effects_of(found)["heinz28", "heinz28"]["effect"]


@pytest.mark.parametrize(("table", "file"), [("catsup", "catsup.csv"), ("yogurt", "yogurt.csv")])
def test_shares_cannot_be_raised_together(table, file, tmp_path, monkeypatch) -> None:
    analyst = analysed(table, tmp_path, monkeypatch)
    found = answer(file, "--budget", 1)
    assert found["not_yet"]
    assert "constant-sum" in codes_of(found)
    effects = effects_of(found)
    for brand in analyst.BRANDS:
        assert effects[brand, brand]["effect"] > 0
        total = sum(effects[brand, other]["effect"] for other in analyst.BRANDS)
        assert total == pytest.approx(0, abs=0.05)


def test_no_effect_has_the_sign_that_the_raw_data_exclude(tmp_path, monkeypatch) -> None:
    """Every interval of the answer overlaps that of a regression on all promotions."""
    analyst = analysed("catsup", tmp_path, monkeypatch)
    effects = effects_of(answer("catsup.csv", "--budget", 1))
    for pair, estimate in analyst.pooled.items():
        low, high = effects[pair]["interval"]
        assert low <= estimate.high, pair
        assert high >= estimate.low, pair


def test_a_law_that_came_once_is_not_told_from_a_trend(tmp_path, monkeypatch) -> None:
    analyst = analysed("seatbelts", tmp_path, monkeypatch)
    options = ("--columns", "outcome=drivers", "--minimise", "--budget", 1)
    plain = answer("seatbelts.csv", *options)
    assert {"switched-once", "season-in-residuals"} <= codes_of(plain)
    found = answer("seatbelts.csv", *options, "--context", "month,trend,kms,PetrolPrice")
    law = arms_of(found)["law"]
    assert "switched-once" in codes_of(found)
    assert "season-in-residuals" not in codes_of(found)
    assert law["total"] < 0
    assert covers(law["total_interval"], analyst.estimated["drivers"].value)
    assert law["least_squares_total"] == pytest.approx(analyst.estimated["drivers"].value, abs=0.1)


def test_the_season_must_be_given_with_advertising(tmp_path, monkeypatch) -> None:
    analyst = analysed("robyn", tmp_path, monkeypatch)
    plain = answer("robyn.csv", "--doses", "--budget", 2)
    assert {"choices-follow-season", "season-in-residuals"} <= codes_of(plain)
    found = answer("robyn.csv", "--doses", "--budget", 2, "--context", "month,trend")
    assert "season-in-residuals" not in codes_of(found)
    arms = arms_of(found)
    for channel in analyst.CHANNELS:
        assert covers(arms[channel.removesuffix("_S")]["total_interval"], analyst.seasonal[channel].value)
    assert arms["tv"]["total"] > 0
    assert any("saturation is not modelled" in note for note in found["notes"])
