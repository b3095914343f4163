"""Context: columns, texts, the season; per arm; of the round to decide; missing cells."""

import numpy as np
import pytest

from spillover.history import read_history
from spillover.history.standard import standard_context
from tests.history.tables import LONG, PAYOFF, WIDE, changed, refused, without


def test_numbers_and_texts_become_columns() -> None:
    table = PAYOFF | {"price": ["1.5", "2", "1", "2", "1", "2", "1", "3"], "holiday": ["no"] * 7 + ["yes"]}
    weather = ["sun", "sun", "rain", "", "sun", "rain", "sun", "snow"]
    found = read_history(table | {"weather": weather}, context="price,holiday,weather")
    assert found.context_names == ("price", "holiday", "weather=rain", "weather=none", "weather=snow")
    assert found.context[:, 0].tolist() == [1.5, 2, 1, 2, 1, 2, 1, 3]
    assert found.context[:, 1].tolist() == [0] * 7 + [1]
    assert found.context[:, 2].tolist() == [text == "rain" for text in weather]
    assert found.columns_option.endswith("context=price;holiday;weather'")
    (note,) = found.notes
    assert note.startswith("price, holiday, weather: not known for the coming round, so the average of past rounds")
    given = read_history(
        table | {"weather": weather},
        columns="context=price;holiday;weather",
        next_context={"price": 2.5, "holiday": 1, "weather": "snow"},
    )
    assert given.next_context.tolist() == [2.5, 1, 0, 0, 1]
    assert given.notes == ()


@pytest.mark.parametrize(
    ("name", "columns", "following"),
    [
        ("weekday", [f"weekday={day}" for day in ("Tue", "Wed", "Thu", "Fri", "Sat", "Sun")], [0, 0, 0, 1, 0, 0]),
        ("trend", ["trend"], [8]),
        ("month", [], []),
    ],
)
def test_the_date_gives_context(name, columns, following) -> None:
    found = read_history(PAYOFF, context=name)
    assert found.context_names == tuple(columns)
    assert found.next_context.tolist() == following
    assert found.notes == ()


def test_the_season_is_a_point_on_a_circle() -> None:
    table = changed(PAYOFF, date=[f"2026-{k:02d}" for k in range(1, 9)])
    found = read_history(table, context="season,month")
    sine, cosine = found.context[:, 0], found.context[:, 1]
    np.testing.assert_allclose(sine**2 + cosine**2, 1)
    assert (sine[0], cosine[0]) == (0.0, 1.0)
    assert found.following == "2026-09"
    assert found.context_names[2:] == tuple(f"month={k}" for k in range(2, 10))
    assert found.next_context[-1] == 1
    refused(changed(PAYOFF, date=list(range(8))), "must be computed from dates", context="season")


def test_context_of_each_arm() -> None:
    prices = {"price_north": [1.0, 2, 1, 2, 1, 2, 1, 2], "price_south": [3.0, 4, 5, 3, 4, 5, 3, 4]}
    found = read_history(WIDE | prices, context="price_*")
    assert found.context_names == ("price_north", "price_south")
    long = LONG | {"price": [cell for pair in zip(*prices.values(), strict=True) for cell in pair]}
    tall = read_history(long, context="price")
    assert tall.context_names == ("price.north", "price.south")
    assert (tall.context == found.context).all()
    same = read_history(LONG | {"price": [cell for cell in prices["price_north"] for _ in "ns"]}, context="price")
    assert same.context_names == ("price",)


def test_missing_context_is_refused_with_its_count() -> None:
    table = PAYOFF | {"price": [None, 2.0, 1, 2, None, 2, 1, 3]}
    refused(table, "context is missing for price in 2 of 8 rounds: fill it in", context="price")


def test_what_is_no_context_is_refused() -> None:
    refused(WIDE, "no column 'tempp' for context", "did you mean temp?", context="tempp")
    refused(WIDE, "no column 'sales_north' for context", context="sales_north")
    refused(
        WIDE, "next_context: 'rain': must be one of the context columns: temp", context="temp", next_context={"rain": 1}
    )
    refused(WIDE, "must be left out without context columns", next_context={"temp": 1})
    refused(WIDE, "temp = 'hot': must be a number", context="temp", next_context={"temp": "hot"})
    many = WIDE | {"note": [f"text {k}" for k in range(8)]}
    assert read_history(many, context="note").context.shape == (8, 7)


def test_a_column_named_like_a_built_in_is_taken_as_it_is() -> None:
    table = without(PAYOFF, "date") | {"week": list(range(8)), "season": ["low", "high"] * 4}
    assert read_history(table, context="season").context_names == ("season=low",)


def test_context_is_standardised_and_constant_columns_are_dropped() -> None:
    table = WIDE | {"fixed": [7] * 8}
    found = standard_context(read_history(table, context="temp,fixed"))
    assert found is not None
    assert (found.names, found.dropped) == (("temp",), ("fixed",))
    np.testing.assert_allclose([found.values.mean(), found.values.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(found.following, 0, atol=1e-12)
    assert standard_context(read_history(table, context="fixed")) is None


@pytest.mark.parametrize("name", ["month", "sales Month", "day_of_week", "quarter"])
def test_numbers_of_a_calendar_are_categories(name):
    length = {"quarter": 4, "day_of_week": 7}.get(name, 12)
    table = {
        "week": list(range(1, 37)),
        "tv": [k % 2 for k in range(36)],
        "radio": [k % 3 == 0 for k in range(36)],
        "sales": [1.0 + k % 5 for k in range(36)],
        name: [k % length + 1 for k in range(36)],
    }
    found = read_history(table, context=[name], next_context={name: "2"})
    assert found.context.shape == (36, length - 1)
    assert set(found.context.ravel().tolist()) == {0.0, 1.0}
    assert any("taken as categories" in note for note in found.notes)
