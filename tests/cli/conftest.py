"""A small study, a small grid, and a report that takes no time."""

from dataclasses import replace
from pathlib import Path

import pytest

from spillover.environments import SyntheticSEM
from spillover.experiments import Experiment, parse_experiment
from spillover.experiments.experiment import Search
from spillover.study import ShippedExperiment
from spillover_studies.covid import CovidPlan
from spillover_studies.covid.record import MissingData
from spillover_studies.synthetic import SyntheticStudy

WORLD = """
[worlds.small]
kind = "synthetic"
n_arms = 4
budget = 2
horizon = {horizon}
changes = []

[delays.5]
kind = "constant"
rounds = 5
"""
STUDY = """
name = "my-study"
title = "A small one"
replications = 4
block = 2
record = 20
{world}
[policies.ndc-sem]
exploration = 1e-4
[policies.random]
"""
GRID = """
name = "my-grid"
replications = 3
{world}
[policies.ndc-sem]
[grid]
discount = [0.9, 0.99]
exploration = {{ from = 1e-4, to = 1e-2, points = 3 }}
"""


SMALL = SyntheticSEM(n_arms=4, budget=2, horizon=40, changes=())


def small_search(search: Search) -> Search:
    """The same grid in small worlds, at one delay, with as few replications as have an interval."""
    first = dict(list(search.delays.items())[:1])
    return replace(search, worlds=dict.fromkeys(search.worlds, SMALL), delays=first, replications=2)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with my-study.toml and my-grid.toml."""
    monkeypatch.chdir(tmp_path)
    world = WORLD.format(horizon=60)
    (tmp_path / "my-study.toml").write_text(STUDY.format(world=world))
    (tmp_path / "my-grid.toml").write_text(GRID.format(world=world))
    return tmp_path


@pytest.fixture
def page(monkeypatch) -> None:
    """A report that is quick to write: what the real one draws has tests of its own."""

    def write_report(folder, parts=None) -> Path:
        (Path(folder) / "report.html").write_text("<html></html>")
        return Path(folder) / "report.html"

    monkeypatch.setattr("spillover.report.page.write_report", write_report)
    monkeypatch.setattr("spillover_studies.covid.report.write_covid_report", write_report)


@pytest.fixture
def small_experiments(monkeypatch) -> None:
    """The studies that are experiment files made small, under their own names, and the searches of a full run too."""

    def load(study) -> Experiment:
        text = STUDY.format(world=WORLD.format(horizon=60)).replace("my-study", study.name)
        return replace(parse_experiment(text), study=study.name)

    tuning = SyntheticStudy.tuning
    monkeypatch.setattr(ShippedExperiment, "load", load)
    monkeypatch.setattr(SyntheticStudy, "tuning", lambda study: [small_search(search) for search in tuning(study)])


@pytest.fixture(autouse=True)
def small_covid(monkeypatch) -> None:
    """The Covid-19 study small, simulated and without a network: it has tests of its own."""
    plan = CovidPlan(shifts=(3,), seeds=1, discounts=(0.85,), explorations=(0.1,))

    def nowhere(*given, **extra):
        raise MissingData("no record in these tests")

    monkeypatch.setattr("spillover_studies.covid.plan_for", lambda request, simulated: plan)
    monkeypatch.setattr("spillover_studies.covid.covid_italy", nowhere)
