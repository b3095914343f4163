"""The paper's Covid-19 study (Section V-B): all shifts and seeds, two modes, two scales, the tuning grids."""

from spillover.experiments.covid.plan import LABELS, LITERAL, SEMI, CovidPlan, validation_days
from spillover.experiments.covid.play import Played
from spillover.experiments.covid.scores import SCORES, clustered_interval
from spillover.experiments.covid.study import CovidStudy, is_covid_study, open_study, run_study

__all__ = [
    "LABELS",
    "LITERAL",
    "SCORES",
    "SEMI",
    "CovidPlan",
    "CovidStudy",
    "Played",
    "clustered_interval",
    "is_covid_study",
    "open_study",
    "run_study",
    "validation_days",
]
