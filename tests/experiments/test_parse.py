"""What nobody can mean is refused before it runs, and what takes long must be confirmed."""

import re
from dataclasses import fields, replace
from typing import Any

import pytest
from click.testing import CliRunner

import spillover as sp
from spillover.cli import main
from spillover.experiments import Comparison, ExperimentError, parse_experiment, run_experiment
from spillover.experiments.compute import (
    HALF,
    WORTH_A_TRIAL,
    BlockTask,
    CellTask,
    expected_seconds,
    seconds_of_round,
    time_in_words,
)
from spillover.experiments.experiment import plan
from spillover.experiments.parse import parse_search
from spillover.experiments.tune import run_search
from spillover.policies import POLICIES
from spillover.studies import load_experiment, shipped_experiments
from tests.cli.calls import call, refused
from tests.experiments.small import TEXT, small


def test_the_paper_s_settings():
    experiment: Any = load_experiment("synthetic")
    assert experiment.worlds["fresh"] == sp.SyntheticSEM()
    assert experiment.worlds["picture"] == sp.environments.Instance(seed=2023)
    assert [experiment.delays[name].rounds for name in ("50", "200", "400")] == [50, 200, 400]
    entry = experiment.policies["ndc-sem"]
    assert [entry.policy(delay).exploration for delay in ("50", "200", "400")] == [1e-10, 1e-6, 1e-18]
    assert all(entry.policy(d) == sp.NDCSEM(exploration=entry.policy(d).exploration) for d in ("50", "200", "400"))
    for policy in ("ndc-sem", "sem-ucb", "cucb", "cts", "ftrl", "random", "switching-sem", "delayed-oracle"):
        for delay in ("50", "200", "400"):
            assert experiment.combinations()["fresh", delay, policy] == 400
            assert experiment.combinations()["picture", delay, policy] == 20


@pytest.mark.parametrize("name", list(shipped_experiments()))
def test_what_ships_can_be_read_and_has_distinct_cells(name):
    cells = load_experiment(name).cells()
    assert len({(c.world, c.delay, c.policy, c.first) for c in cells}) == len(cells)


def test_a_small_one():
    experiment: Any = small()
    assert (experiment.seed, experiment.replications, experiment.block, experiment.record) == (3, 6, 2, 40)
    assert experiment.worlds["picture"].of.n_arms == 6
    assert experiment.policies["reference"].label == "reference"
    assert experiment.studies[1] == Comparison(worlds=("picture",), delays=("5",), policies=("ndc-sem",))
    counts = experiment.combinations()
    assert len(counts) == 7
    assert counts["picture", "5", "ndc-sem"] == 3
    assert [(c.first, c.count) for c in experiment.cells() if c.world == "picture"] == [(0, 2), (2, 1)]


def test_without_studies_all_meets_all():
    text = TEXT[: TEXT.index("[[studies]]")]
    assert len(parse_experiment(text).combinations()) == 2 * 2 * 3


def test_a_study_may_ask_for_more_replications():
    text = TEXT + '[[studies]]\nworlds = ["picture"]\ndelays = ["5"]\npolicies = ["ndc-sem", "cts"]\nreplications = 9\n'
    counts = parse_experiment(text).combinations()
    assert counts["picture", "5", "ndc-sem"] == counts["picture", "5", "cts"] == 9


def test_every_policy_can_be_in_a_file():
    text = TEXT[: TEXT.index("[policies")] + "".join(f"[policies.{name}]\n" for name in POLICIES)
    assert list(parse_experiment(text).policies) == list(POLICIES)


