"""Exit codes, one-line errors, help with examples that run."""

import io
import json
import re
import shlex
from pathlib import Path

import click
import pytest

import spillover as sp
from spillover import __version__
from spillover.cli import main, output, runs
from spillover.experiments import parse_experiment
from spillover.experiments.parse import parse_search
from spillover.policies import POLICIES
from spillover.studies import load_search
from spillover.theory import world_constants
from tests.cli.calls import call, refused
from tests.cli.conftest import small_search


def commands(group: click.Group = main, path: tuple[str, ...] = ()):
    for name, found in group.commands.items():
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        else:
            yield (*path, name), found


def examples():
    """Each line once, also one that several pages of the help show."""
    shown = {
        tuple(shlex.split(line, comments=True)) for _, found in [((), main), *commands()] for line in found.examples
    }
    for program, *words in sorted(shown):
        if program == "spillover":  # the others are lines for a shell's own file
            all_studies = words[0] == "reproduce" and words[1].startswith("--")  # as test_runs.py does
            yield pytest.param(words, id=" ".join(words), marks=[pytest.mark.long] if all_studies else [])


def test_version() -> None:
    assert call("--version").stdout == f"spillover {__version__}\n"


def test_without_arguments_there_is_help() -> None:
    result = call()
    assert result.exit_code == 0
    assert result.stdout == call("--help").stdout
    for name in main.commands:
        assert f"\n  {name} " in result.stdout


GROUPS = [name for name, found in main.commands.items() if isinstance(found, click.Group)]


@pytest.mark.parametrize("name", GROUPS)
def test_a_bare_group_prints_its_help(name) -> None:
    bare, asked = call(name), call(name, "--help")
    assert (bare.exit_code, asked.exit_code) == (0, 0)
    assert (bare.stderr, asked.stderr) == ("", "")
    assert bare.stdout == asked.stdout
    assert bare.stdout.startswith(f"Usage: spillover {name} ")
    assert "Commands:\n" in bare.stdout


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_help_has_examples(path) -> None:
    result = call(*path, "--help")
    assert result.exit_code == 0
    assert "Examples:\n" in result.stdout
    assert f"spillover {' '.join(path)}" in result.stdout.partition("Examples:")[2]


def parse(words: list[str]) -> None:
    """Read the options of a command without running it."""
    command: click.Command = main
    while isinstance(command, click.Group):
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, list(words))


@pytest.mark.parametrize("words", list(examples()))
def test_every_example_runs(words, here, page, small_experiments, monkeypatch) -> None:
    """As it is printed; the paper's worlds are made small. Clusters and services are not at hand (test_stream.py)."""
    if "--address" in words or words[0] in ("serve", "stream", "audit", "export", "import", "token"):
        parse(words)
        return
    search = load_search
    monkeypatch.setattr(runs, "load_search", lambda name, **extra: small_search(search(name, **extra)))
    if words[0] == "report":
        assert call("reproduce", "synthetic", "--quick", "--engine", "serial", "--no-report").exit_code == 0
    if words[0] in ("next", "check", "evaluate") and "--example" not in words:
        assert call("next", "--example").exit_code == 0
        limits = '[[limits]]\nkind = "exclusive"\narms = ["radio", "video"]\n'
        (here / "limits.toml").write_text(limits)
    result = call(*words)
    assert result.exit_code == 0, result.output
    assert result.stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["reprduce"], ["command = 'reprduce'", "did you mean reproduce?", "spillover --help"]),
        (["xyz"], ["command = 'xyz': must be one of next, check, evaluate"]),
        (["stream", "crate"], ["command = 'crate'", "did you mean create?", "spillover stream --help"]),
        (["run"], ["Missing argument 'FILE'", "spillover run --help"]),
        (["run", "x.toml", "--engin", "serial"], ["No such option", "--engine"]),
        (["run", "x.toml", "--engine", "spark"], ["--engine", "'spark'", "serial", "loky", "dask", "ray"]),
        (["run", "x.toml", "--replications", "0"], ["--replications", "0 is not in the range x>=1"]),
        (["run", "x.toml", "--jobs", "0"], ["--jobs", "0 is not in the range x>=1"]),
        (["run", "x.toml", "--seed", "-1"], ["--seed", "-1 is not in the range x>=0"]),
        (["reproduce", "sinthetic"], ["'sinthetic'", "synthetic"]),
        (["reproduce", "--quick", "--replications", "3"], ["--quick", "--replications", "one of the two"]),
        (["completion", "cmd"], ["'cmd'", "bash", "zsh", "fish"]),
    ],
    ids=" ".join,
)
def test_bad_usage_is_one_line(arguments, parts) -> None:
    refused(call(*arguments), *parts)


def test_a_failure_is_one_line_with_its_traceback_on_demand(monkeypatch) -> None:
    def fail(name, **options):
        raise RuntimeError("the world ended")

    monkeypatch.setattr(runs, "experiment_study", fail)
    refused(call("run", "x.toml"), "the run failed: the world ended", "--traceback", code=1)
    whole = call("--traceback", "run", "x.toml")
    assert whole.exit_code == 1
    assert whole.stderr.startswith("Traceback")
    assert whole.stderr.splitlines()[-1] == "spillover: the run failed: the world ended"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyboardInterrupt("stopped: run the same again"), 130, "stopped: run the same again"),
        (ConnectionError("address = 'x': nobody answers"), 1, "address = 'x': nobody answers"),
        (PermissionError(13, "Permission denied", "there"), 2, "there: Permission denied"),
        (ModuleNotFoundError("engine = 'dask': needs what is not installed"), 2, "engine = 'dask': needs"),
        (BrokenPipeError(32, "Broken pipe"), 1, "Broken pipe"),  # a run's, not ours
        (MemoryError(), 2, "not enough memory"),
    ],
    ids=repr,
)
def test_exit_codes(error, code, message, monkeypatch) -> None:
    def fail(name, **options):
        raise error

    monkeypatch.setattr(runs, "experiment_study", fail)
    refused(call("run", "x.toml"), message, code=code)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell) -> None:
    result = call("completion", shell)
    assert result.exit_code == 0
    assert f"_SPILLOVER_COMPLETE={shell}_complete" in result.stdout


