"""Numbers, yes and no, as people write them; what is not clear is not guessed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillover.history.cells import Unclear, parse_flags, parse_numbers, take_apart


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "2.5", "-3", "+4", ".5", "1e3", "2E-2"], [1, 2.5, -3, 4, 0.5, 1000, 0.02]),
        (["", "NA", "NaN", "null", "-", "n/a", "#N/A", "none", "7"], [math.nan] * 8 + [7]),
        (["45%", "0%", "5.5 %"], [0.45, 0, 0.055]),
        (["1,234.5", "12"], [1234.5, 12]),
        (["1.234,5", "12"], [1234.5, 12]),
        (["1,234,567"], [1234567]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["0,5", "1,234"], [0.5, 1.234]),
        (["0.5", "1,234"], [0.5, 1234]),
        (["1 234", "1\u00a0234\u00a0567", "12 345.5"], [1234, 1234567, 12345.5]),
        (["1'234.50", "5"], [1234.5, 5]),
        (["$ 5", "$1,200.50", "-$3"], [5, 1200.5, -3]),
        (["5 €", "7,50€"], [5, 7.5]),
        (["EUR 5", "6 eur"], [5, 6]),
        (["(1,200.5)", "3"], [-1200.5, 3]),
        (["−5", "2"], [-5, 2]),
        (["1.234", "2.500"], [1.234, 2.5]),
    ],
)
def test_numbers_are_read_as_they_are_meant(texts, values) -> None:
    found = parse_numbers(texts)
    assert isinstance(found, np.ndarray), found
    np.testing.assert_allclose(found, values)


@pytest.mark.parametrize(
    ("texts", "bad", "words"),
    [
        (["1,234", "2"], ("1,234",), "clear whether it is 1234 or 1.234: say which with --decimal point"),
        (["45%", "0.4"], ("0.4",), "written with a percent sign"),
        (["$5", "€6"], ("€6",), "in one currency; there are $ and €"),
        (["1", "lots", "few"], ("lots", "few"), "a finite number"),
        (["1,5", "1.5"], ("1,5",), "a finite number with a decimal point"),
        (["1e999"], ("1e999",), "a finite number"),
        (["12,34,567.5"], ("12,34,567.5",), "a finite number"),
    ],
)
def test_what_is_unclear_is_quoted_with_what_is_accepted(texts, bad, words) -> None:
    found = parse_numbers(texts)
    assert isinstance(found, Unclear)
    assert found.texts == bad
    assert words in found.accepted


@pytest.mark.parametrize("text", ["1_000", "0x10", "inf", "1.2.3", "1,,2", "--1", "5%%", "€5€", "(5", "1 2", "1e", "%"])
def test_other_texts_are_no_numbers(text) -> None:
    assert isinstance(parse_numbers([text]), Unclear), take_apart(text)


@pytest.mark.parametrize(
    ("text", "point", "elsewhere", "value"),
    [("1,234", ".", "", 1234.0), ("1,234", ",", "", 1.234), ("1,234", None, ",", 1.234), ("1.234", None, ",", 1234.0)],
)
def test_the_rest_of_the_table_or_the_user_settles_what_a_comma_means(text, point, elsewhere, value) -> None:
    found = parse_numbers([text], point, frozenset(elsewhere))
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [value]


@given(st.lists(st.floats(-1e9, 1e9).map(lambda v: round(v, 2)), min_size=1), st.sampled_from("., '"), st.booleans())
def test_any_number_survives_its_decoration(values, separator, euro) -> None:
    point = "," if separator == "." else "."
    texts = [f"{value:,.2f}".replace(",", "\0").replace(".", point).replace("\0", separator) for value in values]
    texts = [f"€{text}" if euro and not text.startswith("-") else text for text in texts]
    found = parse_numbers(texts)
    assert isinstance(found, np.ndarray), (texts, found)
    np.testing.assert_allclose(found, values, rtol=1e-12)


@pytest.mark.parametrize(
    ("texts", "flags"),
    [
        (["Y", "n", "NA"], [1, 0, -1]),
        (["TRUE", "False"], [1, 0]),
        (["x", "", "X"], [1, 0, 1]),
        (["1", ""], [1, -1]),
        (["1.0", "0.0"], [1, 0]),
        (["treatment", "control"], [1, 0]),
        (["1", "2"], None),
        (["", "NA"], None),
        (["yes", "maybe"], None),
    ],
)
def test_yes_and_no(texts, flags) -> None:
    found = parse_flags(texts)
    assert flags == (None if found is None else found.tolist())