def test_a_delay_inside_of_a_delay_and_a_world_with_named_arms():
    text = """\
name = "own"
replications = 1
[worlds.mine]
kind = "fixed"
adjacency = [[0, 0.5], [0, 0]]
arms = ["north", "south"]
means = [0.2, 0.8]
budget = 1
horizon = 20
[delays.lost]
kind = "lossy"
loss = 0.1
delay = {kind = "constant", rounds = 3}
[policies.random]
"""
    experiment: Any = parse_experiment(text)
    assert experiment.worlds["mine"].arms == ("north", "south")
    assert experiment.delays["lost"] == sp.LossyDelay(sp.ConstantDelay(3), 0.1)
    assert len(experiment.cells()[0].id) == 64
    with pytest.raises(ExperimentError, match=r"^f:13: unknown key runds .*did you mean rounds\?$"):
        parse_experiment(text.replace("rounds = 3", "runds = 3"), "f")
    with pytest.raises(ExperimentError, match=r"^f:6: arms = .*must be 2 names"):
        parse_experiment(text.replace('"north", ', ""), "f")


def numbered(line):
    """The line (from 1) on which a text of TEXT stands."""
    return TEXT[: TEXT.index(line)].count("\n") + 1


BAD = [  # what is replaced, by what, the line of the error, its message
    ('name = "small"', "nmae = 1", 1, "unknown key nmae: .*; did you mean name?"),
    ('name = "small"', 'name = "a/b"', 1, "name = 'a/b': must be a word"),
    ('name = "small"', "", 1, "name = None: must be a word"),
    ('title = "A small experiment"', "title = 5", 2, "title = 5: must be text"),
    ("seed = 3", "seed = -1", 3, "seed = -1: must be a whole number from 0"),
    ("seed = 3", "seed = 18446744073709551616", 3, "seed = 18446744073709551616: must be a whole number from 0 to"),
    ("replications = 6", "replications = 0", 4, "replications = 0: must be a whole number from 1 on"),
    ("replications = 6", "replications = true", 4, "replications = True: must be a whole number"),
    ("replications = 3", "replications = 0", None, "replications = 0: must be a whole number from 1 on"),
    ("block = 2", "block = 1.5", 5, "block = 1.5: must be a whole number from 1 on"),
    ("record = 40", "record = 0", 6, "record = 0: must be a whole number from 1 on"),
    ("record = 40", "record = 40\nrecrod = 1", 7, "unknown key recrod: .*; did you mean record?"),
    ("record = 40", "record = ", 6, "not TOML: "),
    ("record = 40", "record = 40\nrecord = 40", 7, "not TOML: "),
    ('kind = "synthetic"', 'kind = "syntetic"', None, "kind = 'syntetic': must be one of .*did you mean synthetic?"),
    ('kind = "synthetic"\n', "", 8, "no kind in [worlds.fresh]: must be one of synthetic"),
    ("horizon = 150", "horizn = 150", None, "unknown key horizn in [worlds.fresh]: .*; did you mean horizon?"),
    ("horizon = 150", "horizon = 0", None, "horizon = 0: must be a whole number from 1 on"),
    ("changes = [60, 110]", "changes = [60, 9000]", None, "changes = (60, 9000): must be increasing rounds"),
    ("seed = 2023", "sed = 2023", None, "unknown key sed in [worlds.picture]: .*; did you mean seed?"),
    ("seed = 2023", "seed = -2", None, "seed = -2: must be a whole number"),
    ("n_arms = 6", "n_arms = 1", 17, "budget = 2: must be at most n_arms = 1"),
    ('kind = "constant"', 'kind = "konstant"', None, "kind = 'konstant': .*; did you mean constant?"),
    ("rounds = 5", "", 21, "no rounds in [delays.5]: must be given"),
    ("rounds = 5", "rounds = -5", None, "rounds = -5: must be a whole number from 0 on"),
    ("high = 20", "high = -1", None, "high = -1: must be a whole number"),
    (
        'kind = "uniform"\nlow = 0\nhigh = 20',
        'kind = "recorded"\ndelays = [1, 2]',
        24,
        "ndc-sem in fresh at delay spread: ",
    ),
    ("[policies.cts]", "[policies.ctss]", None, "kind = 'ctss': must be one of .*; did you mean cts?"),
    ("[policies.cts]", "[policies.cts]\ndiscount = 0.5", 35, "unknown key discount in [policies.cts]"),
    ("exploration = 1e-3", "explorasion = 1e-3", None, "unknown key explorasion .*; did you mean exploration?"),
    ("exploration = 1e-3", "exploration = [1, 2]", None, "exploration = [1, 2]: must be one value"),
    ("exploration = 1e-3", 'exploration = "much"', None, "exploration = 'much': must be a finite number >= 0"),
    ("exploration = 1e-3", "discount = 1.0", None, "discount = 1.0: must be a number strictly between 0 and 1"),
    ("exploration = 1e-6", "exploration = -1", None, "exploration = -1: must be a finite number >= 0"),
    ("exploration = 1e-6", "exploratoin = 1", None, "unknown key exploratoin .*; did you mean exploration?"),
    ("[policies.ndc-sem.at.spread]", "[policies.ndc-sem.at.spreat]", None, "delay = 'spreat': .*did you mean spread?"),
    ('label = "NDC-SEM"', "label = 5", None, "label = 5: must be text"),
    ('label = "NDC-SEM"', "graph = {forbidden = [[true]]}", 29, "ndc-sem in fresh at delay 5: shape of forbidden"),
    ('kind = "delayed-oracle"', 'kind = "orcale"', None, "kind = 'orcale': .*; did you mean oracle?"),
    ('worlds = ["fresh"]', 'worlds = ["frsh"]', None, "worlds = 'frsh': must be one of .*; did you mean fresh?"),
    ('worlds = ["fresh"]', "worlds = []", None, "worlds = []: must be a list of names"),
    ('worlds = ["fresh"]', 'world = ["fresh"]', None, "unknown key world in [studies.0]: .*; did you mean worlds?"),
    ('policies = ["ndc-sem"]', 'policies = ["ndcsem"]', None, "policies = 'ndcsem': .*; did you mean ndc-sem?"),
    ('delays = ["5"]', "delays = [5]", None, "delays = 5: must be one of 5, spread"),
    ("[worlds.fresh]", "[worlds]\nfresh = 5\n[worlds.other]", 9, "worlds.fresh = 5: must be a table, [worlds.fresh]"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), BAD, ids=[f"{b[0]} -> {b[1]}"[:60] for b in BAD])
