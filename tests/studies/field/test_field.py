"""The study of the field: a small copy of the shipped file, its page, and what it concludes from given records."""

import re
from dataclasses import replace

import numpy as np
import pytest

from spillover.contracts import as_policy
from spillover.experiments import parse_experiment, run_experiment
from spillover.studies import load_experiment, write_report
from spillover_studies.field.numbers import NUMBERS
from spillover_studies.field.standings import (
    GRAPH,
    OURS,
    PAYOFF,
    REFERENCES,
    WORLDS,
    Setting,
    goals,
    less_with_delay,
    settings_of,
    standing,
    standings,
    told_names,
)
from tests.report.examples import made_up

PLAYED = ("switching-sem", "payoff-regression", "sem-ucb", "cucb", "random", "lin-sem-ts", "netc")


def small():
    """The shipped file with few policies, short worlds and two replications."""
    text = load_experiment("field").text
    text = re.sub(r"(horizon = \d+|changes = \[.*\])\n", "", text)
    text = re.sub(r"(kind = \"(?:synthetic|spillover_studies\.field\.\w*worlds:\w+)\")\n", r"\1\nhorizon = 40\n", text)
    text = re.sub(r"(kind = \".*(?:synthetic|SubgraphSEM)\"\nhorizon = 40)\n", r"\1\nchanges = [20]\n", text)
    text = text.replace("replications = 20", "replications = 2").replace("rounds = 50", "rounds = 5")
    text = text.replace("rounds = 200", "rounds = 10")
    experiment = replace(parse_experiment(text), study="field")
    return experiment.changed(policies=PLAYED, worlds=["changes", "interference"])


@pytest.fixture(scope="module")
def results(tmp_path_factory, quick_figures):
    return run_experiment(small(), tmp_path_factory.mktemp("field"), progress=False)


def test_the_names_are_those_of_the_shipped_file():
    experiment = load_experiment("field")
    assert set(WORLDS) == set(experiment.worlds)
    assert {*GRAPH, *PAYOFF, *OURS, *REFERENCES} <= set(experiment.policies)
    assert {key[0] for key in experiment.combinations()} == set(WORLDS)
    assert {key[2] for key in experiment.combinations()} == set(experiment.policies)
    for entry in experiment.policies.values():
        as_policy(entry.policy("50"))


def test_the_page_concludes(results):
    text = write_report(results.store.folder).read_text("utf-8")
    for anchor in (
        "short",
        "winners",
        "ours",
        "graph",
        "delay",
        "all",
        "knows",
        "definitions",
        "parameters",
        "settings",
    ):
        assert f'id="{anchor}"' in text
    assert "which edges there can be" in text
    for world in ("changes", "interference"):
        assert WORLDS[world] in text


def test_settings_are_compared_where_they_were_run(results):
    found = settings_of(results)
    assert [(setting.world, setting.delay) for setting in found] == [
        (world, delay) for world in ("changes", "interference") for delay in ("0", "50", "200")
    ]
    assert "lin-sem-ts" in told_names(results)
    for one in standings(results):
        assert one.best.policy not in {"lin-sem-ts", *REFERENCES}
    assert {one.setting.world for one in goals(results, "switching-sem")} == {"changes"}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_for_the_documents_are_markdown(results, name):
    assert NUMBERS[name](results).startswith("|" if name == "winners" else "- ")


def test_a_policy_that_is_better_off_with_a_delay_is_named():
    late = {name: made_up(name) for name in ("cucb", "sem-ucb")}
    now = late | {"cucb": late["cucb"]._replace(regret=2 * late["cucb"].regret)}
    ((world, record, ratio),) = less_with_delay([Setting("changes", "0", now), Setting("changes", "50", late)])
    assert (world, record.policy) == ("changes", "cucb")
    np.testing.assert_allclose(ratio, 2.0)


def test_who_wins_and_who_cannot_be_told_apart():
    level = {"sem-ucb": 10.0, "cucb": 10.5, "ndc-sem": 30.0, "lin-sem-ucb": 1.0, "random": 100.0}
    spread = np.linspace(-1.0, 1.0, 6)
    records = {
        name: made_up(name)._replace(regret=(mean + (1 if k % 2 else -1) * spread)[:, None])
        for k, (name, mean) in enumerate(level.items())
    }
    found = standing(Setting("changes", "50", records), {"lin-sem-ucb"})
    assert found is not None
    assert found.best.policy == "sem-ucb"
    assert [record.policy for record in found.ties] == ["cucb"]
    assert found.told is not None
    assert found.told.policy == "lin-sem-ucb"
