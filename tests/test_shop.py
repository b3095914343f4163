"""The story of the shop: two weeks of it, against a service in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANG

ROOT = Path(__file__).parent.parent


def play(*options: str) -> list[str]:
    command = [sys.executable, str(ROOT / "examples" / "shop" / "play.py"), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.long
def test_two_weeks() -> None:
    lines = play("--weeks", "2")
    assert lines[0].startswith("Spillover serves http://127.0.0.1:")
    told = "\n".join(lines)
    for word in ("choose ", "The manager does", "The shop is closed", "duplicate", "corrected", "given up"):
        assert word in told, word
    assert lines[-3].startswith("rounds: 14 rounds, 13 executed, 0 pending")
    assert lines[-2].startswith("audit: ")
    assert lines[-1].endswith("`spillover next` on the export says the same")


@pytest.mark.long
@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_the_whole_story(seed) -> None:
    assert play("--seed", seed)[-1].endswith("`spillover next` on the export says the same")
