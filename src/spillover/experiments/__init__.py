"""Experiments as data: a file describes what to compute, a store holds the results, an engine does the work."""

from spillover.experiments.example import example_results
from spillover.experiments.parse import load_experiment, parse_experiment
from spillover.experiments.results import Record, Results, open_results
from spillover.experiments.run import run_experiment
from spillover.experiments.specification import Cell, Comparison, Entry, Experiment
from spillover.experiments.toml_errors import ExperimentError

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
