"""Files are written whole or not at all, keep their permissions, and leave nothing behind."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import spillover as sp
from spillover.experiments.store import CellStore
from spillover.files import (
    DEEPEST,
    LONGEST_LINE_OF_KEYS,
    MACHINE,
    Excessive,
    parse_toml,
    read_regular,
    read_toml_text,
    remove_leftovers,
    write_atomically,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes, devices or limits of this kind")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o444, 0o664])
def test_a_file_keeps_its_permissions(kept, tmp_path):
    path = tmp_path / "file"
    path.touch()
    path.chmod(kept)
    write_atomically(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", kept)


def test_a_new_file_has_the_permissions_that_the_user_s_files_have(tmp_path):
    (tmp_path / "other").touch()
    write_atomically(tmp_path / "file", b"new")
    assert mode(tmp_path / "file") == mode(tmp_path / "other")


def test_nobody_else_can_read_it_while_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "file"
    seen: list[int] = []
    path.touch()
    path.chmod(0o600)
    monkeypatch.setattr(os, "fsync", lambda _: seen.extend(mode(one) for one in tmp_path.iterdir()))
    write_atomically(path, b"new")
    assert seen == [0o600, 0o600]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give files away")
def test_root_leaves_a_file_to_its_owner(tmp_path):
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 12345, 12345)
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (12345, 12345, 0o600)


def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "target"
    link.symlink_to(target)
    for content in (b"first", b"second"):  # the target does not exist, then it does
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/null")):
        with pytest.raises(ValueError, match=r"path = .*: must be a regular file, or a new one"):
            write_atomically(path, b"new")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def endless(folder: Path) -> list[Path]:
    """Files that cannot be read to their end."""
    os.mkfifo(folder / "endless pipe")
    (folder / "endless link").symlink_to("/dev/zero")
    return [folder / "endless pipe", folder / "endless link", Path("/dev/zero")]


def test_what_may_never_end_is_not_read(tmp_path):
    """By the readers of learners, stores and their cells too."""
    readers: list[Callable[[Path], object]] = [
        read_regular,
        lambda path: sp.Learner.load(path, sp.NDCSEM(), sp.Problem(n_arms=3, budget=1)),
        lambda path: sp.Learners.load(path, sp.NDCSEM(), sp.Problem(n_arms=3, budget=1)),
    ]
    for path in endless(tmp_path):
        for read in readers:
            with pytest.raises(ValueError, match=r": must be a regular file: others may never end") as caught:
                read(path)
            assert str(path) in str(caught.value)
    os.mkfifo(tmp_path / "store.json")
    with pytest.raises(ValueError, match=r"store.json: must be a regular file"):
        CellStore(tmp_path).about()
    (tmp_path / "cells").mkdir()
    os.mkfifo(tmp_path / "cells/a.npz")
    with pytest.raises(ValueError, match=r"a.npz: must be a regular file"):
        CellStore(tmp_path).read("a")


def test_what_has_no_size_is_empty(tmp_path):
    """What the system makes up while it is read, too, which may have no end."""
    (tmp_path / "empty").touch()
    assert read_regular(tmp_path / "empty") == b""
    (tmp_path / "full").write_bytes(b"content")
    assert read_regular(tmp_path / "full") == b"content"


def a_dead_process() -> int:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    return int(done.stdout)


def test_what_killed_processes_left_is_removed(tmp_path):
    path = tmp_path / "a[1]*.json"
    left = tmp_path / f".{path.name}.{a_dead_process()}-{MACHINE}0badcafe"
    others = [
        tmp_path / f".{path.name}.{os.getpid()}-{MACHINE}0badcafe",  # this process is alive
        tmp_path / f".other.json.{a_dead_process()}-{MACHINE}0badcafe",
        tmp_path / f".{path.name}.bak-1",
    ]
    for file in (path, left, *others):
        file.touch()
    remove_leftovers(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


SMALL_DISK = """
import resource, signal, sys
from spillover.files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(sys.argv[1], bytes(5000))
except OSError as error:
    print(error.filename, error.strerror)
"""


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", SMALL_DISK, str(path)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{path} File too large\n", "")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root can write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError) as refused:
            write_atomically(path, b"new")
    finally:
        tmp_path.chmod(0o755)
    assert refused.value.filename == str(path)
    assert path.read_bytes() == b"old"


# --- The limits on TOML, which docs/reliability.md states: what is within them is read, what is beyond is refused ---


def nested(depth: int) -> str:
    """A list inside of lists; with the table that it is in, `depth` of them."""
    return "a = " + (depth - 1) * "[" + "1" + (depth - 1) * "]"


def test_depth():
    assert parse_toml(nested(DEEPEST))
    for depth in (DEEPEST + 1, 100_000):
        with pytest.raises(Excessive, match=f"at most {DEEPEST} tables and lists inside of each other"):
            parse_toml(nested(depth))


def test_keys_of_many_parts():
    few, many = (".".join(["a"] * parts) + " = 1" for parts in (20, LONGEST_LINE_OF_KEYS + 2))
    assert parse_toml(few)
    with pytest.raises(Excessive, match=f"a key of more than {LONGEST_LINE_OF_KEYS} parts"):
        parse_toml(many)
    numbers = ", ".join(["0.5"] * 1_000)
    assert parse_toml(f"a = [{numbers}]") == {"a": [0.5] * 1_000}


@pytest.mark.parametrize("digits", [31, 5_000])
def test_whole_numbers(digits):
    assert parse_toml(f"a = {10**30}") == {"a": 10**30}
    with pytest.raises(Excessive, match="must be at most 1e\\+30 in size"):
        parse_toml("a = 2" + "0" * (digits - 1))


def test_the_size_of_a_file(tmp_path, monkeypatch):
    path = tmp_path / "a.toml"
    path.write_text("a = 1\n")
    assert read_toml_text(path) == "a = 1\n"
    monkeypatch.setattr("spillover.files.MOST_BYTES", 5)
    with pytest.raises(ValueError, match="has 6 bytes: must be a TOML file of at most 5"):
        read_toml_text(path)
