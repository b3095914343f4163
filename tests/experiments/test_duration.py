"""How long an experiment will take: the arithmetic with given times of a round, and what is not worth a trial."""

import itertools
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

import spillover as sp
from spillover.cli import main
from spillover.experiments import parse_experiment
from spillover.experiments.duration import (
    HALF,
    MOST_TRIALS,
    WORTH_A_TRIAL,
    Load,
    expected_seconds,
    seconds_of_round,
    time_in_words,
    timed,
)
from spillover.experiments.grids import parse_search
from spillover.experiments.run import run_experiment
from spillover.experiments.tune import run_search
from tests.cli.calls import call
from tests.experiments.test_size import grid_of, text_of

LONG = 2 * HALF * WORTH_A_TRIAL  # rounds that are worth a trial
WORLD = sp.SyntheticSEM(n_arms=4, budget=1, horizon=LONG, changes=(), edge_density=0.0)
RANDOM = sp.Uniform()


def load(policy=RANDOM, environment=WORLD, replications=3) -> Load:
    return Load(environment, policy, 1, replications, compiled=True)


def by_policy(load: Load) -> float:
    return 0.001 if load.policy is RANDOM else 0.01


def test_the_time_is_that_of_all_rounds_divided_among_the_workers() -> None:
    loads = [load(), load(), load(sp.NDCSEM())]
    assert expected_seconds(loads, 1, by_policy) == pytest.approx(LONG * 0.012)
    assert expected_seconds(loads, 2, by_policy) == pytest.approx(LONG * 0.006)
    assert expected_seconds(loads, 64, by_policy) == pytest.approx(LONG * 0.004)  # no more than there are cells


def test_each_kind_is_tried_once_and_what_is_short_is_like_the_others() -> None:
    tried = []

    def seconds_of(load: Load) -> float:
        tried.append(load)
        return 0.001

    short = load(environment=replace(WORLD, n_arms=5, horizon=LONG // 2))
    assert expected_seconds([load(), load(), short], 1, seconds_of) == pytest.approx(LONG * 0.0025)
    assert tried == [load()]
    assert expected_seconds([short], 1, seconds_of) is None
    assert len(tried) == 1
    many = [load(replications=k) for k in range(1, 2 * MOST_TRIALS + 1)]
    expected_seconds(many, 1, seconds_of)
    assert [each.replications for each in tried[1:]] == list(range(2 * MOST_TRIALS, MOST_TRIALS, -1))  # the largest


def test_a_trial_has_two_halves() -> None:
    """The first one loads kernels."""
    endless = itertools.count(1)
    assert timed(1 for _ in endless) > 0.0
    assert next(endless) == 2 * (HALF - 1) + 1
    assert timed(iter([5])) > 0.0  # a world with fewer rounds


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("policy", [RANDOM, sp.NDCSEM()])
def test_a_trial(policy, compiled) -> None:
    """In any world: with as few rounds as one, too."""
    for horizon in (1, HALF, 5 * HALF):
        given = load(policy, replace(WORLD, horizon=horizon), replications=2)
        assert 0.0 < seconds_of_round(given._replace(compiled=compiled)) < float("inf")


def test_runs_and_searches_tell_what_they_will_compute(tmp_path) -> None:
    begun: list[Load] = []
    experiment = parse_experiment(text_of(replications=3, horizon=20))
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)
    assert [(each.replications, each.compiled) for each in begun] == [(3, True)]
    run_experiment(experiment, tmp_path / "a", progress=False, begin=begun.extend)  # nothing is missing
    assert len(begun) == 1
    run_search(parse_search(grid_of("[0.5, 0.9]")), begin=begun.extend)
    assert [(each.replications, each.compiled) for each in begun[1:]] == [(20, False)]


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
    monkeypatch.setattr("spillover.cli.runs.expected_seconds", lambda loads, workers: seconds[0])
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
