"""The processor time of `spillover reproduce`: each study computed in this process, then its page written.

`python -m benchmarks reproduce [NAME ...] [--quick]`. Kernels are compiled and data are there before anything is timed.
"""

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.graph_step import Seconds, timed
from spillover import kernels
from spillover.studies import STUDIES, Request, Study, find_study


def study_seconds(study: Study, folder: Path, quick: bool) -> tuple[Seconds, Seconds]:
    """Of the computation and of the page."""
    job = study.prepare(Request(output=folder, quick=quick, page=False))
    computed = timed(job)
    return computed, timed(lambda: study.write_report(folder / study.name))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks reproduce", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies, all by default")
    parser.add_argument("--quick", action="store_true", help="a small run of each")
    chosen = parser.parse_args(arguments)
    kernels.compile_all()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    total = 0.0
    for name in chosen.names or list(STUDIES):
        with tempfile.TemporaryDirectory() as folder:
            computed, page = study_seconds(find_study(name), Path(folder), chosen.quick)
        total += computed.processor + page.processor
        print(
            f"{name:10} {computed.processor:6.1f} s of processor time to compute, {page.processor:5.1f} for the page; "
            f"by the clock {computed.elapsed:.1f} and {page.elapsed:.1f} s"
        )
    print(f"{'all':10} {total:6.1f} s of processor time in one process")
