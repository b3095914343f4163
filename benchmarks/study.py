"""The paper's whole synthetic comparison against one run of NDC-SEM written with scikit-learn's Lasso; and the grid.

Six policies, three delays, 100 replications of 5,000 rounds, all cores, the store included; then the search over
the 10 x 22 grid with 20 replications.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.graph_step import Seconds, lasso_seconds, recorded_feedback, timed
from spillover.experiments import parse_experiment, run_experiment
from spillover.experiments.tune import run_search
from spillover.studies import load_experiment, load_search

STUDY = """
[[studies]]
worlds = ["fresh"]
delays = ["50", "200", "400"]
policies = ["ndc-sem", "sem-ucb", "cucb", "cts", "ftrl", "random"]
"""


def study_seconds(engine: str) -> Seconds:
    """The shipped experiment, cut down to the paper's comparison."""
    head = load_experiment("synthetic").text.split("[[studies]]")[0]
    with tempfile.TemporaryDirectory() as folder:
        experiment = parse_experiment(head + STUDY)
        return timed(lambda: run_experiment(experiment, Path(folder), engine=engine, progress=False))


def grid_seconds() -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        run_search(replace(load_search("covid-grid")), Path(folder), engine="loky", progress=False)
        return perf_counter() - start


def main() -> None:
    z, y = recorded_feedback()
    for _ in range(2):
        theirs, ours, serial = lasso_seconds(z, y), study_seconds("loky").elapsed, study_seconds("serial").processor
        print(
            f"one run with scikit-learn, graph step alone {theirs.processor:6.1f} s | 6 policies x 3 delays x 100 runs "
            f"{ours:6.1f} s by the clock on all cores ({theirs.elapsed / ours:.1f} to 1), "
            f"{serial:6.1f} s of processor time in one process ({theirs.processor / serial:.1f} to 1)"
        )
    print(f"grid of 220 settings x 20 replications x 5,000 rounds: {grid_seconds():.0f} s")


if __name__ == "__main__":
    main()
