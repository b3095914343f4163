"""The limits on TOML, which docs/reliability.md states: what is within them is read, what is beyond is refused."""

import pytest

from spillover.files import DEEPEST, LONGEST_LINE_OF_KEYS, Excessive, parse_toml, read_toml_text


def nested(depth: int) -> str:
    """A list inside of lists; with the table that it is in, `depth` of them."""
    return "a = " + (depth - 1) * "[" + "1" + (depth - 1) * "]"


def test_depth():
    assert parse_toml(nested(DEEPEST))
    for depth in (DEEPEST + 1, 100_000):
        with pytest.raises(Excessive, match=f"at most {DEEPEST} tables and lists inside of each other"):
            parse_toml(nested(depth))


def test_keys_of_many_parts():
    few, many = (".".join(["a"] * parts) + " = 1" for parts in (20, LONGEST_LINE_OF_KEYS + 2))
    assert parse_toml(few)
    with pytest.raises(Excessive, match=f"a key of more than {LONGEST_LINE_OF_KEYS} parts"):
        parse_toml(many)
    numbers = ", ".join(["0.5"] * 1_000)
    assert parse_toml(f"a = [{numbers}]") == {"a": [0.5] * 1_000}


@pytest.mark.parametrize("digits", [31, 5_000])
def test_whole_numbers(digits):
    assert parse_toml(f"a = {10**30}") == {"a": 10**30}
    with pytest.raises(Excessive, match="must be at most 1e\\+30 in size"):
        parse_toml("a = 2" + "0" * (digits - 1))


def test_the_size_of_a_file(tmp_path, monkeypatch):
    path = tmp_path / "a.toml"
    path.write_text("a = 1\n")
    assert read_toml_text(path) == "a = 1\n"
    monkeypatch.setattr("spillover.files.MOST_BYTES", 5)
    with pytest.raises(ValueError, match="has 6 bytes: must be a TOML file of at most 5"):
        read_toml_text(path)
