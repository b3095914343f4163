"""The first decision on a new machine: `spillover next` on the example, with an empty cache of compiled kernels."""

import os
import subprocess
import sys
import tempfile
from time import perf_counter

from benchmarks.next import processor_time

COMMAND = (sys.executable, "-c", "from spillover_command import main; main()", "next")
RUNS = 3


def main() -> None:
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            surroundings = os.environ | {"NUMBA_CACHE_DIR": f"{folder}/kernels"}
            subprocess.run([*COMMAND, "--example"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            start, used = perf_counter(), processor_time()
            decide = [*COMMAND, "history.csv", "--budget", "2"]
            subprocess.run(decide, cwd=folder, env=surroundings, check=True, stdout=subprocess.DEVNULL)
            took, busy = perf_counter() - start, processor_time() - used
        load = os.getloadavg()[0]
        print(f"first decision, cache empty: {took:.1f} s, processor time {busy:.1f} s; load {load:.1f}", flush=True)
