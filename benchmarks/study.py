"""The paper's whole synthetic comparison against one run of NDC-SEM written with scikit-learn's Lasso; and the grid.

Six policies, three delays, 100 replications of 5,000 rounds, all cores, the store included; then the search over
the 10 x 22 grid with 20 replications.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.graph_step import lasso_seconds, recorded_feedback
from spillover.experiments import parse_experiment, run_experiment
from spillover.experiments.tune import run_search
from spillover.studies import load_experiment, load_search

STUDY = """
[[studies]]
worlds = ["fresh"]
delays = ["50", "200", "400"]
policies = ["ndc-sem", "sem-ucb", "cucb", "cts", "ftrl", "random"]
"""


def study_seconds() -> float:
    """The shipped experiment, cut down to the paper's comparison."""
    head = load_experiment("synthetic").text.split("[[studies]]")[0]
    with tempfile.TemporaryDirectory() as folder:
        experiment = parse_experiment(head + STUDY)
        start = perf_counter()
        run_experiment(experiment, Path(folder), engine="loky", progress=False)
        return perf_counter() - start


def grid_seconds() -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        run_search(replace(load_search("covid-grid")), Path(folder), engine="loky", progress=False)
        return perf_counter() - start


def main() -> None:
    z, y = recorded_feedback()
    for _ in range(2):
        theirs, ours = lasso_seconds(z, y).elapsed, study_seconds()
        print(
            f"one run with scikit-learn, graph step alone {theirs:6.1f} s | "
            f"6 policies x 3 delays x 100 runs {ours:6.1f} s by the clock ({theirs / ours:.1f} to 1)"
        )
    print(f"grid of 220 settings x 20 replications x 5,000 rounds: {grid_seconds():.0f} s")


if __name__ == "__main__":
    main()
