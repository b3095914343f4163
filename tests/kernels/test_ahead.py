"""Kernels that are compiled before they are needed, on several cores."""

import os
import subprocess
import sys
import threading

import pytest

from spillover import kernels
from spillover.kernels import compiling
from spillover.kernels.compiling import KERNELS
from spillover.policies import instrumental
from tests.sampling import every
from tests.waiting import HANG

LOADED = """
import sys
from spillover import kernels
from spillover.cli import main
from spillover.kernels import compiling
loaded, original = [], compiling.build
compiling.build = lambda name: loaded.append(name) or original(name)
try:
    main(sys.argv[1:])
finally:
    print("loaded", *sorted(set(loaded)), file=sys.stderr)
"""


SWITCHING = ("feedback_fault", "top_arms")  # kernels that a decision of SwitchingSEM needs


def loaded_by_next(folder, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", LOADED, "next", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()[1:]


def test_the_kernels_that_are_compiled_ahead_exist():
    assert set(instrumental.KERNELS) <= KERNELS.keys()


@pytest.mark.parametrize(
    ("needed", "columns"),
    every(2, [(SWITCHING, "round,arm,chosen,z,y"), (instrumental.KERNELS, "round,arm,chosen,y")]),
)
def test_a_decision_needs_just_the_kernels_that_are_compiled_ahead(needed, columns, tmp_path):
    loaded_by_next(tmp_path, "--example")
    rows = [line.split(",") for line in (tmp_path / "history.csv").read_text("utf-8").splitlines()]
    kept = [rows[0].index(name) for name in columns.split(",")]
    table = "\n".join(",".join(row[k] for k in kept) for row in rows) + "\n"
    (tmp_path / "table.csv").write_text(table, "utf-8")
    loaded = loaded_by_next(tmp_path, "table.csv", "--budget", "2")
    assert loaded == sorted(needed)


def test_nothing_is_started_where_everything_is_compiled(monkeypatch):
    assert kernels.play is not None
    monkeypatch.setattr(compiling, "start", pytest.fail)
    with kernels.compiled_ahead(["play"]):
        pass


@pytest.mark.parametrize("stopped", [False, True])
def test_compiling_apart_ends_with_its_processes_or_ends_them(stopped, monkeypatch):
    started = []

    def start(names):
        script = f"import time; time.sleep({HANG if stopped else 0})"
        started.append(subprocess.Popen([sys.executable, "-c", script]))
        return started[-1]

    monkeypatch.setattr(compiling, "missing", lambda names: names)
    monkeypatch.setattr(compiling, "start", start)
    asked = threading.Event()
    if stopped:
        asked.set()
    kernels.compile_apart(["play"], asked)
    assert [process.poll() == 0 for process in started] == [not stopped]


@pytest.mark.long
def test_what_is_missing_is_compiled_by_several_processes(tmp_path):
    """Afterwards everything is in the cache, whoever compiled it, and no process is left."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    script = """
import joblib
joblib.cpu_count = lambda: 2
from spillover import kernels
from spillover.kernels import compiling
names, start, started = ("play", "total_effects", "top_arms"), compiling.start, []
compiling.start = lambda names: started.append(start(names)) or started[-1]
with kernels.compiled_ahead(names):
    for name in names:
        vars(kernels).get(name) or getattr(kernels, name)
print(len(started), [process.poll() is not None for process in started], compiling.missing(names))
"""
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1 [True] []\n", "")
