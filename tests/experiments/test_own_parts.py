"""Parts of one's own in an experiment: workers can import them, and results notice when they change."""

import json
import os
import subprocess
import sys

import pytest

from tests.waiting import HANG

PARTS = {
    "policy": "class Mine(sp.NDCSEM): pass",
    "graph": "class Mine(sp.SparseGraph): pass",
    "environment": "class Mine(sp.SyntheticSEM): pass",
    "delay": "class Mine(sp.ConstantDelay): pass",
}
STUDY = """
name = "mine"
replications = 2
block = 1
[worlds.w]
kind = "own_environment:Mine"
n_arms = 4
budget = 2
horizon = 20
changes = []
[delays.d]
kind = "own_delay:Mine"
rounds = 2
[policies.p]
kind = "own_policy:Mine"
graph = { kind = "own_graph:Mine", sparsity = 0.01 }
"""


@pytest.fixture
def folder(tmp_path):
    for kind, text in PARTS.items():
        (tmp_path / f"own_{kind}.py").write_text(f"import spillover as sp\n{text}\n")
    (tmp_path / "mine.toml").write_text(STUDY)
    return tmp_path


def run(folder, *options):
    """The cells that are stored after a run; Python does not look for modules in the folder by itself."""
    command = [sys.executable, "-P", "-W", "error", "-m", "spillover", "run", "mine.toml", "--no-report", "--json"]
    done = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, timeout=HANG, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["final_regret"]) == 1
    return {path.name for path in (folder / "results" / "mine" / "cells").iterdir() if path.suffix != ".lock"}


@pytest.mark.long
def test_workers_import_parts_of_the_current_folder(folder):
    assert len(run(folder, "--engine", "loky", "--jobs", "2")) == 2


@pytest.mark.long
@pytest.mark.parametrize("kinds", [["policy"], list(PARTS)])
def test_a_changed_part_is_computed_again(folder, kinds):
    stored = run(folder, "--engine", "serial")
    assert run(folder, "--engine", "serial") == stored
    for kind in kinds:
        path = folder / f"own_{kind}.py"
        path.write_text(path.read_text() + "CHANGED = 1\n")
        now = run(folder, "--engine", "serial")
        assert len(now - stored) == 2, kind
        stored = now