def test_a_bad_file_is_refused_with_its_line_and_a_suggestion(old, new, line, message):
    assert TEXT.count(old) >= 1
    bad = TEXT.replace(old, new, 1)
    with pytest.raises(ExperimentError) as caught:
        parse_experiment(bad, "bad.toml")
    pattern = re.escape(message).replace(r"\.\*", ".*")
    found = re.match(r"bad\.toml:(\d+): " + pattern, str(caught.value))
    assert found, str(caught.value)
    assert int(found[1]) == (line or numbered(old)), str(caught.value)


@pytest.mark.parametrize("group", ["worlds", "delays", "policies"])
def test_empty_groups_are_refused(group):
    first, last = TEXT.index(f"[{group}."), {"worlds": "[delays", "delays": "[policies", "policies": "[[studies"}[group]
    with pytest.raises(ExperimentError, match=f"no {group}: must have at least one table"):
        parse_experiment(TEXT[:first] + TEXT[TEXT.index(last) :])


def test_files_and_names(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    assert load_experiment(path).name == load_experiment(str(path)).name == "small"
    with pytest.raises(ExperimentError, match=r"'syntetic': must be a TOML file, or one of .*did you mean synthetic\?"):
        load_experiment("syntetic")
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        load_experiment(tmp_path / "none.toml")
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ExperimentError, match="UTF-8"):
        load_experiment(path)


