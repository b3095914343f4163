"""The report of the Covid-19 study: figures, claims and limitations."""

from spillover_studies.covid.report.figures import (
    days_figure,
    days_panels,
    error_figure,
    gain_figure,
    prediction_panels,
    recorded_panels,
    rules_figure,
    runs_figure,
    schematic_figure,
    selection_figure,
)
from spillover_studies.covid.report.page import write_covid_report

__all__ = [
    "days_figure",
    "days_panels",
    "error_figure",
    "gain_figure",
    "prediction_panels",
    "recorded_panels",
    "rules_figure",
    "runs_figure",
    "schematic_figure",
    "selection_figure",
    "write_covid_report",
]
