"""Where compiled kernels are kept, and that a cold cache is filled by one process at a time."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import pytest
from filelock import FileLock

import spillover
from spillover import kernels
from spillover.kernels import cache

FIRST_STEPS = """
import spillover as sp
print(sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=100, changes=()), 5).final_regret[0])
"""
ONE_KERNEL = """
import numpy as np
from spillover import kernels
print(kernels.play(np.eye(2), np.array([0.5, 0.25]), np.array([True, False])))
print(kernels.compiling.cache_folder())
"""
PLAY = kernels.compiling.KERNELS["play"].function
ANSWER = "(array([0.5, 0. ]), array([0.5, 0. ]))"


@pytest.mark.long
def test_processes_that_meet_a_cold_cache_at_once_do_not_break_it(tmp_path):
    """Without the lock around compilation they leave a cache that crashes whoever loads it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", FIRST_STEPS], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    first = [process.communicate()[0] for process in started]
    again = subprocess.run([sys.executable, "-c", FIRST_STEPS], env=environment, capture_output=True, text=True)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert again.returncode == 0
    assert len({*first, again.stdout}) == 1


@pytest.mark.long
def test_all_kernels_are_compiled_side_by_side(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", "from spillover import kernels; kernels.compile_all()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    kept = {path.name.rpartition("-")[0].removeprefix("guf-") for path in tmp_path.rglob("*.nbi")}
    assert kept == {f"{kernel.file}.{name}" for name, kernel in kernels.compiling.KERNELS.items()}


def test_the_lock_is_given_back():
    """Within a minute: another process may be compiling at this moment."""
    assert kernels.play is not None
    folder = cache.cache_folder()
    assert folder is not None
    with FileLock(cache.lock_of(cache.own_folder(folder, PLAY)), timeout=60):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_nobody_else_can_take_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    with cache.stored(PLAY):
        (path,) = tmp_path.glob("*.lock")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def places(tmp_path: Path, *, package: bool, home: bool) -> tuple[dict[str, str], Path]:
    """An environment, and a copy of the package, where that and the home can be written or not, even by root.

    A regular file stands where a folder would have to be made.
    """
    copy = tmp_path / "package" / "spillover"
    shutil.copytree(Path(spillover.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if not package:
        (copy / "kernels" / "__pycache__").write_text("not a folder")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "home").mkdir() if home else (tmp_path / "home").write_text("not a folder")
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"PYTHONPATH": str(tmp_path / "package"), "HOME": str(tmp_path / "home")}
    environment |= {"TMPDIR": str(tmp_path / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    return environment, copy


def folder_chosen(environment: dict[str, str]) -> Path:
    done = subprocess.run([sys.executable, "-c", ONE_KERNEL], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer, folder = done.stdout.splitlines()
    assert answer == ANSWER
    return Path(folder)


def folder_used(environment: dict[str, str]) -> Path:
    folder = folder_chosen(environment)
    assert [path for path in folder.rglob("*.nbi") if ".play-" in path.name], "not kept where it should be"
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache is elsewhere")
def test_kernels_are_kept_in_the_user_s_cache(tmp_path):
    environment, copy = places(tmp_path, package=True, home=True)
    assert folder_used(environment) == tmp_path / "home" / ".cache" / "spillover" / "kernels"
    assert not (copy / "kernels" / "__pycache__").exists()


@pytest.mark.long
def test_a_home_that_cannot_be_written(tmp_path):
    environment, copy = places(tmp_path, package=True, home=False)
    assert folder_used(environment) == copy / "kernels" / "__pycache__"


def test_a_copy_of_the_package_finds_the_kernels_of_the_original(tmp_path):
    """Kernels are stored by what they are compiled from, not by where that is."""
    environment, copy = places(tmp_path, package=True, home=True)
    folder = folder_used(environment)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")}
    moved = copy.parent.with_name("elsewhere")
    copy.parent.rename(moved)
    assert folder_used({**environment, "PYTHONPATH": str(moved)}) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")} == before


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_neither_package_nor_home_can_be_written(tmp_path):
    environment, _ = places(tmp_path, package=False, home=False)
    folder = folder_used(environment)
    assert folder.parent == tmp_path / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder_used(environment) == folder  # the next process finds what this one compiled

    shutil.rmtree(folder)
    folder.mkdir()
    folder.chmod(0o777)  # as somebody else might do, to have us run what he puts there
    other = folder_chosen(environment)
    assert other.parent == folder.parent
    assert other != folder
    assert not other.exists()  # nobody would find it again


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither owners nor modes")
@pytest.mark.parametrize("squat", ["file", "pipe", "link", "open", "of another user"])
def test_whoever_takes_the_name_of_the_temporary_folder_stops_nobody(squat, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    taken, elsewhere = tmp_path / f"spillover-{os.getuid()}", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if squat == "file":
        taken.touch()
    elif squat == "pipe":
        os.mkfifo(taken)
    elif squat == "link":
        taken.symlink_to(elsewhere)
    else:
        taken.mkdir(mode=0o700)
        taken.chmod(0o777) if squat == "open" else as_another_user(taken)
    folder = cache.temporary_cache.__wrapped__()
    assert folder is not None
    assert folder != taken
    assert cache.is_private(folder, os.getuid())
    assert list(elsewhere.iterdir()) == []


def as_another_user(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a folder of another user")
    os.chown(folder, 65534, 65534)


@pytest.mark.long
def test_the_folder_that_numba_is_told_is_used(tmp_path):
    environment, _ = places(tmp_path, package=True, home=True)
    assert folder_used({**environment, "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}) == tmp_path / "chosen"
    blocked = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "package" / "spillover" / "rng.py" / "chosen")}
    assert folder_used(blocked) == tmp_path / "home" / ".cache" / "spillover" / "kernels"


def test_the_user_s_own_locators_are_for_other_code(monkeypatch):
    """Numba would cache our kernels without regard to the files that they import."""
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "InTreeCacheLocator")
    numba.config.reload_config()
    assert numba.config.CACHE_LOCATOR_CLASSES == "InTreeCacheLocator"
    with cache.numba_asks_us():
        assert numba.config.CACHE_LOCATOR_CLASSES == ""
    assert numba.config.CACHE_LOCATOR_CLASSES == "InTreeCacheLocator"
    monkeypatch.undo()
    numba.config.reload_config()


def test_functions_of_others_are_cached_where_numba_would():
    assert cache.KernelLocator.from_function(used_days_ago, __file__) is None


def test_kernels_of_other_source_are_removed_when_nobody_has_used_them_for_long(tmp_path):
    own = cache.own_folder(tmp_path, PLAY)
    kept, outdated, other = (tmp_path / f"{name}-{'0' * 24}" for name in ("code", "code-1", "something"))
    for folder, days in ((own, 0), (kept, cache.DAYS_KEPT - 1), (outdated, cache.DAYS_KEPT + 1), (other, 999)):
        folder.mkdir()
        used_days_ago(folder, days)
    cache.note_use(own)
    assert outdated.exists()  # it looks once a day only
    used_days_ago(own, 2)
    cache.note_use(own)
    assert cache.days_since_use(own) < 1
    assert sorted(tmp_path.iterdir()) == sorted([own, kept, other])


def used_days_ago(folder: Path, days: float) -> None:
    then = time.time() - days * 86_400
    os.utime(folder, (then, then))


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither owners nor modes")
def test_locks_of_others_make_a_folder_useless(tmp_path):
    """Whoever can open a lock can hold it for ever, and a pipe would be waited for at once."""

    def trusted(name, make):
        folder = tmp_path / name
        folder.mkdir()
        make(folder / "spillover-world.lock")
        return cache.is_trusted(folder, os.getuid())

    assert trusted("own", lambda path: path.touch(0o600))
    assert not trusted("open", lambda path: (path.touch(), path.chmod(0o666)))
    assert not trusted("pipe", lambda path: os.mkfifo(path, 0o600))
    assert not trusted("link", lambda path: path.symlink_to(tmp_path / "own" / "spillover-world.lock"))
    assert not cache.is_trusted(tmp_path / "own", os.getuid() + 1)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_folder_that_everybody_can_write_is_not_loaded_from(tmp_path):
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o777)
    assert not cache.usable(tmp_path / "all")
    environment, _ = places(tmp_path, package=True, home=True)
    chosen = folder_chosen({**environment, "NUMBA_CACHE_DIR": str(tmp_path / "all")})
    assert chosen == tmp_path / "home" / ".cache" / "spillover" / "kernels"
    assert list((tmp_path / "all").iterdir()) == []


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="POSIX")
def test_where_nothing_can_be_written_kernels_are_compiled_without_a_cache(tmp_path):
    """Not even a temporary file: Python itself then finds no folder for one."""
    environment, _ = places(tmp_path, package=False, home=False)
    nowhere = "import tempfile\ntempfile._candidate_tempdir_list = lambda: []\n"
    done = subprocess.run([sys.executable, "-c", nowhere + ONE_KERNEL], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == [ANSWER, "None"], done.stderr


PRELOADING = """
import sys
from spillover import kernels
assert "scipy.linalg" not in sys.modules
kernels.preload_numba()
assert "scipy.linalg" not in sys.modules
import numba, numpy as np, scipy.linalg, scipy.optimize
product = numba.njit(lambda a, b: a @ b)
print(product(np.eye(2), np.full((2, 2), 3.0)).tolist(), scipy.linalg.norm([3.0, 4.0]))
"""


@pytest.mark.long  # it compiles a kernel with linear algebra
def test_preloading_leaves_linear_algebra_for_those_who_need_it():
    run = subprocess.run([sys.executable, "-c", PRELOADING], capture_output=True, text=True)
    assert run.stderr == ""
    assert run.stdout == "[[3.0, 3.0], [3.0, 3.0]] 5.0\n"
