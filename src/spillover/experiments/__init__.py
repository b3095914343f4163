"""Experiments as data: a file says what to compute, a store keeps what was computed, an engine does the work."""

from spillover.experiments.lines import ExperimentError
from spillover.experiments.parse import load_experiment, parse_experiment, shipped
from spillover.experiments.results import Record, Results, open_results
from spillover.experiments.run import run_experiment
from spillover.experiments.specification import Cell, Entry, Experiment, Study

__all__ = [
    "Cell",
    "Entry",
    "Experiment",
    "ExperimentError",
    "Record",
    "Results",
    "Study",
    "load_experiment",
    "open_results",
    "parse_experiment",
    "run_experiment",
    "shipped",
]
