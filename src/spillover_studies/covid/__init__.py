"""The paper's Covid-19 study (Section V-B): all shifts and seeds, two modes, two scales, the tuning grids."""

from spillover_studies.covid.plan import LABELS, LITERAL, SEMI, CovidPlan, validation_days
from spillover_studies.covid.play import Played
from spillover_studies.covid.results import CovidResults, is_covid_study, open_study, run_study
from spillover_studies.covid.scores import SCORES, clustered_interval
from spillover_studies.covid.study import CovidStudy

__all__ = [
    "LABELS",
    "LITERAL",
    "SCORES",
    "SEMI",
    "CovidPlan",
    "CovidResults",
    "CovidStudy",
    "Played",
    "clustered_interval",
    "is_covid_study",
    "open_study",
    "run_study",
    "validation_days",
]
