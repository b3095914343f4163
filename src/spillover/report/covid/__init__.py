"""The report of the Covid-19 study: figures, claims, and what it can and cannot tell."""

from spillover.report.covid.cases import error_figure, prediction_panels, recorded_panels
from spillover.report.covid.curves import days_figure, days_panels, gain_figure
from spillover.report.covid.map import map_figure
from spillover.report.covid.page import write_covid_report
from spillover.report.covid.selection import selection_figure

__all__ = [
    "days_figure",
    "days_panels",
    "error_figure",
    "gain_figure",
    "map_figure",
    "prediction_panels",
    "recorded_panels",
    "selection_figure",
    "write_covid_report",
]
