"""A small study on a simulated outbreak, which tests of the report and of the claims read."""

import pytest

from spillover.studies.covid import CovidPlan, run_study
from spillover.studies.covid.outbreak import simulated_outbreak


@pytest.fixture(scope="package")
def small_study(tmp_path_factory):
    plan = CovidPlan(shifts=(3, 7, 11), seeds=2, discounts=(0.7, 0.85), explorations=(1e-4, 0.1))
    return run_study(simulated_outbreak()[0], tmp_path_factory.mktemp("covid"), plan)
