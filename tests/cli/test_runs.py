"""run, reproduce, report and tune, on a small scale, in this process."""

import json

import numpy as np
import pandas as pd
import pytest

from spillover.experiments import open_results
from tests.cli.calls import call, refused

pytestmark = pytest.mark.usefixtures("here")


def replace_in(path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_run_writes_results_and_the_report_and_says_where(here, page) -> None:
    result = call("run", "my-study.toml", "--engine", "serial")
    assert result.exit_code == 0, result.output
    assert result.stderr == "spillover: plan: my-study: 4 cells, 480 rounds of learners\n"
    assert "results: results/my-study" in result.stdout
    assert "report: results/my-study/report.html" in result.stdout
    assert (here / "results/my-study/report.html").is_file()
    rows = [line.split() for line in result.stdout.splitlines()[:3]]
    assert rows[0][:3] == ["world", "delay", "policy"]
    assert [row[:3] for row in rows[1:]] == [["small", "5", "ndc-sem"], ["small", "5", "random"]]


def test_the_real_report_is_written_too(here) -> None:
    result = call("run", "my-study.toml", "--engine", "serial", "--json")
    assert result.exit_code == 0, result.output
    assert "A small one" in (here / json.loads(result.stdout)["report"]).read_text()


def test_figures_of_worlds_with_any_name(here) -> None:
    odd = "é" * 99 + "/"
    text = (here / "my-study.toml").read_text().replace("[worlds.small]", f'[worlds."{odd}"]')
    (here / "odd.toml").write_text(text.replace("replications = 4", "replications = 2"))
    assert call("run", "odd.toml", "--engine", "serial").exit_code == 0
    (figure,) = (here / "results/my-study/figures").glob("regret-%C3%A9*.png")
    assert len(figure.name) < 170


def test_run_as_json_is_what_the_store_holds(here, page) -> None:
    result = call("run", "my-study.toml", "--engine", "serial", "--json", "--replications", 3, "--seed", 9)
    content = json.loads(result.stdout)
    assert content["experiment"] == "my-study"
    kept = open_results(content["results"])
    assert (kept.experiment.seed, kept.experiment.replications) == (9, 3)
    for row, record in zip(content["final_regret"], kept.records(), strict=True):
        assert (row["world"], row["delay"], row["policy"]) == (record.world, record.delay, record.policy)
        assert row["replications"] == 3
        assert row["mean"] == record.regret[:, -1].mean()
        assert row["low"] < row["mean"] < row["high"]


def test_one_replication_has_no_interval_and_still_is_json(page) -> None:
    result = call("run", "my-study.toml", "--engine", "serial", "--json", "--replications", 1)
    assert json.loads(result.stdout)["final_regret"][0]["low"] == "nan"


def test_without_a_report_nothing_is_drawn(here) -> None:
    result = call("run", "my-study.toml", "--engine", "serial", "--no-report", "--output", "elsewhere")
    assert result.exit_code == 0, result.output
    assert "report" not in result.stdout
    assert (here / "elsewhere/my-study/store.json").is_file()


def test_report_reads_and_never_computes(here, page, monkeypatch) -> None:
    call("run", "my-study.toml", "--engine", "serial", "--no-report")
    monkeypatch.setattr("spillover.experiments.compute.CellTask.compute", None)
    assert call("report", "results/my-study").stdout == "wrote results/my-study/report.html\n"
    content = json.loads(call("report", "results/my-study", "--json").stdout)
    assert content == {"report": "results/my-study/report.html"}


def test_a_damaged_cell_is_reported_in_one_line(here) -> None:
    arguments = ("run", "my-study.toml", "--engine", "serial", "--no-report")
    call(*arguments)
    next((here / "results/my-study/cells").glob("*.npz")).write_bytes(b"half")
    result = call(*arguments, "--quiet")
    assert result.exit_code == 0, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("spillover: ")
    assert line.endswith("is computed again")


def test_report_refuses_what_holds_no_results(here) -> None:
    refused(call("report", "nowhere"), "nowhere")
    refused(call("report", "."), ".: must be a folder that run_experiment wrote")
    call("run", "my-study.toml", "--engine", "serial", "--no-report")
    next((here / "results/my-study/cells").glob("*.npz")).unlink()
    refused(call("report", "results/my-study"), "1 of 4 cells are missing")


def test_reproduce_runs_every_study_but_those_by_name(here, page, small_experiments) -> None:
    (here / "synthetic").write_text("a file of somebody's own")  # reproduce takes no notice of it
    result = call("reproduce", "--quick", "--engine", "serial", "--json")
    content = json.loads(result.stdout)
    assert (content["results"], content["report"]) == ("results/synthetic", "results/synthetic/report.html")
    assert content["beyond"]["results"] == "results/beyond"
    assert "field" not in content
    for rows in (content["final_regret"], content["beyond"]["final_regret"]):
        assert {row["replications"] for row in rows} == {10}


def test_a_missing_file_is_named(here) -> None:
    refused(call("run", "none.toml"), "none.toml: No such file")
    refused(call("tune", "none.toml"), "none.toml: No such file")
    refused(call("run", "synthetik"), "experiment = 'synthetik'", "did you mean synthetic?")
    refused(call("tune", "covid-gird"), "search = 'covid-gird'", "did you mean covid-grid?")


def test_a_misspelt_policy_is_told_with_its_line(here) -> None:
    replace_in(here / "my-study.toml", "policies.ndc-sem", "policies.ndc-sme")
    line = (here / "my-study.toml").read_text().splitlines().index("[policies.ndc-sme]") + 1
    refused(call("run", "my-study.toml"), f"my-study.toml:{line}:", "kind = 'ndc-sme'", "did you mean ndc-sem?")
    replace_in(here / "my-grid.toml", "policies.ndc-sem", "policies.ndc-sme")
    refused(call("tune", "my-grid.toml"), "my-grid.toml:", "kind = 'ndc-sme'", "did you mean ndc-sem?")
    assert not (here / "results").exists()


def test_broken_toml_is_told_with_its_line(here) -> None:
    replace_in(here / "my-grid.toml", "replications = 3", "replications = ")
    refused(call("tune", "my-grid.toml"), "my-grid.toml:3: not TOML")
    replace_in(here / "my-study.toml", "replications = 4", "replications = 0")
    refused(call("run", "my-study.toml"), "my-study.toml:4:", "replications = 0: must be a whole number from 1 on")


def test_a_folder_that_cannot_be_is_named(here) -> None:
    (here / "file").write_text("")
    for arguments in (["run", "my-study.toml", "--engine", "serial"], ["tune", "my-grid.toml"]):
        refused(call(*arguments, "--output", "file"), "file/my-", "Not a directory")


def test_an_address_without_a_cluster_is_refused() -> None:
    refused(call("run", "my-study.toml", "--address", "tcp://x:1"), "address = 'tcp://x:1'", "only dask and ray")


def test_tune_writes_every_cell_and_the_best(here) -> None:
    result = call("tune", "my-grid.toml", "--engine", "serial")
    assert result.exit_code == 0, result.output
    table = pd.read_csv(here / "results/my-grid/tuning.csv")
    assert list(table) == [
        *("world", "delay", "policy", "discount", "exploration", "replications", "final_regret", "low", "high")
    ]
    assert len(table) == 6
    best = json.loads((here / "results/my-grid/tuning.json").read_text())["best"]
    assert best[0]["final_regret"] == table["final_regret"].min()
    assert "best of 6 cells; all cells: results/my-grid/tuning.csv" in result.stdout
    assert "note: discount = " in result.stdout  # of two values both are ends
    again = json.loads(call("tune", "my-grid.toml", "--engine", "serial", "--json").stdout)
    assert again["best"][0]["exploration"] in np.array([1e-4, 1e-3, 1e-2])
    assert again["files"][:2] == ["results/my-grid/tuning.csv", "results/my-grid/tuning.json"]


def test_tune_refuses_the_reported_draws_unless_forced(here) -> None:
    refused(call("tune", "my-grid.toml", "--seed", 0), "seed = 0: must be different", "--force")
    assert call("tune", "my-grid.toml", "--seed", 0, "--force", "--engine", "serial").exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (
            "discount =",
            "discont =",
            ["my-grid.toml", "discont", "must be one of discount, exploration, graph.sparsity"],
        ),
        ("[0.9, 0.99]", "[0.9, 1.5]", ["discount", "must be a number strictly between 0 and 1"]),
        ("[0.9, 0.99]", "[]", ["grid.discount", "must be a list of numbers"]),
        ("[0.9, 0.99]", '["a"]', ["grid.discount", "must be a list of numbers"]),
        ("[0.9, 0.99]", "0.9", ["grid.discount", "must be a list of numbers"]),
        ("points = 3", "points = 1", ["exploration.points = 1", "from 2 to 100000"]),
        ("points = 3", "pionts = 3", ["pionts", "did you mean points?"]),
        ("from = 1e-4", "from = 0", ["exploration.from = 0", "> 0"]),
        ("[policies.ndc-sem]", "[policies.random]", ["random", "must be one of none"]),
        ("[grid]", "[gird]", ["gird", "did you mean grid?"]),
        ("replications = 3", "replications = 3\nreported = 1_000_003", ["seed = 1000003", "must be different"]),
    ],
)
def test_a_bad_grid_is_refused(old, new, parts, here) -> None:
    replace_in(here / "my-grid.toml", old, new)
    refused(call("tune", "my-grid.toml"), "my-grid.toml:", *parts)