def test_changed():
    experiment = small()
    fewer = experiment.changed(replications=2, seed=8, worlds=["fresh"], policies=["cts"])
    assert fewer.changes == {"replications": 2, "seed": 8, "worlds": ["fresh"], "policies": ["cts"]}
    assert set(fewer.combinations()) == {("fresh", "5", "cts"), ("fresh", "spread", "cts")}
    assert set(experiment.changed(replications=1).combinations().values()) == {1}
    assert {f.name for f in fields(experiment)} >= set(fewer.changes)
    narrower = experiment.changed(worlds=["fresh"]).changed(worlds=["fresh", "picture"])
    assert narrower.changes == {"worlds": ["fresh"]}
    wrong: Any
    for wrong in ({"replications": 0}, {"worlds": ["nowhere"]}, {"policies": []}, {"record": 0}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            experiment.changed(**wrong)
    with pytest.raises(ValueError, match="some study uses"):
        experiment.changed(worlds=["picture"], policies=["cts"])


def test_a_graph_at_one_delay_keeps_what_it_does_not_change():
    given = "graph = {sparsity = 0.1, signed = true}\nat.5.graph = {sparsity = 0.2}\n[policies.cts]"
    text = TEXT.replace("[policies.cts]", f'[policies.mine]\nkind = "sem-ucb"\n{given}', 1)
    entry = parse_experiment(text).policies["mine"]
    assert (entry.policy("5").graph.sparsity, entry.policy("5").graph.signed) == (0.2, True)
    assert entry.policy("spread").graph.sparsity == 0.1


SIZED = """
name = "sized"
replications = {replications}
block = 100
[worlds.w]
kind = "synthetic"
n_arms = {arms}
budget = 1
horizon = {horizon}
changes = []
edge_density = 0.0
[delays.d]
kind = "constant"
rounds = 5
[policies.random]
"""
GRID = SIZED.replace("block = 100\n", "").replace("[policies.random]", "[policies.ndc-sem]")
LONG = 2 * HALF * WORTH_A_TRIAL  # rounds that are worth a trial
WORLD = sp.SyntheticSEM(n_arms=4, budget=1, horizon=LONG, changes=(), edge_density=0.0)
RANDOM = sp.Uniform()


def text_of(replications=250, arms=4, horizon=1000) -> str:
    return SIZED.format(replications=replications, arms=arms, horizon=horizon)


def grid_of(values: str) -> str:
    return GRID.format(replications=20, arms=4, horizon=100) + f"[grid]\ndiscount = {values}\n"


def task(policy=RANDOM, environment=WORLD, replications=3) -> CellTask:
    return CellTask(environment, sp.ConstantDelay(5), policy, 1, 50, 0, replications)


# --- size ---------------------------------------------------------------------------------------------------------


def test_the_size_counts_cells_and_rounds() -> None:
    size = parse_experiment(text_of()).size
    assert size == (3, 3000, 250_000)
    assert plan("sized", size, False) == "sized: 3 cells, 250,000 rounds of learners"
    assert parse_experiment(text_of()).changed(replications=10).size.cells == 1
    search = parse_search(grid_of("{ from = 0.5, to = 0.9, points = 60 }")).size
    assert (search.cells, search.learner_rounds) == (3, 60 * 20 * 100)  # blocks of 25 cells and 20 replications


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"arms": 2_000_000}, r"sized.toml:\d+: n_arms = 2,000,000: must be at most 1,000,000"),
        ({"horizon": 10**12}, r"sized.toml:\d+: horizon = 1,000,000,000,000: must be at most 2,000,000,000"),
    ],
)
def test_a_world_that_is_too_large_is_not_drawn(given, words) -> None:
    with pytest.raises(ExperimentError, match=words):
        parse_experiment(text_of(**given), "sized.toml")


@pytest.mark.parametrize("points", [400, 1_000_000])
def test_a_grid_that_is_too_large_is_not_laid_out(points) -> None:
    values = f"{{ from = 0.1, to = 0.9, points = {points} }}"
    with pytest.raises(ExperimentError, match=r"must be (at most|a whole number from 2 to) 100"):
        parse_search(grid_of(values) + f"exploration = {values}\n")


