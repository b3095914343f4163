"""A Ray head and a second node, in a network of their own that has the loopback interface only.

Each test is a Python script inside of that network, which ends with everything that was started there.
"""

import importlib.util
import sys
import tempfile

import pytest

from benchmarks.local_clusters import alone, can_be_alone
from spillover.experiments import open_results, run_experiment
from tests.experiments.small import TEXT, small
from tests.experiments.test_run import equal
from tests.waiting import HANG

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="run it with: pip install 'spillover[ray]', if there is a release",
    ),
    pytest.mark.skipif(
        sys.platform != "linux" or not can_be_alone(), reason="this system allows no network without other interfaces"
    ),
]
START = """
import os, signal, subprocess, sys, time
from pathlib import Path
from benchmarks.local_clusters import add_ray_node, start_ray_head
folder, files = map(Path, sys.argv[1:])
COMMAND = [sys.executable, "-m", "spillover", "run", "experiment.toml", "--engine", "ray", "--no-report", "--quiet"]

def run(address, *more, **extra):
    return subprocess.run([*COMMAND, "--address", address, *more], cwd=folder, capture_output=True, text=True, **extra)

def begin(address, *more):
    command = [*COMMAND, "--address", address, *more]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while process.poll() is None and len(list(folder.glob("results/small/cells/[!.]*.npz"))) < 2:
        time.sleep(0.01)
    return process

def kill_one(name):
    # a process of this network, which has process ids of its own; workers have the name of what they compute
    while True:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                found = path.read_text().startswith(name)
            except ProcessLookupError:
                continue
            if found:
                return os.kill(int(path.parent.name), signal.SIGKILL)

def show(code, error):
    # without a network Ray complains that it cannot find the address of the machine
    lines = [line for line in error.splitlines() if "Failed to determine local IP" not in line]
    print(code, " // ".join(lines), sep="|")
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_experiment(small(), tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def inside(tmp_path):
    """Run a script there; returns the exit code and stderr of the command, as the script shows them."""
    (tmp_path / "experiment.toml").write_text(TEXT)

    def run_inside(script):
        with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as files:  # paths of sockets must be short
            done = alone(START + script, str(tmp_path), files, timeout=HANG)
        assert done.returncode == 0, done.stdout + done.stderr
        shown = [line.partition("|") for line in done.stdout.splitlines() if "|" in line]
        return [(int(code), error) for code, _, error in shown]

    return run_inside


def test_two_nodes_and_a_worker_that_dies(inside, tmp_path, undisturbed):
    shown = inside("""
address = start_ray_head(files, 1)
add_ray_node(address, 1)
process = begin(address, "--replications", "60")
kill_one("ray::spillover")
_, error = process.communicate()
show(process.returncode, error)
""")
    assert shown == [(0, "")]
    equal(run_experiment(small(), tmp_path / "results/small"), undisturbed)  # of its cells, none is computed again


def test_ctrl_c_and_a_client_that_is_killed(inside, tmp_path, undisturbed):
    shown = inside("""
address = start_ray_head(files, 2)
process = begin(address, "--replications", "2000")
os.killpg(process.pid, signal.SIGINT)
_, error = process.communicate()
show(process.returncode, error)
process = begin(address, "--replications", "2000")
process.kill()
process.communicate()
done = run(address, "--jobs", "1")
show(done.returncode, done.stderr)
""")
    assert shown[0][0] == 130
    assert shown[0][1].startswith("spillover: stopped: ")
    assert shown[1:] == [(0, "")]
    equal(open_results(tmp_path / "results/small"), undisturbed)


def test_a_node_without_the_package(inside, tmp_path):
    none = tmp_path / "none" / "spillover"
    none.mkdir(parents=True)
    (none / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'spillover'\")\n")
    [(code, error)] = inside("""
address = start_ray_head(files, 1)
add_ray_node(address, 1, str(folder / "none"))
done = run(address)
show(done.returncode, done.stderr)
""")
    assert code == 1
    assert error.startswith("spillover: a Ray worker failed: ModuleNotFoundError: No module named 'spillover'; ")
    assert "run the same command again to resume" in error


def test_a_token_that_is_missing(inside):
    [(code, error)] = inside("""
token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}
address = start_ray_head(files, 1, **token)
done = run(address)
show(done.returncode, done.stderr)
""")
    assert code == 1
    assert error.startswith("spillover: address = '127.0.0.1:")
    assert "RAY_AUTH_TOKEN" in error


def test_a_head_that_is_killed(inside):
    [(code, error)] = inside("""
import ray
address = start_ray_head(files, 1)
process = begin(address, "--replications", "2000")
kill_one(str(Path(ray.__file__).parent / "core/src/ray/gcs/gcs_server"))
_, error = process.communicate()
show(process.returncode, error)
""")
    assert code == 1
    assert error.startswith("spillover: ")
    assert "run the same command again to resume" in error
