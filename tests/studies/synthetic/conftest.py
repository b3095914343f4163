"""The small study, run once for all tests of this folder."""

import pytest

from spillover.experiments import run_experiment
from tests.studies.synthetic.small import small_study


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    return run_experiment(small_study(), tmp_path_factory.mktemp("study"), progress=False)
