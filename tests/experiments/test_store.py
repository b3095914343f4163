"""None"""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.experiments import compute, parse_experiment
from spillover.experiments.compute import PACKAGE, CellTask, computing_files, describe, digest, own_file, source_digest
from spillover.experiments.experiment import Cell
from spillover.experiments.store import FORMAT, CellStore, Damaged, seal, unseal
from tests.experiments.small import TEXT, small

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([np.nan, np.inf]), "c": np.arange(3)}
NOBODY = 65534  # a user without privileges


@pytest.fixture
def store(tmp_path):
    opened = CellStore(tmp_path / "deep" / "store")
    opened.open({"name": "x"}, "text")
    return opened


def test_what_is_written_is_read_back(store):
    store.write("id", ARRAYS, {"seconds": 1.5})
    arrays, about = store.read("id")
    assert about == {"cell": "id", "seconds": 1.5}
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    with np.load(store.path("id"), allow_pickle=False) as archive:  # by anybody's NumPy
        np.testing.assert_array_equal(archive["a"], ARRAYS["a"])
    assert (store.folder / "experiment.toml").read_text() == "text"
    assert os.stat(store.path("id")).st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_cut_anywhere_is_noticed(tmp_path):
    content = seal(ARRAYS, {"cell": "id"})
    for length in range(len(content)):
        with pytest.raises(Damaged, match="is damaged"):
            unseal(content[:length], tmp_path)
    for more in (b"x", bytes(1000), content):
        with pytest.raises(Damaged, match="is damaged"):
            unseal(content + more[:-1] + b"?", tmp_path)


def test_a_changed_byte_anywhere_is_noticed(tmp_path):
    content = seal(ARRAYS, {"cell": "id"})
    for place in range(len(content)):
        bad = bytearray(content)
        bad[place] ^= 1 << (place % 8)
        with pytest.raises(Damaged, match="is damaged"):
            unseal(bytes(bad), tmp_path)


def test_the_file_of_another_cell_is_noticed(store):
    store.write("one", ARRAYS, {})
    os.rename(store.path("one"), store.path("two"))
    with pytest.raises(Damaged, match="file of another cell, one"):
        store.read("two")
    with pytest.raises(FileNotFoundError):
        store.read("one")


def test_no_pickle(store):
    with pytest.raises(ValueError, match="pickle"):
        store.write("id", {"a": np.array([object()])}, {})
    assert list(store.cells.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": FORMAT + 1}, "this version of spillover reads formats up to 1; use a newer version"),
        ({"format": 0}, "format = 0: must be a whole number"),
        ({"format": "1"}, "format = '1': must be a whole number"),
        ({}, "format = None"),
        ([], "format = None"),
        (None, "must be a complete JSON file"),
    ],
)
def test_a_store_of_a_newer_version_or_none_at_all(store, content, message):
    path = store.folder / "store.json"
    before = "{" if content is None else json.dumps(content)
    path.write_text(before)
    for use in (store.about, lambda: store.open({"name": "x"}, "")):
        with pytest.raises(ValueError, match=message) as caught:
            use()
        assert str(path) in str(caught.value)
    assert path.read_text() == before


def test_cells_without_a_store(store):
    store.write("id", ARRAYS, {})
    (store.folder / "store.json").unlink()
    with pytest.raises(ValueError, match=r"has cells but no store\.json"):
        store.open({"name": "x"}, "")


def test_reading_writes_nothing(tmp_path):
    reader = CellStore(tmp_path / "none")
    assert reader.about() is None
    assert not reader.has("id")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        CellStore(tmp_path / "file").open({"name": "x"}, "")


@contextmanager
def without_privileges():
    """Nothing is forbidden to root, so root is somebody else for a moment."""
    user = os.geteuid()
    if user == 0:
        try:
            os.seteuid(NOBODY)
        except OSError:
            pytest.skip("root may not change its user id here: run the tests as an ordinary user")
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.skipif(os.name == "nt", reason="permissions of folders: POSIX")
def test_a_folder_that_may_not_be_written():
    with TemporaryDirectory() as folder:  # tmp_path is below a folder that only its owner may enter
        Path(folder).chmod(0o555)
        with without_privileges(), pytest.raises(PermissionError, match="store"):
            CellStore(Path(folder) / "store").open({"name": "x"}, "")
        assert list(Path(folder).iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_full_disk_leaves_nothing_half_written(store, monkeypatch, call):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    store.write("old", ARRAYS, {})
    before = store.path("old").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        for cell in ("old", "new"):
            with pytest.raises(OSError, match=f"No space left on device.*{cell}"):
                store.write(cell, {"a": np.zeros(3)}, {})
    assert store.path("old").read_bytes() == before
    assert [path.name for path in store.cells.iterdir()] == ["old.npz"]


def test_a_claim_is_one_process_s_and_dies_with_it(store):
    other = CellStore(store.folder)
    assert store.claim("a")
    assert not other.claim("a")  # another handle is as good as another process
    assert not store.claim("a")
    store.release("a")
    assert list(store.claims.iterdir()) == []
    assert other.claim("a")
    other.release("a")

    take = "from spillover.experiments.store import CellStore"
    take += f"; store = CellStore({str(store.folder)!r}); print(store.claim('a'), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", take + "; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as p:
        assert p.stdout is not None
        assert p.stdout.readline() == b"True\n"
        assert not store.claim("a")
        p.kill()
    assert store.claim("a")
    store.release("a")
    store.release("a")  # once more does no harm


def test_a_claim_on_a_file_that_its_owner_removes_meanwhile(store, monkeypatch):
    """Between open and flock the owner finishes: the lock would be on a file that nobody else sees."""
    fcntl = pytest.importorskip("fcntl")
    whole, times = fcntl.flock, []

    def slow(handle, operation):
        times.append(1)
        if len(times) == 1:
            (store.claims / "a").unlink()
        return whole(handle, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    assert store.claim("a")
    assert len(times) == 2
    assert not CellStore(store.folder).claim("a")
    store.release("a")


def test_without_locks_the_work_may_be_done_twice(store, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def none(*_args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    assert store.claim("a")
    store.release("a")
    assert store.held == {}


def test_what_a_killed_process_left_is_swept(store):
    for cell in ("dead", "alive"):
        (store.cells / f".{cell}.npz.123-abcd").write_bytes(b"half")
    other = CellStore(store.folder)
    assert other.claim("alive")
    store.open({"name": "x"}, "text")
    assert [path.name for path in store.cells.iterdir()] == [".alive.npz.123-abcd"]
    other.release("a")


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
    path = min([*package.glob(f"{folder}.py"), *(package / folder).rglob("*.py")])
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
