"""Small studies that tests of the report and of the claims read: of made-up data as a record, and as simulated ones."""

import pytest

from spillover_studies.covid import CovidPlan, run_study
from spillover_studies.covid.record import simulated_outbreak


@pytest.fixture(scope="package")
def small_study(tmp_path_factory):
    plan = CovidPlan(shifts=(3, 7, 11), seeds=2, discounts=(0.7, 0.85), explorations=(1e-4, 0.1))
    record = simulated_outbreak()[0]._replace(source="record", attribution="made up")
    return run_study(record, tmp_path_factory.mktemp("covid"), plan)


@pytest.fixture(scope="package")
def simulated_study(tmp_path_factory):
    plan = CovidPlan(shifts=(3, 7), seeds=1, discounts=(0.85,), explorations=(0.1,))
    return run_study(simulated_outbreak()[0], tmp_path_factory.mktemp("covid-simulated"), plan)
