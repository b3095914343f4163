"""A server that is killed with SIGKILL loses nothing that it acknowledged."""

import json
import os
import subprocess
import sys

import pytest

from tests.waiting import HANG

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks processes")


def after_kills(folder, kills: int, timeout: float) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.service.killed_writer", str(folder), str(kills), "7"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_kills_lose_nothing_that_was_acknowledged(tmp_path) -> None:
    found = after_kills(tmp_path, 4, HANG)
    assert found.pop("acknowledged", 0)
    assert found == {"lost": 0, "problems": []}


@pytest.mark.long
def test_a_thousand_kills(tmp_path) -> None:
    found = after_kills(tmp_path, 1_000, 3_600)
    assert found.pop("acknowledged", 0)
    assert found == {"lost": 0, "problems": []}
