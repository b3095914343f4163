"""Compiled functions of one learner are stored on disk by all that they are made of."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import config

from spillover.core import compiled
from spillover.kernels import cache

POLICY = """
from dataclasses import dataclass
from typing import Any, NamedTuple
import numpy as np
import helpers
from spillover.core import CorePolicy

class LeastState(NamedTuple):
    rounds: Any
    n_arms: Any
    budget: Any
    reward_range: Any
    pulls: Any

@dataclass(frozen=True, kw_only=True)
class Least(CorePolicy):
    compiled = True
    def start(self, problem, rng):
        n, budget = problem.n_arms, problem.budget
        return LeastState(0, n, budget, np.array(problem.reward_range, float), np.zeros(n))
    def decide(self, s, turn, x):
        x[helpers.place_of_largest(s.pulls)] = True
    def learn_outcome(self, s, lesson, turn):
        s.pulls[0] += 1.0
"""
HELPERS = """
from spillover.core import inner
@inner
def place_of_largest(pulls):
    best = 0
    for i in range(len(pulls)):
        if SIGN * pulls[i] > SIGN * pulls[best]:
            best = i
    return best
SIGN = 1.0
"""
MAIN = """
import numpy as np
from numba.core import event
import spillover as sp
from least import Least

class Count(event.Listener):
    seen = 0
    def on_start(self, event): Count.seen += 1
    def on_end(self, event): pass

with event.install_listener("numba:run_pass", Count()):
    state = Least().init(sp.Problem(n_arms=3, budget=1), sp.Rng(0))
    state.pulls[:] = 3.0, 1.0, 2.0
    chosen = Least().select(state, sp.Rng(0)).x
print(chosen.argmax(), Count.seen)
"""


def run(folder: Path) -> tuple[int, int]:
    """The arm that a new process chooses, and how many steps of Numba's compiler it needs."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "main.py"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    chosen, steps = map(int, done.stdout.split())
    return chosen, steps


def test_a_second_process_compiles_nothing_and_an_edit_of_a_function_that_is_called_is_noticed(tmp_path) -> None:
    for name, text in (("least.py", POLICY), ("helpers.py", HELPERS), ("main.py", MAIN)):
        (tmp_path / name).write_text(text)
    first, steps = run(tmp_path)
    assert first == 0
    assert steps > 0
    (tmp_path / "least.py").write_text("# a comment, which moves all lines\n" + POLICY)
    assert run(tmp_path) == (0, 0)
    (tmp_path / "helpers.py").write_text(HELPERS.replace("SIGN = 1.0", "SIGN = -1.0"))
    edited, steps = run(tmp_path)
    assert edited == 1
    assert steps > 0


@pytest.mark.long
def test_processes_that_meet_a_cold_cache_at_once_do_not_break_it(tmp_path) -> None:
    for name, text in (("least.py", POLICY), ("helpers.py", HELPERS), ("main.py", MAIN)):
        (tmp_path / name).write_text(text)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(run, [tmp_path] * 3))
    assert [chosen for chosen, _ in found] == [0, 0, 0]
    assert sum(steps > 0 for _, steps in found) == 1  # the others wait for what it stores
    assert run(tmp_path) == (0, 0)


class Colour(IntEnum):
    RED = 1


def leaf(value: float, *, factor: float = 2.0) -> float:
    return factor * value * SCALE + Colour.RED


SCALE = 3.0
own_module: Any = ModuleType("own_module")
own_module.inside = ModuleType("own_module.inside")
own_module.inside.leaf = leaf


def branch(value: float) -> float:
    return leaf(value) + TABLE[0]


def through_a_module(value: float) -> float:
    return own_module.inside.leaf(value)


TABLE = np.arange(3.0)


def changed_leaf(value: float, *, factor: float = 2.0) -> float:
    return factor * value * SCALE - Colour.RED


def other_default(value: float, *, factor: float = 4.0) -> float:
    return factor * value * SCALE + Colour.RED


class OtherColour(IntEnum):
    RED = 2


OtherColour.__name__ = "Colour"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("leaf", changed_leaf),
        ("leaf", other_default),
        ("SCALE", 4.0),
        ("TABLE", np.arange(3.0) + 1.0),
        ("Colour", OtherColour),
    ],
)
def test_a_change_anywhere_below_a_function_changes_its_hash(name, value, monkeypatch) -> None:
    before = cache.fingerprint(branch)
    assert cache.fingerprint(branch) == before
    monkeypatch.setitem(globals(), name, value)
    assert cache.fingerprint(branch) != before


def test_so_does_a_change_in_a_module_inside_of_a_module(monkeypatch) -> None:
    before = cache.fingerprint(through_a_module)
    monkeypatch.setattr(own_module.inside, "leaf", changed_leaf)
    assert cache.fingerprint(through_a_module) != before


def test_so_does_a_setting_of_the_compiler(monkeypatch) -> None:
    before = cache.fingerprint(branch)
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    assert cache.fingerprint(branch) != before


def test_a_function_that_calls_itself_has_a_hash() -> None:
    def down(k: int) -> int:
        return 0 if k == 0 else down(k - 1)

    assert cache.fingerprint(down) == cache.fingerprint(down)


def test_code_is_compiled_where_nothing_can_be_stored(monkeypatch) -> None:
    monkeypatch.setattr(compiled, "cache_folder", lambda: None)
    monkeypatch.setattr(cache, "cache_folder", lambda: None)
    assert compiled.entry(lambda a: a + 1)(2) == 3
