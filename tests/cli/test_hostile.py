"""Whatever is given: an answer, or a refusal with exit code 2 in lines that start with `spillover:`."""

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spillover.delays import BUILT_IN as DELAYS
from spillover.environments import BUILT_IN as WORLDS
from spillover.environments import SyntheticSEM
from spillover.policies import POLICIES
from tests.cli.calls import call
from tests.hostile import ODD_CELLS, VALUES, as_csv, as_parquet, experiments, faults, tables, typed_tables
from tests.properties import examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


def sound(*arguments: object):
    result = call(*arguments)
    assert not faults(result.exit_code, result.stdout, result.stderr), (arguments, result.stdout, result.stderr)
    return result


def checked(path: Path):
    """The answer of `check`, without what depends on the form of the file; None if it is refused."""
    result = sound("check", path, "--json")
    return json.loads(result.stdout) | {"file": ""} if result.exit_code == 0 else None


@examples(25)
@given(tables() | typed_tables())
def test_equal_content_gives_equal_answers(folder, table) -> None:
    text, typed = folder / "h.csv", folder / "h.parquet"
    text.write_bytes(as_csv(table))
    typed.write_bytes(as_parquet(table))
    assert checked(text) == checked(typed)


@examples(12)
@given(tables(), st.sampled_from([(), ("--explain",), ("--explore",), ("--minimise",)]))
def test_any_table_is_answered_or_refused(folder, table, options) -> None:
    path = folder / "n.csv"
    path.write_bytes(as_csv(table))
    sound("check", path)
    sound("next", path, "--budget", 1, *options)


@examples(15)
@given(experiments())
def test_any_experiment_runs_or_is_refused(folder, text) -> None:
    path = folder / "e.toml"
    path.write_text(text)
    sound("run", path, "--engine", "serial", "--no-report", "--output", folder / str(hash(text)))


@examples(20)
@given(
    st.sampled_from(["discount", "exploration", "graph.sparsity", "graph", "x", ""]),
    st.sampled_from(VALUES + ODD_CELLS),
)
@example("exploration", "1e308")
@example("discount", 3000 * "[")
def test_any_setting_is_taken_or_refused(folder, name, value) -> None:
    path = folder / "s.csv"
    path.write_text("round,arm,chosen,z,y\n1,a,1,0.5,0.5\n1,b,0,,0.1\n")
    sound("next", path, "--budget", 1, "--policy", "ndc-sem", "--set", f"{name}={value}")


@examples(20)
@given(st.sampled_from(VALUES), st.sampled_from(VALUES))
@example("1e-320", "1")
@example("1", "true")
def test_any_limit_is_taken_or_refused(folder, limit, cost) -> None:
    path, limits = folder / "l.csv", folder / "l.toml"
    path.write_text("round,arm,chosen,z,y\n1,a,1,0.5,0.5\n1,b,0,,0.1\n")
    limits.write_text(f'[[limits]]\nkind = "costs"\nlimit = {limit}\ncosts = {{ a = {cost}, b = 1 }}\n')
    sound("next", path, "--budget", 1, "--limits", limits)


@pytest.mark.skipif(os.name == "nt", reason="devices and named pipes: POSIX")
@pytest.mark.parametrize("command", [["run"], ["tune"], ["next"], ["check"], ["next", "sound.csv", "--limits"]])
def test_what_may_never_end_is_not_read(command, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sound.csv").write_text("round,arm,chosen,z,y\n1,a,1,0.5,0.5\n1,b,0,,0.1\n")
    os.mkfifo("pipe.toml")
    for endless in ("/dev/zero", "pipe.toml"):
        result = sound(*command, endless)
        assert result.exit_code == 2
        assert "must be a regular file" in result.stderr


# --- Every parameter of every world, delay and policy with values that nobody means: an experiment runs or is refus


ODD = [
    "[1]", "[0.1, 0.2]", "[[1]]", "[]", '["a"]', "{a=1}", '"x"', '""', "true", "nan", "inf", "0", "-1", "2", "0.5",
    "1e308", "-1e308", "1e100", "1e-320", "1000000000000", "2026-01-01",
]  # fmt: skip
SMALL = {"n_arms": "3", "budget": "1", "horizon": "12", "changes": "[]"}
NEEDED = {
    "fixed": {"adjacency": "[[0.0, 0.5], [0.0, 0.0]]", "means": "[0.5, 0.4]", "budget": "1", "horizon": "12"},
    "constant": {"rounds": "2"},
    "uniform": {"low": "0", "high": "3"},
    "geometric": {"mean": "2"},
    "pareto": {"scale": "2"},
    "bad-news": {"good": "1", "bad": "3"},
}


def table(name: str, kind: str, parameters: dict[str, str]) -> str:
    return "\n".join([f"[{name}]", f'kind = "{kind}"', *(f"{key} = {value}" for key, value in parameters.items()), ""])


def names_of(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []


def changes() -> Iterator[tuple[str, str, str, str]]:
    """Part of an experiment, kind, parameter and value."""
    for kind, world in WORLDS.items():
        for name in names_of(SyntheticSEM if kind == "instance" else world):
            yield from (("worlds.w", kind, name, value) for value in ODD)
    for kind, delay in DELAYS.items():
        for name in names_of(delay):
            yield from (("delays.d", kind, name, value) for value in ODD)
    for kind, policy in POLICIES.items():
        for name in names_of(policy):
            yield from (("policies.p", kind, name, value) for value in ODD)


def experiment(part: str, kind: str, name: str, value: str) -> str:
    tables = {
        "worlds.w": ("synthetic", SMALL),
        "delays.d": ("constant", NEEDED["constant"]),
        "policies.p": ("random", {}),
    }
    usual = SMALL if part == "worlds.w" else {}
    tables[part] = (kind, NEEDED.get(kind, usual) | {name: value})
    text = 'name = "odd"\nreplications = 2\nblock = 2\nrecord = 5\n'
    return text + "".join(table(place, *given) for place, given in tables.items())


CHANGES = list(changes())


@pytest.mark.parametrize(
    "chosen", [pytest.param(CHANGES[::97], id="some"), pytest.param(CHANGES, id="all", marks=pytest.mark.long)]
)
def test_any_value_of_any_parameter(chosen, tmp_path) -> None:
    path = tmp_path / "e.toml"
    for number, change in enumerate(chosen):
        path.write_text(experiment(*change))
        result = call("run", path, "--engine", "serial", "--no-report", "--output", tmp_path / str(number))
        assert not faults(result.exit_code, result.stdout, result.stderr), (change, result.stderr)
