"""Compile what decisions need in another process, where it is not compiled yet.

A command compiles what learns a history, and beside it another process what derives and shows the decision: the command
finds that in the cache. A service has all of it compiled apart, and stays free for requests.
"""

import base64
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from spillover.core.own import reached
from spillover.core.policy import CorePolicy
from spillover.core.use import use_of
from spillover.kernels.cache import cache_folder, own_folder
from spillover.rng import Purpose, Rng
from spillover.types import Feedback, Problem

# what is compiled serves any number of arms
FEW = Problem(n_arms=3, budget=1, overall_range=(0.0, 3.0), weights=np.ones(3))
COMPILE = "import sys; from spillover.core.ahead import compile_uses; compile_uses(*sys.argv[1:])"
PAUSE = 0.1  # seconds between looks at a process
PRESENT: set[Any] = set()  # the functions of policies that were found in the cache: to look again takes long


@contextmanager
def compiled_beside(policy: Any) -> Iterator[None]:
    """Have another process compile what derives and shows decisions, if it is missing; it ends with the block."""
    other = started(policy) if is_missing(policy) else None
    try:
        yield
    finally:
        if other is not None:
            other.kill()
            other.wait()


def compile_apart(policy: Any, stopped: threading.Event) -> None:
    """Have another process compile all that decisions from a history need, if it is missing; until it is stopped."""
    other = started(policy, "history") if is_missing(policy) else None
    if other is not None:
        while not stopped.is_set() and other.poll() is None:
            stopped.wait(PAUSE)
        other.kill()
        other.wait()


def is_missing(policy: Any) -> bool:
    """Whether what makes decisions is not in the cache; without a cache another process could not help."""
    folder = cache_folder()
    if folder is None or not isinstance(policy, CorePolicy) or not policy.compiled:
        return False
    needed = (folder, type(policy), reached(policy))
    if needed not in PRESENT:
        decide = use_of(policy, policy.init(FEW, Rng(0))).drivers.decide
        if not any(own_folder(folder, decide.py_func).glob("*.nbi")):
            return True
        PRESENT.add(needed)
    return False


def started(policy: Any, *uses: str) -> subprocess.Popen[bytes] | None:
    """A process that compiles for a policy; None where it could not be told: a class of a script, or too much of it."""
    nowhere = subprocess.DEVNULL
    with suppress(pickle.PicklingError, AttributeError, OSError):
        told = base64.b64encode(pickle.dumps(replace(policy))).decode()
        command = [sys.executable, "-c", COMPILE, told, *uses]
        return subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    return None


def compile_uses(told: str, *uses: str) -> None:
    """Solve, explain and decide once; with "history", learn one first."""
    policy = pickle.loads(base64.b64decode(told))  # made by the process that started this one
    state = policy.init(FEW, Rng(0).at(Purpose.START))
    if "history" in uses:
        x = np.eye(2, 3, dtype=np.bool_)
        z = np.where(x, 0.5, 0.0)
        past = Feedback(x, z, z, np.zeros(2, np.int64), np.ones(2, np.bool_))
        state = policy.batches.catch_up(state, past, 1, Rng(0))
    state = policy.batches.solve(state)
    policy.explain(state, Rng(0).at(Purpose.CHOICE, 1))
    policy.select(state, Rng(0).at(Purpose.CHOICE, 1))
