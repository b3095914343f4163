"""Run experiments that a file describes: a store holds the results, an engine does the work."""

from spillover.experiments.experiment import Cell, Comparison, Entry, Experiment
from spillover.experiments.parse import load_experiment, parse_experiment
from spillover.experiments.results import Record, Results, open_results
from spillover.experiments.run import example_results, run_experiment
from spillover.experiments.toml_file import ExperimentError

__all__ = [
    "Cell",
    "Comparison",
    "Entry",
    "Experiment",
    "ExperimentError",
    "Record",
    "Results",
    "example_results",
    "load_experiment",
    "open_results",
    "parse_experiment",
    "run_experiment",
]
