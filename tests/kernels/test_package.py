"""An edit of a file of kernels compiles again the kernels of that file and of those that import it, and no others."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spillover import kernels
from spillover.kernels import cache
from spillover.kernels.build import KERNELS
from spillover.kernels.cache import files_behind

FOLDER = Path(kernels.__file__).parent
MACHINERY = {"__init__", "ahead", "announce", "build", "cache", "quick_compiling"}
FILES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in MACHINERY)


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_kernels_imports_nothing_that_its_cache_does_not_know(path):
    """Numba looks at one file only; `cache.own_folder` knows those that it imports in this form."""
    allowed = {
        "collections",
        "math",
        "typing",
        "numpy",
        "numba",
        "numba.core",
        "numba.np.arrayobj",
        "numba.extending",
        "llvmlite",
        "spillover.kernels.build",
    }
    allowed |= {f"spillover.kernels.{name}" for name in files_behind(path.stem)}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= allowed
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module in allowed
            if node.module == "spillover.kernels.build":
                assert [alias.name for alias in node.names] == ["gufunc"]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_no_file_is_long(path):
    assert len(path.read_text("utf-8").splitlines()) <= 500


def test_every_kernel_is_known_by_its_file():
    without = {  # what kernels of other files are made of
        *("candidate_search", "elementary", "factor", "ftrl", "inner", "listing", "outcomes"),
        *("row_solver", "rounds", "scaled", "switching_block", "switching_steps", "vectors"),
    }
    assert {path.stem for path in FILES} - without == {kernel.file for kernel in KERNELS.values()}
    for name, kernel in KERNELS.items():
        assert name in functions(FOLDER / f"{kernel.file}.py")
    names = [name for path in FILES for name in functions(path) & KERNELS.keys()]
    assert sorted(names) == sorted(KERNELS)  # none stands in two files
    assert not KERNELS.keys() & {path.stem for path in FOLDER.glob("*.py")}  # where it would hide the file


def test_a_kernel_that_does_not_exist():
    with pytest.raises(AttributeError, match=r"spillover\.kernels.*no_such_kernel"):
        _ = kernels.no_such_kernel


def test_the_files_behind_a_file():
    assert files_behind("world") == {"world", "elementary"}
    assert files_behind("gram") == {"gram", "vectors"}


@pytest.mark.parametrize("changed", ["gram", "vectors"])
def test_kernels_are_kept_apart_by_what_they_are_compiled_from(changed, tmp_path, monkeypatch):
    """Of their own file, and of those that it imports."""
    before, other = cache.own_folder(tmp_path, "gram"), cache.own_folder(tmp_path, "effects")
    assert before.parent == tmp_path
    source = cache.source_of
    monkeypatch.setattr(cache, "source_of", lambda file: source(file) + b"#" * (file == changed))
    assert cache.own_folder.__wrapped__(tmp_path, "gram") != before
    assert cache.own_folder.__wrapped__(tmp_path, "effects") == other


LOADING = "from spillover import kernels; kernels.play; kernels.total_effects"


@pytest.mark.long
def test_an_edit_compiles_only_the_kernels_of_its_file_again(tmp_path):
    copy = tmp_path / "spillover"
    shutil.copytree(FOLDER.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def cached() -> dict[str, dict[str, int]]:
        subprocess.run([sys.executable, "-c", LOADING], env=environment, check=True, cwd=tmp_path)
        return {
            file: {str(path): path.stat().st_mtime_ns for path in (tmp_path / "cache").glob(f"{file}-*/*.nb?")}
            for file in ("world", "effects")
        }

    first = cached()
    assert all(first.values())
    assert cached() == first
    with (copy / "kernels" / "world.py").open("a", encoding="utf-8") as file:
        file.write("# one more line\n")
    again = cached()
    assert again["effects"] == first["effects"]
    assert len(again["world"]) == 2 * len(first["world"])
