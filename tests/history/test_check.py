"""Misspelt arms are named before what is missing because of them; a y that keeps every round pending is explained."""

import pytest

from spillover.history import HistoryError, read_history


def written(folder, rows):
    path = folder / "h.csv"
    path.write_text("round,arm,chosen,z,y\n" + "".join(f"{row}\n" for row in rows))
    return path


def rows_of(rounds, arms=("posters", "radio", "video"), y=("0.5", "0.5")):
    """Every arm in every round, the first one chosen; y of the chosen arm and of the others."""
    return [
        f"{t},{arm},{int(arm == arms[0])},{0.5 if arm == arms[0] else ''},{y[arm != arms[0]]}"
        for t in range(1, rounds + 1)
        for arm in arms
    ]


def lines(folder, rows):
    with pytest.raises(HistoryError) as found:
        read_history(written(folder, rows))
    return [line.removeprefix(str(folder / "h.csv")) for line in found.value.lines]


def test_a_misspelt_arm_is_named_once_with_its_line(tmp_path) -> None:
    rows = rows_of(30)
    rows[10] = rows[10].replace("radio", "raido")
    words = (
        "arm 'raido' appears in 1 of 30 rounds, where 'radio' is missing: must be one of the arms; did you mean radio?"
    )
    assert lines(tmp_path, rows) == [f":12: {words}"]


def test_other_missing_rows_are_reported_too(tmp_path) -> None:
    rows = rows_of(30)
    rows[10] = rows[10].replace("radio", "raido")
    del rows[80]
    first, second = lines(tmp_path, rows)
    assert "did you mean radio?" in first
    assert second.startswith(": round 27 has no row for 'video': must have one for each of the 3 arms")


def test_a_new_arm_with_a_similar_name_is_not_misspelt(tmp_path) -> None:
    found = lines(tmp_path, [*rows_of(5), "5,radio 2,0,,0"])
    words = "round 1 has no row for 'radio 2': must have one for each of the 4 arms (4 like this)"
    assert found == [f": {words}"]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (("", ""), "column y is empty, so all rounds count as pending"),
        (("0.5", ""), "column y has values of chosen arms"),
    ],
)
def test_a_missing_y_gets_a_hint(y, words, tmp_path) -> None:
    found = read_history(written(tmp_path, rows_of(3, y=y)))
    assert not found.arrived.any()
    assert any(note.startswith(words) and "--columns y=" in note for note in found.notes)
    some = read_history(
        written(tmp_path, [*rows_of(3, y=y), *(f"4,{arm},0,,0" for arm in ("posters", "radio", "video"))])
    )
    assert not any("--columns y=" in note for note in some.notes)
