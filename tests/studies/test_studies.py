"""The registry of studies: which page a folder of results gets, and what every study can say of itself."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

import pytest

from spillover.experiments import open_results, parse_experiment, run_experiment
from spillover.studies import STUDIES, Request, experiment_study, load_experiment, shipped_experiments, write_report
from tests.cli.calls import call
from tests.experiments.small import TEXT

OWN = TEXT.replace('name = "small"', 'name = "synthetic"')


def test_the_registry_is_in_the_order_of_reproduce():
    assert list(STUDIES)[:3] == ["synthetic", "beyond", "covid"]
    for name, study in STUDIES.items():
        assert study.name == name
        assert study.title
        assert study.quick
    for study in shipped_experiments().values():
        assert study.load().title == study.title


def test_results_say_which_study_they_are_of(tmp_path):
    part = load_experiment("synthetic").changed(replications=1, worlds=["picture"], delays=["50"], policies=["random"])
    run_experiment(part, tmp_path, progress=False)
    assert open_results(tmp_path).experiment.study == "synthetic"
    assert [study.name for study in STUDIES.values() if study.owns(tmp_path)] == ["synthetic"]


@pytest.mark.parametrize("name", list(shipped_experiments()))
def test_an_experiment_of_ones_own_with_the_name_of_a_study_is_not_taken_for_it(
    name, tmp_path, monkeypatch, quick_figures
):
    """It has none of the policies that the paper's claims are about."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(OWN.replace('"synthetic"', f'"{name}"', 1))
    result = call("run", "mine.toml", "--engine", "serial", "--json")
    assert result.exit_code == 0, result.output
    folder = Path(json.loads(result.stdout)["results"])
    assert folder.name == name
    text = (folder / "report.html").read_text()
    for anchor in ("short", "table", "parameters", "settings"):
        assert f'id="{anchor}"' in text
    assert "claims" not in text
    assert not any(study.owns(folder) for study in STUDIES.values())
    before = (folder / "report.html").read_bytes()
    assert call("report", folder).exit_code == 0
    assert (folder / "report.html").read_bytes() == before


def test_a_part_of_the_synthetic_study_has_the_page_of_any_experiment(tmp_path, quick_figures):
    part = replace(parse_experiment(OWN), study="synthetic")
    part = part.changed(policies=list(part.policies)[:1], replications=2)
    run_experiment(part, tmp_path, progress=False)
    text = write_report(tmp_path).read_text()
    assert 'id="table"' in text
    assert "claims" not in text


def test_a_file_goes_before_the_name_of_a_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert experiment_study("synthetic") is STUDIES["synthetic"]
    (tmp_path / "synthetic").write_text(TEXT)
    assert load_experiment("synthetic").name == "small"
    assert load_experiment("synthetic").study is None


def test_a_study_runs_from_python_too(tmp_path):
    (tmp_path / "mine.toml").write_text(TEXT)
    study = experiment_study(tmp_path / "mine.toml")
    found = study.prepare(Request(output=tmp_path, replications=1, page=False))()
    assert set(found) == {"experiment", "seconds", "results", "final_regret"}
    assert {row["replications"] for row in found["final_regret"]} == {1}
    summary = study.summary(found)
    assert len(summary.rows) == len(found["final_regret"])
    assert {len(row) for row in summary.rows} == {len(summary.header)}


def test_what_cannot_be_done_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="seeds = 501: must be a whole number from 1 to 500"):
        STUDIES["covid"].prepare(Request(output=tmp_path, replications=501))
    assert not list(tmp_path.iterdir())


def test_the_library_does_without_the_studies():
    """Only their entry point names them; in a process of its own, as tests import them."""
    loaded = "import sys, spillover, spillover.study, spillover.report; print('spillover_studies' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout == "False\n"
    (shipped,) = entry_points(group="spillover.shipped")
    assert (shipped.name, shipped.load()) == ("studies", tuple(STUDIES.values()))


def test_without_any_study_the_command_says_so(monkeypatch):
    monkeypatch.setattr(STUDIES, "built_in", {})
    result = call("reproduce")
    assert result.exit_code == 2
    assert "no study is installed: install spillover again, or name one as module:Class" in result.stderr


# --- Numbers of the studies for the documents: every name that a document asks for exists, and prints Markdown ------


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


def leaves(texts, prefix=""):
    """The dotted keys of a table of texts."""
    for key, value in texts.items():
        yield from leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src/spillover_studies").rglob("texts.toml")), ids=lambda p: p.parts[-2]
)
def test_every_text_of_a_page_is_used(path) -> None:
    code = "".join(module.read_text("utf-8") for module in path.parent.rglob("*.py"))
    named = {part for text in re.findall(r'"([\w.-]+)"', code) for part in (text, text.rpartition(".")[2])}
    for key in leaves(tomllib.loads(path.read_text("utf-8"))):
        _, name, *_ = key.replace("simulated.captions", "captions").split(".") if "." in key else ("", key)
        assert name in named or key in named, key
