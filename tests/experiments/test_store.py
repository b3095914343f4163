import errno
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from spillover.experiments.store import FORMAT, CellStore, Damaged, seal, unseal

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


def test_a_disk_that_fills_up_in_the_middle_of_a_file(store, monkeypatch):
    whole = os.fdopen

    def narrow(*args, **kwargs):
        file = whole(*args, **kwargs)

        class Narrow:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                file.close()

            def write(self, content):
                file.write(content[: len(content) // 2])
                file.flush()
                raise OSError(errno.ENOSPC, "No space left on device")

        return Narrow()

    monkeypatch.setattr(os, "fdopen", narrow)
    with pytest.raises(OSError, match="No space left"):
        store.write("new", ARRAYS, {})
    assert list(store.cells.iterdir()) == []


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
