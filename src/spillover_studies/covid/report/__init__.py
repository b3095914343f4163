"""The report of the Covid-19 study: figures, claims and limitations."""

from spillover_studies.covid.report.page import write_covid_report

__all__ = ["write_covid_report"]
