"""The notebook of the examples shows what its cells give."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NUMBER = re.compile(r"-?\d+\.\d+")


def cells() -> list[Any]:
    return [cell for cell in nbformat.read(EXAMPLES / "tour.ipynb", as_version=4).cells if cell.cell_type == "code"]


def last_value(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, if that is an expression."""
    *first, last = ast.parse(source).body
    exec(compile(ast.Module(first, []), "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    exec(compile(ast.Module([last], []), "cell", "exec"), names)
    return None


def alike(shown: str, made: str) -> bool:
    """Equal, up to the last digits of numbers, which a machine may round differently."""
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(made), strict=False)
    near = all(float(one) == pytest.approx(float(other), rel=2e-3, abs=2e-3) for one, other in pairs)
    return near and NUMBER.sub("#", shown) == NUMBER.sub("#", made)


def test_the_cells_give_what_is_kept() -> None:
    names: dict[str, Any] = {}
    for cell in cells():
        value = last_value(cell.source, names)
        assert len(cell.outputs) == (value is not None), cell.source
        for output in cell.outputs:
            kept = output.data
            if "image/png" in kept:
                assert value._repr_png_()[0].startswith(b"\x89PNG")
            else:
                assert alike(kept["text/html"], value._repr_html_()), cell.source  # pandas' text depends on the screen


def test_the_notebook_is_valid_and_says_nothing_of_the_machine_it_ran_on() -> None:
    text = (EXAMPLES / "tour.ipynb").read_text(encoding="utf-8")
    nbformat.validate(nbformat.reads(text, as_version=4))
    assert not re.search(r"/home/|/root/|/tmp/|Traceback", text)
    assert len(text) < 500_000


@pytest.mark.long
def test_a_kernel_shows_the_same() -> None:
    checked = subprocess.run(
        [sys.executable, str(EXAMPLES / "notebooks.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
