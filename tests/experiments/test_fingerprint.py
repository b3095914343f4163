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
from spillover.experiments import parse_experiment
from spillover.experiments.compute import CellTask, compute
from spillover.experiments.fingerprint import classes_in, describe, digest, source_digest, source_files
from spillover.experiments.import_graph import ROOT, reachable, with_neighbours
from spillover.experiments.specification import Cell
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
    monkeypatch.setattr("spillover.experiments.specification.source_digest", lambda task: "another")
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


def files(task, root=ROOT):
    """Names of the source files that a task's id depends on."""
    classes = {base for found in classes_in(task) for base in found.__mro__}
    return source_files(classes, root=root)


def test_the_source_is_what_computes():
    found = set(files(TASK))
    assert {
        "simulation/replications.py",
        "policies/ndcsem.py",
        "environments/world.py",
        "delays.py",
        "mailbox.py",
    } <= found
    assert {"graph/sparse.py", "rng.py", "experiments/compute.py"} <= found
    assert any(name.startswith("kernels") for name in found)
    for apart in ("__init__.py", "live.py", "policies/__init__.py", "policies/cts.py", "environments/fixed.py"):
        assert apart not in found
    for apart in ("cli/", "history/", "reasons/", "report/", "store/", "studies/", "testing/", "theory/"):
        assert not any(name.startswith(apart) for name in found)
    assert len(source_digest(TASK)) == 64


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package that may be edited."""
    folder = tmp_path_factory.mktemp("copy") / "spillover"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def hashed(task, root):
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files(task, root).items()}


def files_below(root, *names):
    """The files of modules or folders, whichever they are."""
    for name in names:
        whole = root / name
        yield from sorted(whole.rglob("*.py")) if whole.is_dir() else [whole.with_suffix(".py")]


def test_rewording_a_sentence_computes_nothing_anew(package):
    before = hashed(TASK, package)
    for path in files_below(package, "cli", "report", "reasons", "history", "studies", "testing", "theory", "live"):
        path.write_text(path.read_text().replace("the", "that") + "\n# another sentence\n")
    assert hashed(TASK, package) == before


@pytest.mark.parametrize(
    "name",
    [
        "kernels", "simulation", "mailbox", "delays", "rng", "types", "validate", "contracts", "hyperparameters",
        "set_search/search", "graph", "policies/ndcsem", "policies/graph_policy", "environments/synthetic",
        "environments/world", "experiments/compute",
    ],
)  # fmt: skip
def test_a_changed_line_of_what_computes_is_another_cell(name, package):
    for path in files_below(package, name):
        before, text = hashed(TASK, package), path.read_text()
        path.write_text(text + "\nCHANGED = 1\n")
        assert hashed(TASK, package) != before, path
        path.write_text(text)
        assert hashed(TASK, package) == before


def test_another_policy_may_change(package):
    before = hashed(TASK, package)
    for name in ("policies/cts", "policies/ftrl", "environments/fixed"):
        for path in files_below(package, name):
            path.write_text(path.read_text() + "\nCHANGED = 1\n")
    assert hashed(TASK, package) == before
    assert "policies/cts.py" in files(replace(TASK, policy=sp.policies.CTS()))
    assert "environments/fixed.py" in files(replace(TASK, environment=sp.environments.example_graph()))


def test_a_folder_that_loads_its_files_by_name_counts_as_a_whole(tmp_path):
    root = tmp_path / "spillover"
    (root / "kernels").mkdir(parents=True)
    for name, text in {
        "start.py": "def f():\n    from spillover.kernels.graph import step\n",
        "kernels/__init__.py": "",
        "kernels/graph.py": "",
        "kernels/drawing.py": "",
        "apart.py": "",
    }.items():
        (root / name).write_text(text)
    found = {path.relative_to(root).as_posix() for path in reachable(["spillover.start"], root)}
    assert found == {"start.py", "kernels/__init__.py", "kernels/graph.py", "kernels/drawing.py"}


def test_what_only_the_type_checker_imports_does_not_count(tmp_path):
    root = tmp_path / "spillover"
    root.mkdir()
    text = "if TYPE_CHECKING:\n    import spillover.a\nelse:\n    import spillover.b\nfrom spillover import c, Name\n"
    (root / "start.py").write_text(text)
    for name in "abc":
        (root / f"{name}.py").write_text("")
    assert {path.name for path in reachable(["spillover.start"], root)} == {"start.py", "b.py", "c.py"}


def test_a_policy_of_ones_own_counts_with_what_it_builds_on():
    found = files(replace(TASK, policy=Own()))
    assert found[__name__] == Path(__file__)
    assert {"policies/cts.py", "experiments/compute.py"} <= set(found)


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
    [{"delay": OwnDelay(3)}, {"policy": sp.NDCSEM(graph=OwnGraph())}, {"environment": OwnEnvironment()}],
    ids=["delay", "graph", "environment"],
)
def test_any_part_of_ones_own_counts(part):
    assert __name__ not in files(TASK)
    assert files(replace(TASK, **part))[__name__] == Path(__file__)


def written(folder, texts):
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_what_a_module_of_ones_own_imports_from_its_folder_counts(tmp_path):
    written(
        tmp_path,
        {
            "mine.py": "import helper, numpy\nfrom tools.deep import f\n",
            "helper.py": "def f():\n    import later\n",
            "later.py": "import mine\n",
            "tools/__init__.py": "",
            "tools/deep.py": "",
            "apart.py": "",
        },
    )
    found = with_neighbours("mine", tmp_path / "mine.py")
    assert set(found) == {"mine", "helper", "later", "tools.deep"}
    assert found["tools.deep"] == tmp_path / "tools" / "deep.py"


def test_what_a_package_of_ones_own_imports_from_itself_counts(tmp_path):
    written(
        tmp_path / "pack",
        {
            "__init__.py": "from pack.policies import mine\n",
            "policies/__init__.py": "",
            "policies/mine.py": "from . import near\nfrom .closer import f\nfrom ..above import g\nimport pack.other\n",
            "policies/near.py": "",
            "policies/closer.py": "",
            "above.py": "",
            "other.py": "",
            "apart.py": "",
        },
    )
    found = with_neighbours("pack.policies.mine", tmp_path / "pack" / "policies" / "mine.py")
    expected = ["policies", "policies.mine", "policies.near", "policies.closer", "above", "other"]
    assert set(found) == {f"pack.{name}" for name in expected}
    whole = with_neighbours("pack", tmp_path / "pack" / "__init__.py")
    assert set(whole) == {*found, "pack"}


def make(kind):
    try:
        return kind()
    except TypeError:
        return None  # it cannot do without parameters


@pytest.mark.parametrize("name", [name for name, kind in sp.policies.POLICIES.items() if make(kind) is not None])
def test_every_function_that_is_called_is_hashed(name):
    """Whatever imports there are: what runs while a cell is computed is in a file that its id depends on."""
    world = sp.SyntheticSEM(n_arms=4, budget=2, horizon=12, changes=(6,))
    task = CellTask(world, sp.LossyDelay(sp.GeometricDelay(2), 0.2), make(sp.policies.POLICIES[name]), 0, 5, 0, 2)
    called = set()

    def watch(frame, event, argument):
        if event == "call":
            called.add(Path(frame.f_code.co_filename))

    previous = sys.getprofile()
    sys.setprofile(watch)
    try:
        compute(task)
    finally:
        sys.setprofile(previous)
    inside = {path.relative_to(ROOT).as_posix() for path in called if path.is_relative_to(ROOT)}
    assert "simulation/replications.py" in inside
    assert inside <= set(files(task))
