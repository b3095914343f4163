"""Context: columns, texts, the season; per arm; of the round to decide; missing cells."""

import numpy as np
import pytest

from spillover.history import read_history
from spillover.history.example import example_file
from spillover.history.record import reward_range_of, shows_baseline, standard_context
from spillover.recommendation.estimates import facts_of
from tests.history.tables import LONG, PAYOFF, WIDE, changed, refused, without

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


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


def with_calendar(name, values):
    """A table of weeks with a column that repeats these values."""
    weeks = range(48)
    return {
        "week": [f"w{k}" for k in weeks],
        "tv": [k % 2 for k in weeks],
        "radio": [k % 3 == 0 for k in weeks],
        "sales": [1.0 + k % 5 for k in weeks],
        name: [values[k % len(values)] for k in weeks],
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, range(1, 13)) for name in ("month", "sales Month", "saleMonth", "month_no", "Month of year")),
        *((name, range(7)) for name in ("weekday", "day_of_week", "DayOfWeek", "dow")),
        ("weekday", range(1, 8)),
        ("quarter", range(1, 5)),
        ("hour", range(24)),
        ("hour of day", range(1, 25)),
    ],
)
def test_numbers_of_a_calendar_are_categories(name, values) -> None:
    found = read_history(with_calendar(name, values), context=[name], next_context={name: "2"})
    assert found.context.shape == (48, len(values) - 1)
    assert set(found.context.ravel().tolist()) == {0.0, 1.0}
    assert any("taken as categories" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("month", MONTHS),
        ("weekday", ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]),
    ],
)
def test_names_of_a_calendar_are_categories(name, values) -> None:
    found = read_history(with_calendar(name, values), context=[name], next_context={name: values[1]})
    assert len(found.context_names) == len(values) - 1
    assert set(found.context_names) < {f"{name}={value}" for value in values}


@pytest.mark.parametrize("names", [None, MONTHS])
def test_no_warning_asks_for_the_season_that_a_column_gives(names) -> None:
    season = [0, 0, 5, 9, 5, 0, -4, -9, 0, 3, 0, 20]
    months = range(72)
    table = {
        "date": [f"{2018 + k // 12}-{k % 12 + 1:02d}" for k in months],
        "tv": [int(k % 12 in (2, 3, 11) or k % 11 == 0) for k in months],
        "radio": [int(k % 5 < 2) for k in months],
        "sales": [100.0 + season[k % 12] + k % 7 / 7 for k in months],
        "month": [k % 12 + 1 if names is None else names[k % 12] for k in months],
    }
    asked, given = (facts_of(read_history(table, context=context)).assessment for context in (None, "month"))
    for code in ("choices-follow-season", "season-in-residuals"):
        assert asked.find(code) is not None
        assert given.find(code) is None


@pytest.mark.parametrize(("name", "values"), [("month", [0, 5, 14]), ("months open", [1, 2, 3]), ("temp", [1, 2, 3])])
def test_other_numbers_stay_numbers(name, values) -> None:
    assert read_history(with_calendar(name, values), context=[name]).context_names == (name,)


def test_a_column_that_is_given_as_context_is_no_outcome_and_no_decision() -> None:
    clicks = {"clicks": range(8), "visits": range(1, 9), "active": [1, 0] * 4}
    refused(PAYOFF | clicks, "the outcome may be revenue, clicks, visits")
    found = read_history(PAYOFF | clicks, context=["Clicks", "visits", "active"])
    assert (found.arms, found.outcome_names) == (("radio", "tv"), ("revenue",))
    assert found.context_names == ("clicks", "visits", "active")
    per_arm = WIDE | {"clicks_north": range(8), "clicks_south": range(8)}
    found = read_history(per_arm, context="clicks_*")
    assert found.outcome_names == ("sales_north", "sales_south")
    assert found.context_names == ("clicks_north", "clicks_south")


def test_a_round_column_may_have_the_name_of_context_that_is_computed_from_it() -> None:
    table = {("month" if name == "date" else name): values for name, values in LONG.items()}
    table["month"] = [f"2026-{k:02d}" for k in range(1, 9) for _ in "ns"]
    assert read_history(table, context="month").context_names[0] == "month=2"


# --- Ranges and baselines from the data: in the units of the table, whatever was declared beyond it -----------------


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
