"""Measured numbers in the documents are in blocks that a command writes, and nowhere else."""

import re
import runpy
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent
measured = SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "measured.py")))
each_document = pytest.mark.parametrize("document", measured.documents(), ids=lambda path: path.name)

INTERVAL = re.compile(r"\d[\d,.]*%? \[[−-]?\d[\d,.]*, [−-]?\d[\d,.]*\]")  # 1,234 [1,000, 1,468]
TIME = re.compile(r"\d (?:us|ms|GB|MB)\b|\b(?:takes|took|to|in|about) [\d.]+ s\b")  # s is also the budget
# A cell that is nothing but a number with a decimal point, a thousands separator or an error: measured, not defined.
CELL = re.compile(r"\|\s*[−-]?(?:\d+\.\d+|\d{1,3}(?:,\d{3})+)(?: \(\d+\))?%?\s*(?=\|)")
DEFINED = re.compile(r"^\| `(?:[A-Z_]+|[a-z_]+)`.*$", re.MULTILINE)  # constants of a policy, parameters


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


@each_document
def test_every_block_has_a_command_a_date_and_numbers(document) -> None:
    text = text_of(document)
    found = list(measured.blocks(text))
    assert len(found) == text.count("<!-- measured") == text.count("<!-- end -->")
    for block in found:
        assert re.match(r"python (-m benchmarks [a-z]|examples/study_numbers\.py [a-z]|-m tests\.)", block.command)
        date.fromisoformat(block.when[:10])
        assert re.search(r"\d", block.text)
        assert "nan" not in block.text.lower().split()
        rows = [line for line in block.text.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= len(re.findall(r"^\|(---\|)+$", block.text, re.MULTILINE))


@each_document
def test_no_measured_number_stands_outside_of_a_block(document) -> None:
    text = text_of(document)
    rest = DEFINED.sub("", measured.without_blocks(text))
    compared = " ".join(re.findall(r"^```python.*?^```", text, re.DOTALL | re.MULTILINE)).split()  # by the doctests
    assert INTERVAL.findall(rest) == []
    assert [cell for cell in CELL.findall(rest) if cell.strip("| ") not in compared] == []
    assert TIME.findall(rest) == []


def test_what_is_measured_is_recognised() -> None:
    for text in ("a ratio of 1.20 [1.10, 1.30]", "less: −16 [−20, −12]", "| FTRL | 8,946 |", "| x | 1,772 (81) |"):
        assert INTERVAL.search(text) or CELL.search(text)
    for text in ("means on [0, 1]", "| `HAZARD` | 0.001 | a probability |", "rounds 1,000, 2,500 and 4,000"):
        assert not INTERVAL.search(text)
        assert not CELL.search(DEFINED.sub("", text))
    assert TIME.search("takes 25 s on two cores")


def test_a_block_is_what_its_command_prints() -> None:
    command = "python -c 'print(\"| a |\\n|---|\\n| 7 |\")'"
    plain = measured.Block(command, "2026-01-01", "| a |\n|---|\n| 7 |\n")
    assert measured.measured_again(plain) == plain  # nothing new: not even the date
    stale = measured.measured_again(plain._replace(text="| a |\n|---|\n| 8 |\n"))
    assert stale.text == plain.text
    assert stale.when != plain.when
    fenced = measured.measured_again(plain._replace(text="```text\n```\n"))
    assert fenced.text == f"```text\n{plain.text}```\n"
    assert "Python" in fenced.when
    assert next(measured.blocks(f"before\n{fenced}\nafter")) == fenced


def test_only_the_block_of_the_command_is_replaced(tmp_path) -> None:
    one, other = (measured.Block(f"python -c 'print({k})'", "2026-01-01", f"{k}\n") for k in (1, 2))
    document = tmp_path / "some.md"
    document.write_text(f"first\n{one}\nthen\n{other}\nlast\n")
    measured.replace_block(document, one._replace(text="7 \\1\n"))  # nothing in it is special
    assert document.read_text() == f"first\n{one._replace(text='7 ' + chr(92) + '1' + chr(10))}\nthen\n{other}\nlast\n"


def test_a_command_that_fails_writes_nothing() -> None:
    with pytest.raises(RuntimeError, match="ended with code 3"):
        measured.printed_by("python -c 'raise SystemExit(3)'")
    with pytest.raises(ValueError, match="must start with python"):
        measured.printed_by("rm -r results")


@pytest.mark.long
@pytest.mark.parametrize("command", ["python -m benchmarks graph-regret"])
def test_what_can_be_measured_in_minutes_is_still_so(command) -> None:
    """Numbers that depend on no machine: a change of the code that changes them is noticed here."""
    found = [block for path in measured.documents() for block in measured.blocks(text_of(path))]
    block = next(block for block in found if block.command == command)
    assert measured.measured_again(block) == block
