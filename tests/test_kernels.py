"""The compiled file as a whole: a cold cache is filled by one process at a time, and the file stands alone."""

import ast
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from spillover import kernels

FIRST_STEPS = """
import spillover as sp
print(sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=100, changes=()), 5).final_regret[0])
"""


@pytest.mark.long
def test_processes_that_meet_a_cold_cache_at_once_do_not_break_it(tmp_path):
    """Without the lock around compilation they leave a cache that crashes whoever loads it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", FIRST_STEPS], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    first = [process.communicate()[0] for process in started]
    again = subprocess.run([sys.executable, "-c", FIRST_STEPS], env=environment, capture_output=True, text=True)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert again.returncode == 0
    assert len({*first, again.stdout}) == 1


def test_kernels_import_nothing_of_ours():
    """Numba's cache looks at one file: a kernel that calls into another would go stale."""
    tree = ast.parse(Path(kernels.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not [name for name in modules if name and name.startswith("spillover")]
    assert modules & {"numba", "numpy"} == {"numba", "numpy"}


def test_the_lock_is_given_back():
    """Within a minute: another process may be compiling at this moment."""
    path = Path(tempfile.gettempdir()) / f"spillover-kernels-{os.getuid()}.lock"
    with path.open() as lock:
        for _ in range(600):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.1)
    pytest.fail("the lock is still held")


WAKING = """
import sys
from spillover import kernels
assert "scipy.linalg" not in sys.modules
kernels.wake()
assert "scipy.linalg" not in sys.modules
import numba, numpy as np, scipy.linalg, scipy.optimize
product = numba.njit(lambda a, b: a @ b)
print(product(np.eye(2), np.full((2, 2), 3.0)).tolist(), scipy.linalg.norm([3.0, 4.0]))
"""


def test_waking_leaves_linear_algebra_for_those_who_need_it():
    run = subprocess.run([sys.executable, "-c", WAKING], capture_output=True, text=True)
    assert run.stderr == ""
    assert run.stdout == "[[3.0, 3.0], [3.0, 3.0]] 5.0\n"
