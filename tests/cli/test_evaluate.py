"""`spillover evaluate` on the example: text, JSON, a figure, and errors in one line."""

import json

import pytest
from click.testing import CliRunner

from spillover.cli import main
from spillover.history.example import example_file


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history.csv").write_text(example_file())
    return lambda *words: CliRunner().invoke(main, ["evaluate", "history.csv", "--draws", "40", *words])


def test_the_answer_is_a_table_and_sentences(run, tmp_path):
    found = run("--always", "video,social", "--plot", "course.png")
    assert found.exit_code == 0, found.output
    assert "history.csv: 38 rounds with outcomes, 6 arms; they brought 39.9." in found.output
    assert "always video, social would have done better" in found.output
    assert (tmp_path / "course.png").stat().st_size > 5_000


def test_json_is_the_same_for_programs(run):
    found = json.loads(run("--always", "video,social", "--always", "radio", "--json").output)
    assert [answer["name"] for answer in found["answers"]] == ["always video, social", "always radio"]
    assert found["answers"][0]["verdict"] == "better"
    assert found["upper_bound"]["payoff"] >= found["best_fixed_set"]["payoff"] - 1e-9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "nonsense"), "policy = 'nonsense': must be one of"),
        (("--always", "video,vidio"), "always = 'vidio': must be one of the arms of the table"),
        (("--plot", "course.txt"), "plot = 'course.txt': must be a file that ends in"),
        (("--propensity", "p"), "propensity = 'p': "),
        (("--budget", "9"), "budget = 9: must be at most 6"),
        (("--draws", "2"), "draws = 2: must be"),
    ],
)
def test_bad_options_are_refused(run, words, message):
    found = run(*words)
    assert found.exit_code == 2
    assert message in str(found.exception) + found.output
