"""The wheel works alone: without this checkout, and without the packages that only some users need."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import spillover
from spillover.history.example import example_file

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOT_IN_THE_CORE = ("pandas", "matplotlib", "fastapi", "httpx", "openpyxl", "sklearn", "gymnasium", "networkx")
WITHOUT = "import sys; sys.modules.update(dict.fromkeys({names!r})); from spillover.cli import main; main(sys.argv[1:])"


def run_without(folder: Path, *arguments: str, names: tuple[str, ...] = NOT_IN_THE_CORE) -> subprocess.CompletedProcess:
    """The command in a process in which some packages cannot be imported."""
    command = [sys.executable, "-c", WITHOUT.format(names=names), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_decision_needs_no_optional_package(tmp_path):
    (tmp_path / "history.csv").write_text(example_file(), "utf-8")
    done = run_without(tmp_path, "next", "history.csv", "--budget", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Next round (2026-10-12): choose ")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("next", "history.csv", "--budget", "2", "--plot", "why.png"), "plot"),
        (("reproduce", "--quick"), "research"),
        (("serve",), "serve"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_what_is_missing_is_said_with_how_to_install_it(arguments, extra, tmp_path):
    (tmp_path / "history.csv").write_text(example_file(), "utf-8")
    done = run_without(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("spillover: ")
    assert done.stderr.endswith(f'pip install "spillover[{extra}]"\n')
    assert done.stderr.count("\n") == 1


def test_one_version_everywhere():
    assert spillover.__version__ == PROJECT["version"]
    done = subprocess.run([sys.executable, "-m", "spillover", "--version"], capture_output=True, text=True)
    assert done.stdout == f"spillover {spillover.__version__}\n"


def imported(folder: str) -> set[str]:
    """The packages that a folder imports."""
    text = "".join(path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py"))
    return set(re.findall(r"^ *(?:from|import) (\w+)", text, re.MULTILINE)) - sys.stdlib_module_names


def test_every_package_that_is_imported_is_declared():
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *(line for lines in extras.values() for line in lines)]
    declared = set(re.findall(r"[a-z0-9-]+", " ".join(re.split("[<>=;]", line)[0].lower() for line in needed)))
    used = imported("src") | imported("tests")
    sources = packages_distributions()
    for package in used & sources.keys():
        assert declared & {name.lower().replace("_", "-") for name in sources[package]}, package


@pytest.mark.long  # builds the package, and installs it with its dependencies
def test_the_wheel_in_an_empty_environment(tmp_path):
    pip = ["-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([sys.executable, *pip, "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("spillover-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    data = ("beyond/beyond.toml", "field/results.csv", "synthetic/tuning/ndc-sem-grid.toml", "covid/covid_italy.sha256")
    assert {"spillover/py.typed", *(f"spillover_studies/{name}" for name in data)} <= set(names)
    assert not [name for name in names if name.endswith((".nbi", ".nbc", ".lock")) or name.startswith("tests/")]
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, *pip, "install", str(wheel)], env=environment, check=True)
    for arguments in (["reproduce", "--help"], ["next", "--example"], ["next", "history.csv", "--budget", "2"]):
        command = [python.with_name("spillover"), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Next round (2026-10-12): choose ")
