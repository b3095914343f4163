import hashlib
import shutil
import sys
from copy import copy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.experiments import compute, parse_experiment
from spillover.experiments.compute import PACKAGE, CellTask, computing_files, describe, digest, own_file, source_digest
from spillover.experiments.experiment import Cell
from tests.experiments.small import TEXT, small

TASK = CellTask(sp.SyntheticSEM(), sp.UniformDelay(1, 9), sp.NDCSEM(), 0, 50, 0, 10)


def cell_of(task):
    """The cell of an experiment of one task."""
    parameters, source = describe(task), source_digest(task)
    names = {"world": "w", "delay": "d", "policy": "p"}
    return Cell(**names, first=task.first, count=task.count, task=task, parameters=parameters, source=source)


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    rounds: tuple[int, ...] = (3, 1)


@dataclass(frozen=True)
class Outer:
    of: Inner = Inner()
    name: str = "é"
    mask: object = None


@dataclass(frozen=True)
class Own(sp.policies.CTS):
    """A policy that is not the package's."""


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
    tasks.append(replace(TASK, environment=sp.environments.Instance(seed=0)))
    tasks.append(replace(TASK, environment=sp.environments.Instance(seed=1)))
    tasks.append(replace(TASK, policy=sp.policies.CUCB()))
    tasks.append(replace(TASK, policy=sp.policies.CUCB(knows_graph=True)))
    assert len({cell_of(task).id for task in tasks}) == len(tasks)


def test_ids_are_sensitive_to_the_source(monkeypatch):
    before = {cell.id for cell in small().cells()}
    monkeypatch.setattr("spillover.experiments.experiment.source_digest", lambda task: "another")
    assert not before & {cell.id for cell in small().cells()}


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


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package that may be edited."""
    folder = tmp_path_factory.mktemp("copy") / "spillover"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def hashed(root):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in computing_files(root)}


@pytest.mark.parametrize(
    ("folder", "counts"),
    [("kernels", True), ("policies", True), ("simulation", True), ("experiments", True), ("report", False),
     ("views", False), ("figures", False), ("cli", False), ("service", False), ("http", False)],
)  # fmt: skip
def test_a_changed_line_is_another_cell_where_it_computes(folder, counts, package):
    path = next(iter(sorted((package / folder).rglob("*.py"))))
    before, text = hashed(package), path.read_text()
    path.write_text(text + "\n# another sentence\n")
    assert (hashed(package) != before) == counts
    path.write_text(text)
    assert hashed(package) == before


@dataclass(frozen=True)
class OwnDelay(sp.ConstantDelay):
    """A delay that is not the package's."""


@dataclass(frozen=True)
class OwnGraph(sp.SparseGraph):
    """A graph learner that is not the package's."""


@dataclass(frozen=True)
class OwnEnvironment(sp.SyntheticSEM):
    """An environment that is not the package's."""


@pytest.mark.parametrize(
    "part",
    [
        {"policy": Own()},
        {"delay": OwnDelay(3)},
        {"policy": sp.NDCSEM(graph=OwnGraph())},
        {"environment": OwnEnvironment()},
    ],
    ids=["policy", "delay", "graph", "environment"],
)
def test_the_file_of_a_part_of_ones_own_counts(part, monkeypatch):
    """Other contents of this file are another source, for tasks with a class of it."""
    usual = compute.file_digest
    tasks = (TASK, replace(TASK, **part))
    before = [source_digest(task) for task in tasks]
    assert len(set(before)) == 2
    monkeypatch.setattr(compute, "file_digest", lambda path: "changed" if path == Path(__file__) else usual(path))
    assert [source_digest(task) == was for task, was in zip(tasks, before, strict=True)] == [True, False]


def test_only_files_that_do_not_count_anyway_are_added():
    assert own_file(Own) == Path(__file__)
    assert own_file(sp.NDCSEM) is own_file(dict) is own_file(Path) is None


def make(kind):
    try:
        return kind()
    except TypeError:
        return None  # it cannot do without parameters


@pytest.mark.parametrize("name", [name for name, kind in sp.policies.POLICIES.items() if make(kind) is not None])
def test_every_function_that_is_called_is_hashed(name):
    """What runs while a cell is computed is in a file that its id depends on."""
    world = sp.SyntheticSEM(n_arms=4, budget=2, horizon=12, changes=(6,))
    task = CellTask(world, sp.LossyDelay(sp.GeometricDelay(2), 0.2), make(sp.policies.POLICIES[name]), 0, 5, 0, 2)
    called = set()

    def watch(frame, event, argument):
        if event == "call":
            called.add(Path(frame.f_code.co_filename))

    previous = sys.getprofile()
    sys.setprofile(watch)
    try:
        task.compute()
    finally:
        sys.setprofile(previous)
    inside = {path for path in called if path.is_relative_to(PACKAGE)}
    assert PACKAGE / "simulation" / "replications.py" in inside
    assert inside <= set(computing_files())
