"""Exit codes, one-line errors, help with examples that run."""

import shlex

import click
import pytest

from spillover import __version__
from spillover.cli import main, runs
from spillover.studies import load_search
from tests.cli.calls import call, refused
from tests.cli.conftest import small_search


def commands(group: click.Group = main, path: tuple[str, ...] = ()):
    for name, found in group.commands.items():
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        else:
            yield (*path, name), found


def examples():
    for path, found in [((), main), *commands()]:
        for line in found.examples:
            words = shlex.split(line, comments=True)
            if words[0] == "spillover":  # the others are lines for a shell's own file
                yield pytest.param(path, words[1:], id=" ".join(words))


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


@pytest.mark.parametrize(("path", "words"), list(examples()))
def test_every_example_runs(path, words, here, page, small_experiments, monkeypatch) -> None:
    """As it is printed; the paper's worlds are made small. Clusters and services are not at hand (test_stream.py)."""
    if "--address" in words or words[0] in ("serve", "stream", "audit", "export", "import", "token"):
        parse(words)
        return
    search = load_search
    monkeypatch.setattr(runs, "load_search", lambda name, **extra: small_search(search(name, **extra)))
    if path == ("report",):
        assert call("reproduce", "--engine", "serial", "--no-report").exit_code == 0
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
