"""Every parameter of every world, delay and policy with values that nobody means: an experiment runs or is refused."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from spillover.delays import BUILT_IN as DELAYS
from spillover.environments import BUILT_IN as WORLDS
from spillover.environments import SyntheticSEM
from spillover.policies import POLICIES
from tests.cli.calls import call
from tests.hostile import faults

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
