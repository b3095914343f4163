"""What Windows does not have is not needed: these processes lack it too."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spillover
from spillover.kernels.cache import cache_folder
from tests.cli.conftest import STUDY, WORLD

HOME = Path(spillover.__file__).parent
WITHOUT_POSIX = """
import os, select, signal, sys, warnings
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("getuid", "geteuid", "getgid", "getpgid", "killpg", "O_NOFOLLOW"):
    delattr(os, name)
for name in ("poll", "epoll"):
    delattr(select, name) if name in dir(select) else None
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "alarm"):
    delattr(signal, name)
warnings.filterwarnings("ignore", "only soft file lock")
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    """A copy of the compiled kernels without their locks: those of a system without fcntl are of another kind."""
    folder = cache_folder()
    assert folder is not None
    copy: Path = tmp_path_factory.mktemp("compiled") / "kernels"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.lock"))
    return copy


pytestmark = pytest.mark.skipif(os.name == "nt", reason="there it is so anyhow")


def without_posix(compiled: Path, folder: Path, lines: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", WITHOUT_POSIX + lines, *arguments]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(compiled)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_simulate(compiled, tmp_path):
    lines = """
import spillover as sp
print(sp.simulate(sp.Uniform(), sp.SyntheticSEM(horizon=50, changes=())).final_regret.shape)
"""
    assert without_posix(compiled, tmp_path, lines) == "(1,)\n"


def test_next_decision(compiled, tmp_path):
    command = "from spillover.cli import main; main(sys.argv[1:])"
    assert "wrote history.csv" in without_posix(compiled, tmp_path, command, "next", "--example")
    answer = without_posix(compiled, tmp_path, command, "next", "history.csv", "--budget", "2")
    assert answer.startswith("Next round ")


@pytest.mark.long
def test_run_an_experiment_and_keep_it(compiled, tmp_path):
    (tmp_path / "my-study.toml").write_text(STUDY.format(world=WORLD.format(horizon=60)), "utf-8")
    lines = """
from spillover.experiments import load_experiment, run_experiment
from spillover.experiments.store import CellStore
results = run_experiment(load_experiment("my-study.toml"), "results", progress=False)
one, other = CellStore("results"), CellStore("results")
print(len(list(one.cells.iterdir())), list(one.claims.iterdir()), one.claim("a"), other.claim("a"))
one.release("a")
print(other.claim("a"))
other.release("a")
"""
    assert without_posix(compiled, tmp_path, lines).splitlines() == ["4 [] True False", "True"]


def test_a_reader_that_left_is_noticed_without_poll(compiled, tmp_path):
    lines = """
import io
from spillover.cli.app import reader_left
read, write = os.pipe()
sys.stdout = io.TextIOWrapper(os.fdopen(write, "wb"))
sys.stdout.write("some words")
here = reader_left()
os.close(read)
sys.stdout.write("more words")
gone = reader_left()
os.write(1, f"{here} {gone}".encode())
os._exit(0)
"""
    assert without_posix(compiled, tmp_path, lines) == "False True"


def sources() -> list[Path]:
    return sorted(HOME.rglob("*.py"))


def test_nothing_imports_what_only_posix_has():
    posix = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not posix & {alias.name for alias in node.names}, path
            if isinstance(node, ast.ImportFrom):
                assert node.module not in posix, path


@pytest.mark.parametrize("method", ["read_text", "write_text"])
def test_text_has_an_encoding(method):
    """Elsewhere the default may be another one than here."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                given = ast.unparse(node)
                assert "utf-8" in given or "encoding=" in given, (path, given)
