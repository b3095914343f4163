"""Load learners with absurd experience, and let them go on: python -m tests.live.forged_learners CASES SEED.

Each case saves learners of a policy, replaces whole numbers of their states by others that are possible beside the
number of rounds, up to 4.5e15, and loads them. A file that is refused is right, and so is a learner that goes on. Under
NUMBA_BOUNDSCHECK=1 a kernel that reads or writes outside of its arrays raises an IndexError, which is printed.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import spillover as sp
from spillover.learner.saved import ArrayFile, save_array_file
from spillover.validate import shown
from tests.live.learners import LIVE, problem_for

LARGE = (10**9, 2**31 - 1, 2**31, 2**32 + 1, 10**12, 4 * 10**15, 45 * 10**14)
GIVEN = ("rounds", "budget", "shape")  # they follow from the number of rounds and from the problem
GRAPHS: dict[str, Any] = {"candidates": sp.CandidateGraph, "sparse": sp.SparseGraph}


def policies() -> dict[str, Any]:
    """Every policy that can be used live, and NDC-SEM with other graphs."""
    found = {name: sp.policies.POLICIES[name]() for name in LIVE}
    return found | {f"ndc-sem {name}": sp.NDCSEM(graph=graph()) for name, graph in GRAPHS.items()}


def go_on(herd: sp.Learners, rounds: int, draws: np.random.Generator) -> None:
    """Play rounds; some outcomes stay pending, and some of those that are reported belong to earlier rounds."""
    for _ in range(rounds):
        x = herd.choose()
        numbers = herd.play()
        z = np.where(x, draws.uniform(size=x.shape), 0.0)
        y = z + 0.3 * z[:, -1:]
        who = np.flatnonzero(draws.uniform(size=len(x)) < 0.8)
        if len(who):
            observes = herd.problem.observes
            own = z[who] if observes == "both" else None
            herd.report(who, numbers[who], own, y[who].sum(axis=-1) if observes == "payoff" else y[who])


def moved(arrays: dict[str, Any], later: int) -> dict[str, Any]:
    """The arrays that say in which round learners are, so many rounds later."""
    names = [name for name in arrays if name == "pending.round" or name.split(".")[-1] == "rounds"]
    return {name: arrays[name] + later for name in names}


def forged(arrays: dict[str, Any], draws: np.random.Generator) -> dict[str, Any]:
    """The arrays with later rounds, and with some whole numbers of the states replaced."""
    later = int(draws.choice([0, *LARGE]))
    changed = moved(arrays, later)
    last = int(changed["rounds"].max())
    whole = [name for name, a in arrays.items() if name.startswith("state.") and a.dtype.kind == "i" and a.size]
    free = [name for name in whole if name.split(".")[-1] not in GIVEN]
    for name in free:
        if draws.uniform() < 2 / len(free):
            changed[name] = arrays[name].copy()
            flat = changed[name].reshape(-1)
            places = slice(None) if draws.uniform() < 0.5 else draws.integers(len(flat), size=1)
            value = int(draws.choice([0, 1, 7, last - 1, last, last + 1, *LARGE]))
            flat[places] = min(value, np.iinfo(flat.dtype).max)
    return arrays | changed


def search(cases: int, seed: int) -> list[str]:
    """What went wrong, with the case that shows it."""
    draws = np.random.default_rng(seed)
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        path = Path(folder) / "learners"
        for name, policy in policies().items():
            problem = problem_for(name)
            herd = sp.Learners(policy, problem, [1, 2, 3])
            go_on(herd, 12, draws)
            herd.save(path)
            saved = ArrayFile(path)
            arrays, about = dict(saved.arrays), saved.about
            loaded = 0
            for _ in range(cases):
                content = forged(arrays, draws)
                save_array_file(path, content, about)
                try:
                    again = sp.Learners.load(path, policy, problem)
                    loaded += 1
                    go_on(again, 4, draws)
                except (ValueError, ArithmeticError, np.linalg.LinAlgError):
                    continue  # refused, or an error that says so
                except Exception as error:
                    other = {key: shown(a) for key, a in content.items() if a.tobytes() != arrays[key].tobytes()}
                    problems.append(f"{name}: {type(error).__name__}: {error}: {other}")
            print(f"{name}: {loaded} of {cases} loaded", file=sys.stderr, flush=True)
    return problems


if __name__ == "__main__":
    print("\n".join(search(int(sys.argv[1]), int(sys.argv[2]))))
