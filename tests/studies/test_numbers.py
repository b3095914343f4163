"""Numbers of the studies for the documents: every name that a document asks for exists, and prints Markdown."""

import re
import runpy
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"measured by `python examples/study_numbers\.py (\w+) ([\w-]+)`")


def asked_for() -> list[tuple[str, str]]:
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return sorted({found for path in documents for found in COMMAND.findall(path.read_text(encoding="utf-8"))})


@pytest.mark.parametrize(("study", "name"), asked_for())
def test_a_document_asks_for_what_a_study_has(study, name) -> None:
    assert name in import_module(f"spillover_studies.{study}.numbers").NUMBERS


def test_a_name_that_no_study_has_is_refused(tmp_path) -> None:
    script = SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "study_numbers.py")))
    with pytest.raises(ValueError, match="name = 'regrets': must be one of setting, blind"):
        script.numbers("beyond", "regrets", tmp_path)
