"""Any cells at all: a table is read, or refused with a ValueError; never anything else."""

from contextlib import suppress

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spillover.history import read_history
from tests.properties import examples

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