# --- Colour where a terminal has it ---------------------------------------------------------------------------------


ANSWER = "Next round: choose a.\n\n  a  1.0\nWarning: old data.\nNote: a note."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_the_user_decides(environment, wanted, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.has_colour(Terminal()) is wanted
    assert not output.has_colour(io.StringIO())


def test_colour_changes_no_word():
    painted = output.painted(ANSWER)
    assert click.unstyle(painted) == ANSWER
    assert [line.startswith("\x1b[") for line in painted.splitlines()] == [True, False, False, True, True]


def test_no_colour_in_a_pipe(capsys):
    output.print_answer(ANSWER)
    assert capsys.readouterr().out == ANSWER + "\n"


# --- policies and bound: what they print is what the classes and the theory say -------------------------------------


def test_every_policy_is_listed_with_its_class() -> None:
    text = call("policies").stdout
    for name, made in POLICIES.items():
        kind = getattr(made, "func", made)
        assert f"{name} ({kind.__name__}): {(kind.__doc__ or '').splitlines()[0]}\n" in text


def test_the_listing_as_json_has_parameters_that_make_the_policy() -> None:
    listed = json.loads(call("policies", "--json").stdout)
    assert [each["name"] for each in listed] == list(POLICIES)
    for each in listed:
        given = {p["name"]: p["default"] for p in each["parameters"]}
        assert type(POLICIES[each["name"]](**given)).__name__ == each["class"]
        assert each["description"]
        assert each["source"]
    told = next(each for each in listed if each["name"] == "cucb-known-graph")
    assert {k: told["parameters"][0][k] for k in ("name", "default")} == {"name": "knows_graph", "default": True}


def test_what_a_reference_point_is_told_is_no_parameter() -> None:
    assert json.loads(call("policies", "oracle", "--json").stdout)["parameters"] == []


def test_one_policy_in_full() -> None:
    text = call("policies", "ndc-sem").stdout
    assert "NDC-SEM (Algorithm 1)" in text
    assert "gamma, in (0, 1)" in text
    assert ">>>" not in text
    content = json.loads(call("policies", "ndc-sem", "--json").stdout)
    notes = {p["name"]: p["note"] for p in content["parameters"]}
    assert notes["exploration"].startswith("xi >= 0")
    assert notes["discount"].endswith("how often idle arms are tried again.")
    parts = {p["name"]: p for p in content["parts"]}
    assert parts["graph.sparsity"]["default"] == 1e-3
    assert parts["graph.required"]["note"] == parts["graph.forbidden"]["note"] != ""
    assert "graph.row_bound" in text


def test_a_misspelt_policy_is_corrected() -> None:
    refused(call("policies", "ndcsem"), "policy = 'ndcsem'", "did you mean ndc-sem?", "must be one of")


def test_the_bound_is_that_of_the_library() -> None:
    constants = world_constants(sp.SyntheticSEM().draw(sp.Rng(7)))
    expected = sp.theory.regret_bound(constants, discount=0.99, exploration=0.2, delay=200)
    arguments = ["bound", "--seed", 7, "--discount", 0.99, "--exploration", 0.2, "--delay", 200]
    assert call(*arguments).stdout == f"{expected}\n"
    content = json.loads(call(*arguments, "--json").stdout)
    assert content["corrected"] == expected.corrected
    assert content["constants"] == constants._asdict()
    assert (content["vacuous"], content["delay"]) == (True, 200)


def test_constants_that_are_given_replace_the_worlds() -> None:
    content = json.loads(call("bound", "--smallest-gap", 0.5, "--horizon", 100, "--changes", 0, "--json").stdout)
    assert (content["constants"]["horizon"], content["constants"]["smallest_gap"]) == (100, 0.5)
    assert content["change_term"] == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--exploration", "1e-10"], "exploration = 1e-10: must be a number above 1 / (2 (s + 1)) = 0.1"),
        (["--discount", "1"], "discount = 1.0: must be a number strictly between 0 and 1"),
        (["--delay", "-1"], "-1"),
        (["--delay", "soon"], "'soon' is not a valid integer"),
        (["--budget", "11"], "budget = 11"),
        (["--seed", "-1"], "seed = -1"),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(arguments, part) -> None:
    refused(call("bound", *arguments), part)


# --- What docs/command-line.md shows is what the command takes ------------------------------------------------------


TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
FILES = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("spillover")])
def test_every_line_is_understood(line) -> None:
    found: click.Command = main
    name, *words = shlex.split(line, comments=True)
    while isinstance(found, click.Group):
        name, *words = words
        found = found.commands[name]
    found.make_context(name, words)


def test_every_command_is_in_the_table() -> None:
    for name in main.commands:
        assert f"| `spillover {name}" in TEXT


def test_the_files_are_understood() -> None:
    study, grid = FILES
    assert parse_experiment(study).name == "my-study"
    assert len(parse_search(grid).cells) == 3 * 8
