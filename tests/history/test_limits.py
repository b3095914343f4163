"""The limits on the size of tables, which docs/reliability.md states: each is refused with a message that names it."""

import gzip

import pytest

from spillover.history import read_history
from tests.history.tables import WIDE, csv_text, in_format, refused

NAMES = ("round", "arm", "chosen", "z", "y")


def test_a_compressed_table_that_expands_too_far(tmp_path, monkeypatch):
    """Beyond a size that any file may have, the limit is 100 times that of the compressed file."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(csv_text(WIDE).encode() + b"\n" * 100_000))
    found = read_history(path)
    assert found.arms == ("north", "south")
    monkeypatch.setattr("spillover.history.files.MOST_FREELY", 10_000)
    with pytest.raises(ValueError, match="expands to more than 100 times its size, which no table does"):
        read_history(path)


@pytest.mark.parametrize("form", ["csv", "columns"])
def test_a_table_with_too_many_cells(form, tmp_path, monkeypatch):
    cells = len(WIDE) * len(WIDE["week"])
    source = in_format(WIDE, form, tmp_path)
    monkeypatch.setattr("spillover.history.frame.MOST_CELLS", 2 * cells)
    assert read_history(source).arms == ("north", "south")
    monkeypatch.setattr("spillover.history.frame.MOST_CELLS", cells - 1)
    with pytest.raises(ValueError, match=f"more than {cells - 1} cells: must be at most that many"):
        read_history(source)


@pytest.mark.parametrize("columns", ["round,arm,chosen,z,y", "week,store,promo,reward,sales"])
def test_a_table_with_too_many_arms(columns, tmp_path, monkeypatch):
    """In the names that need no options, which are read in parts, and in others."""
    for module in ("plain_form", "panel"):
        monkeypatch.setattr(f"spillover.history.{module}.MOST_ARMS", 20)
    rows = [(t, f"arm-{k}", k % 2, 0, 0) for t in (1, 2) for k in range(21)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]) + "\n")
    refused(path, "more than 20 arms", columns=",".join(map("=".join, zip(NAMES, columns.split(","), strict=True))))


def test_a_table_with_too_many_blank_rows(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("round,arm,chosen,z,y\n1,a,1,1,1\n2,a,0,0,0\n" + ",,,,\n" * 10 + "3,a,1,1,1\n")
    assert len(read_history(path).x) == 3
    monkeypatch.setattr("spillover.history.plain_form.MOST_BLANK", 9)
    with pytest.raises(ValueError, match="more than 9 rows without any value: must be at most that many"):
        read_history(path)
