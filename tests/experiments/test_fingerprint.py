import ast
from copy import copy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.experiments import canonical, parse_experiment
from spillover.experiments.fingerprint import describe, digest, source_digest, sources
from spillover.experiments.compute import Task
from spillover.experiments.specification import Cell
from tests.experiments.small import TEXT, small

TASK = Task(sp.SyntheticSEM(), sp.UniformDelay(1, 9), sp.NDCSEM(), 0, 50, 0, 10)


def cell_of(task):
    return Cell(world="w", delay="d", policy="p", first=task.first, count=task.count, task=task)


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    rounds: tuple[int, ...] = (3, 1)


@dataclass(frozen=True)
class Outer:
    of: Inner = Inner()
    name: str = "é"
    mask: object = None


def test_descriptions_are_stable():
    # these hashes are what makes old results findable: they may change only with the meaning of a description
    outer = describe(Outer())
    assert outer == {
        "class": "Outer",
        "of": {"class": "Inner", "rate": 0.5, "rounds": [3, 1]},
        "name": "é",
        "mask": None,
    }
    assert digest(outer) == "de35e3e58e697dfc78658c34b1e2c581b411a0229095f093f79f7de0bd4a5e6b"
    assert digest(dict(reversed(outer.items()))) == digest(outer)
    assert describe(TASK)["environment"]["changes"] == [1000, 2500, 4000]
    assert cell_of(TASK).id == cell_of(TASK).id


def changed_field(name, value):
    values: dict[str, Any] = {name: value}
    return replace(TASK, **values)


def test_ids_are_sensitive_to_every_field():
    tasks: list[Any] = [TASK]
    for name in ("seed", "record", "first", "count"):
        tasks.append(changed_field(name, getattr(TASK, name) + 1))
    for part in ("environment", "delay", "policy"):
        held = getattr(TASK, part)
        for parameter in fields(held):
            changed = copy(held)
            object.__setattr__(changed, parameter.name, "another")  # not every world and policy can be constructed
            tasks.append(changed_field(part, changed))
    tasks.append(replace(TASK, policy=sp.SEMUCB()))
    tasks.append(replace(TASK, delay=sp.ConstantDelay(5)))
    tasks.append(replace(TASK, environment=sp.Instance(seed=0)))
    tasks.append(replace(TASK, environment=sp.Instance(seed=1)))
    tasks.append(replace(TASK, policy=sp.CUCB()))
    tasks.append(replace(TASK, policy=sp.CUCB(told_graph=True)))
    assert len({cell_of(task).id for task in tasks}) == len(tasks)


def test_ids_are_sensitive_to_the_source(monkeypatch):
    before = cell_of(TASK).id
    monkeypatch.setattr("spillover.experiments.specification.source_digest", lambda: "another")
    assert cell_of(TASK).id != before


def test_names_and_spelling_do_not_matter():
    ids = [cell.id for cell in small().cells()]
    text = TEXT.replace("cts]", "other]\nkind='cts'\nlabel='x'").replace("1e-3", "0.001").replace('"fresh"', '"new"')
    text = text.replace("worlds.fresh", "worlds.new").replace("A small", "Another")
    assert [cell.id for cell in parse_experiment(text).cells()] == ids
    default = TEXT.replace('label = "NDC-SEM"', "discount = 0.985")
    assert [cell.id for cell in parse_experiment(default).cells()] == ids
    assert describe(1.0) == describe(np.float64(1)) == 1


def test_what_cannot_be_described_is_refused():
    with pytest.raises(TypeError, match="must be a number, text"):
        describe(object())
    assert describe(float("nan")) == "nan"
    assert describe({"a": np.array([1.5, np.inf])}) == {"a": [1.5, "inf"]}


def test_the_source_is_what_computes():
    root = Path(canonical.__file__).parents[1]
    found = {path.relative_to(root).as_posix() for path in sources(root)}
    assert {"kernels.py", "simulation.py", "policies/ndcsem.py", "environments/world.py", "rng.py"} <= found
    assert {name for name in found if name.startswith("experiments/")} == {"experiments/compute.py"}
    for apart in ("report", "cli", "testing", "live", "theory", "store", "reproduce"):
        assert not any(name.startswith(apart) for name in found)
    assert len(source_digest()) == 64


def test_a_simulation_imports_nothing_that_is_not_in_the_hash():
    """All modules that compute.py reaches, through whatever imports, are hashed."""
    root = Path(canonical.__file__).parents[1]
    hashed = set(sources(root))
    seen, todo = {root / "__init__.py"}, [root / "experiments/compute.py"]  # the package itself imports all there is
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (module := node.module or "").startswith("spillover"):
                base = root.joinpath(*module.split(".")[1:])
                names = [base / f"{alias.name}.py" for alias in node.names]
                todo += [p for p in (base.with_suffix(".py"), base / "__init__.py", *names) if p.is_file()]
    assert seen - {root / "__init__.py"} <= hashed
