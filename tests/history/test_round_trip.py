"""A history in any layout, format and order of rows and columns is read back; so is its --columns line."""

import shlex
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillover.history import read_history
from spillover.history.columns import natural_order
from tests.history.tables import FORMATS, in_format, long_table, wide_table
from tests.properties import examples

ARMS = st.lists(
    st.text("abcdefgXYZ0123456789 ,;=:*\"'äß%", min_size=1, max_size=8).map(lambda t: f"a{t.strip()}z"),
    min_size=2,
    max_size=5,
    unique_by=str.casefold,
)
ROUNDS = st.sampled_from(["numbers", "dates", "months", "quarters", "weeks", "points"])


def labels(kind, count):
    """Rounds as they are written, and as they are labelled."""
    days = np.datetime64("2025-11-03") + 7 * np.arange(count)
    months = (np.datetime64("2025-11") + np.arange(count)).astype(str)
    if kind == "numbers":
        return [*range(3, 3 + count)], [str(t) for t in range(3, 3 + count)]
    if kind == "dates":
        return [str(day) for day in days], [str(day) for day in days]
    if kind == "points":
        return [f"{d.astype(object).day}.{d.astype(object).month}.{d.astype(object).year}" for d in days], days.astype(
            str
        )
    if kind == "months":
        return list(months), list(months)
    if kind == "quarters":
        names = [f"{2025 + k // 4}Q{k % 4 + 1}" for k in range(count)]
        return [f"Q{name[-1]} {name[:4]}" for name in names], names
    names = [f"{d.astype(object).isocalendar().year}-W{d.astype(object).isocalendar().week:02d}" for d in days]
    return names, names


@st.composite
def histories(draw):
    """Arms, how rounds are written and labelled, decisions and outcomes; a few outcomes are missing."""
    arms, count = draw(ARMS), draw(st.integers(6, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    x = rng.random((count, len(arms))) < 0.5
    x[0], x[1] = True, False  # every arm was chosen once, and was not
    y = rng.normal(size=(count, len(arms))).round(3) * 10.0 ** draw(st.integers(-3, 6))
    y[2, 0] = np.nan if draw(st.booleans()) else y[2, 0]
    return arms, labels(draw(ROUNDS), count), x, y, rng


@examples(60)
@given(histories(), st.sampled_from(["long", "wide"]), st.sampled_from(FORMATS))
def test_what_is_written_is_read_back(tmp_path_factory, history, layout, form) -> None:
    arms, (written, shown), x, y, rng = history
    table = (long_table if layout == "long" else wide_table)(arms, written, x, y)
    rows, names = rng.permutation(len(next(iter(table.values())))), rng.permutation(list(table))
    shuffled = {name: [table[name][row] for row in rows] for name in names}
    source = in_format(shuffled, form, tmp_path_factory.mktemp("t"))
    found = read_history(source)
    check(found, arms, shown, x, y)
    option = shlex.split(found.columns_option)[1]
    again = read_history(source, columns=option)
    check(again, arms, shown, x, y)
    assert again.columns_option == found.columns_option
    assert {taken.reason for taken in again.taken} == {"given"}


def check(found, arms, shown, x, y):
    order = natural_order(arms)
    assert found.arms == tuple(arms[k] for k in order)
    assert found.rounds == tuple(shown)
    assert (found.x == x[:, order]).all()
    np.testing.assert_allclose(found.y, y[:, order], rtol=1e-12)
    assert found.observes == "overall"
    assert found.z is None


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_every_format_gives_the_same_history(form, layout, tmp_path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((8, 3)) < 0.5, rng.normal(size=(8, 3)).round(4)
    weeks = [f"2026-W{k:02d}" for k in range(1, 9)]
    table = (long_table if layout == "long" else wide_table)(["north", "south", "west"], weeks, x, y)
    found = read_history(in_format(table, form, tmp_path))
    assert found.following == "2026-W09"
    check(found, ["north", "south", "west"], weeks, x, y)


# --- Any cells at all: a table is read, or refused with a ValueError; never anything else ---------------------------


ODD = """1 0 x NA - 1,234 1.234,5 45% $5 (3) ∞ nan 1e400 2026-01 05/01/2026 Q1_2026 2026-W60 0000-00 31.2.2026 \0 \ud7ff
' " , ; = * 1e-400 −1 ９"""
CELLS = st.one_of(st.none(), st.text(max_size=6), st.sampled_from(ODD.replace("_", " ").split()))
VALUES = st.one_of(CELLS, st.integers(-3, 3), st.floats(), st.booleans())
KNOWN = (
    "round date week arm store chosen promo z y sales year month choice promo.a promo.b sales.a sales.b price.a * a=b"
)
NAMES = st.one_of(st.sampled_from([*KNOWN.split(), "", " ", "y ", "rownames"]), st.text(max_size=4))


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, max_size=7, unique=True))
    rows = draw(st.integers(0, 6))
    columns = st.lists(VALUES, min_size=rows, max_size=rows) | st.lists(CELLS, min_size=rows, max_size=rows)
    return {name: draw(columns) for name in names}


@examples(150)
@given(tables(), st.booleans(), st.sampled_from([None, "season", "price.*,trend"]))
def test_any_table_is_read_or_refused(table, doses, context) -> None:
    found = None
    with suppress(ValueError):
        found = read_history(table, doses=doses, context=context)
    if found is None:
        return
    count, n = found.x.shape
    assert found.y.shape == (count, n)
    assert len(found.rounds) == count
    assert len(found.arms) == n >= 1
    assert not np.isinf(found.y).any()
    assert found.context is None or not np.isnan(found.context).any()


@examples(60)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_any_file_is_read_or_refused(tmp_path_factory, content) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(b"week,store,promo,sales\n" + content)
    with suppress(ValueError):
        read_history(path)
