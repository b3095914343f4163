"""A policy against the stored results: the same draws, and a row for each world that suits it."""

import csv
import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import spillover as sp
from spillover.cli import main
from spillover.experiments import run_experiment
from spillover.studies import load_experiment
from spillover_studies.field import bench
from tests.studies.field.test_field import small


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A short version of the study whose results are stored."""
    shipped = small().changed(policies=["sem-ucb", "cucb", "random"], worlds=["changes"], delays=["50"])
    run_experiment(shipped, tmp_path / "results", progress=False)
    bench.write_stored(tmp_path / "results", tmp_path / "results.csv")
    monkeypatch.setattr(bench, "files", lambda package: tmp_path)
    monkeypatch.setattr(bench, "load_experiment", lambda name: small())
    return tmp_path


def call(folder, *arguments) -> Any:
    common = ["--world", "changes", "--delay", "50", "--output", str(folder), "--jobs", "1"]
    return CliRunner().invoke(main, ["spillover_studies.field.bench:bench", *arguments, *common])


def test_a_policy_that_is_stored_meets_its_own_draws_again(stored):
    """CUCB's row is its stored one: the worlds, rewards and delays are the same."""
    result = call(stored / "runs", "--policy", "cucb", "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    lines = {line.policy: line for line in bench.read_stored()}
    np.testing.assert_allclose(row["regret"][0], lines["cucb"].regret.mean(), rtol=1e-4)
    best = min(("cucb", "sem-ucb"), key=lambda name: lines[name].regret.mean())
    assert row["best"] == lines[best].label
    assert row["rivals"] == 3  # itself, and the two that are told no more; random sets are a reference


def test_the_table_has_the_policy_and_the_best_of_the_others(stored):
    result = call(stored / "runs", "--policy", "cts")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split()[:3] == ["world", "delay", "regret"]


def test_a_policy_is_not_played_where_it_would_see_too_little():
    experiment, unsuited = bench.experiment_of("ndc-sem", ("changes", "interference"), ("50",))
    assert list(experiment.combinations()) == [("changes", "50", "own")]
    assert unsuited == ["interference"]


def test_a_world_that_no_one_has_is_refused():
    with pytest.raises(ValueError, match="policy = 'ndc-sem'"):
        bench.experiment_of("ndc-sem", ("interference",), ())


def test_one_that_is_told_the_structure_is_held_against_those_that_are_told_no_more():
    lines = [
        bench.Stored("w", "50", name, name, told, 0, "", np.array([mean, mean + 1.0]))
        for name, told, mean in (("a", "", 5.0), ("b", "the structure", 2.0), ("random", "", 1.0))
    ]
    own = np.array([4.0, 5.0])
    assert bench.row_of(own, "w", "50", "", lines).best == "a"
    assert bench.row_of(own, "w", "50", "the structure", lines).best == "b"
    assert bench.row_of(own, "w", "50", "the structure", lines).rank == 2


def test_files_of_another_version_are_refused(stored):
    rows = list(csv.reader((stored / "results.csv").read_text().splitlines()))
    rows[1][0] = "2"
    (stored / "results.csv").write_text("\n".join(",".join(row) for row in rows))
    with pytest.raises(ValueError, match="version"):
        bench.read_stored()


def test_what_is_stored_is_of_the_shipped_study():
    shipped = load_experiment("field")
    lines = bench.read_stored()
    assert {(line.world, line.delay, line.policy) for line in lines} == set(shipped.combinations())
    assert {line.seed for line in lines} == {shipped.seed}
    assert {len(line.regret) for line in lines} == {shipped.replications}
    assert all(np.isfinite(line.regret).all() for line in lines)


def test_stored_results_are_those_of_the_present_source():
    """One cheap cell is computed again; a change of a world or of random sets means that the file is out of date."""
    shipped = load_experiment("field")
    (line,) = (
        each
        for each in bench.read_stored()
        if (each.world, each.delay, each.policy) == ("hierarchical", "50", "random")
    )
    run = sp.simulate(sp.Uniform(), shipped.worlds["hierarchical"], 50, replications=20, seed=shipped.seed)
    np.testing.assert_allclose(run.final_regret, line.regret, rtol=1e-4)
