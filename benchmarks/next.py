"""From a file to the next decision: a process of its own, from its start to its answer, for files of several sizes."""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

SIZES = ((10, 1_000, 5), (100, 1_000, 5), (100, 10_000, 30), (100, 10_000, 5))  # arms, rounds, arms a round
RUNS = 5
STEPS = """
import sys
from time import perf_counter
start = perf_counter()
import spillover.cli
loaded = perf_counter()
from spillover import kernels
from spillover.recommendation.decide import build_policy
from spillover.recommendation import RECOMMENDED
from spillover.history import read_history, replay_history
from spillover.history.replay import next_reasons
history = read_history(sys.argv[1])
read = perf_counter()
kernels.preload_numba()
loaded_kernels = perf_counter()
learner = replay_history(build_policy(RECOMMENDED, ()), history, budget=int(sys.argv[2]))
learned = perf_counter()
next_reasons(learner, history)
print(f"imports {loaded - start:.2f} s, reading {read - loaded:.2f} s, compiled code {loaded_kernels - read:.2f} s, "
      f"learning {learned - loaded_kernels:.2f} s, reasons {perf_counter() - learned:.2f} s")
"""


def write_history(path: Path, arms: int, rounds: int, budget: int, noise: float = 0.02) -> None:
    """A file of random decisions in a random sparse world with noise, all outcomes there."""
    draw = np.random.default_rng(0)
    spill = np.triu(draw.uniform(0.1, 0.5, (arms, arms)) * (draw.random((arms, arms)) < 3 / arms), 1)
    order = draw.permutation(arms)
    total = np.linalg.inv(np.eye(arms) - spill[np.ix_(order, order)])
    with path.open("w") as file:
        file.write("round,arm,chosen,z,y\n")
        for t in range(1, rounds + 1):
            x = draw.permutation(arms) < budget
            z = np.where(x, draw.random(arms).round(4), 0.0)
            y = total @ z + noise * draw.normal(size=arms)
            cells = zip(x.tolist(), z.tolist(), y.tolist(), strict=True)
            file.writelines(
                f"{t},arm {k},{int(chosen)},{own if chosen else ''},{overall:.5f}\n"
                for k, (chosen, own, overall) in enumerate(cells, 1)
            )


def processor_time() -> float:
    """Processor time of all processes that this one has started and that are done: other work does not change it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder:
        for arms, rounds, budget in SIZES:
            path = Path(folder) / f"{arms}-{rounds}-{budget}.csv"
            write_history(path, arms, rounds, budget)
            command = [sys.executable, "-m", "spillover", "next", str(path), "--budget", str(budget)]
            spent, before = [], processor_time()
            for _ in range(RUNS):
                start = perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                spent.append(perf_counter() - start)
            work = (processor_time() - before) / RUNS
            size = path.stat().st_size / 1e6
            print(f"{budget} of {arms} arms, {rounds:,} rounds ({arms * rounds:,} rows, {size:.0f} MB): ", end="")
            print(f"{min(spent):.2f} s at best, {np.median(spent):.2f} s in the median of {RUNS}, ", end="")
            print(f"{work:.2f} s of processor time")
        steps = [sys.executable, "-c", STEPS, str(path), str(budget)]
        print(subprocess.run(steps, check=True, capture_output=True, text=True).stdout.strip())


if __name__ == "__main__":
    main()