@pytest.mark.parametrize("replications", [10**9, 2**62])
def test_the_command_refuses_unless_told_otherwise(replications, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sized.toml").write_text(text_of(replications))
    refused(call("run", "sized.toml"), "sized:", "cells: must be at most 100,000", "--any-size")
    assert not (tmp_path / "results").exists()
    monkeypatch.setattr("spillover.experiments.experiment.MOST_CELLS", 1)
    usual = ["run", "sized.toml", "--replications", 101, "--engine", "serial", "--no-report"]
    refused(call(*usual), "sized: 2 cells: must be at most 1 (--any-size")
    assert call(*usual, "--any-size", "--quiet").exit_code == 0


# --- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "share"), [(1, 1.0), (2, 0.5), (64, 1 / 3)])  # no more than there are cells
def test_the_time_is_that_of_all_rounds_divided_among_the_workers(workers, share) -> None:
    tasks = [task(), task(), task(sp.NDCSEM())]
    found = expected_seconds(tasks, workers, lambda one: 0.001 if one.policy is RANDOM else 0.01)
    assert found == pytest.approx(LONG * 0.012 * share)


@pytest.mark.parametrize("policy", [RANDOM, sp.NDCSEM(), sp.policies.CTS()])
@pytest.mark.parametrize("horizon", [1, HALF, 5 * HALF])
def test_a_trial_in_any_world(policy, horizon) -> None:
    assert 0.0 < seconds_of_round(task(policy, replace(WORLD, horizon=horizon), replications=2)) < float("inf")


def test_runs_and_searches_tell_what_they_will_compute(tmp_path) -> None:
    begun: list[CellTask | BlockTask] = []
    experiment = parse_experiment(text_of(replications=3, horizon=20))
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)  # nothing is missing
    run_search(parse_search(grid_of("[0.5, 0.9]")), begin=begun.extend)
    assert [each.count for each in begun] == [3, 20]


def test_the_command_line_tells_the_time(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sized.toml").write_text(text_of(replications=2, horizon=LONG))
    result = call("run", "sized.toml", "--engine", "serial", "--no-report")
    lines = result.stderr.splitlines()
    assert len(lines) == 2, result.stderr
    assert lines[0].startswith("spillover: plan: sized: 1 cell, ")
    assert re.fullmatch(r"spillover: time: about \d+ (s|min|h|days), from a short trial", lines[1])


@pytest.mark.parametrize("name", ["run", "tune"])
def test_what_takes_more_than_ten_minutes_must_be_confirmed(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = text_of(replications=2, horizon=20) if name == "run" else grid_of("[0.5, 0.9]")
    (tmp_path / "sized.toml").write_text(text)
    asked = [name, "sized.toml", "--engine", "serial", *(["--no-report"] if name == "run" else [])]
    seconds = [601.0]
    monkeypatch.setattr("spillover.cli.runs.expected_seconds", lambda tasks, workers: seconds[0])
    result = call(*asked)
    assert result.exit_code == 2
    last = "spillover: time = 10 min: must be confirmed where it is more than 10 min: add --yes"
    assert result.stderr.splitlines()[-1] == last
    assert call(*asked, "--yes").exit_code == 0
    monkeypatch.setattr("spillover.cli.runs.can_ask", lambda: True)
    for answer, code in (("n\n", 2), ("y\n", 0)):
        result = CliRunner().invoke(main, [*asked, "--output", answer.strip()], input=answer, prog_name="spillover")
        assert result.exit_code == code, result.output
        assert "Run it? [y/N]" in result.stderr
    assert "not run: nothing was computed" not in result.stderr
    monkeypatch.setattr("spillover.cli.runs.can_ask", lambda: False)
    seconds[0] = 599.0
    assert call(*asked, "--output", "short").exit_code == 0


def test_times_in_words() -> None:
    assert [time_in_words(s) for s in (0.0, 89, 91, 5399, 5401, 86400 * 1.49, 86400 * 10)] == [
        *("1 s", "89 s", "2 min", "90 min", "2 h", "36 h", "10 days"),
    ]
