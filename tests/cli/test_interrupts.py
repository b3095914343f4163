"""Ctrl-C before the command itself runs: one line, exit code 130, no traceback."""

import os
import signal
import subprocess
import sys

import pytest

from tests.sampling import every
from tests.waiting import HANG

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals: POSIX")

# the interrupt comes when the package asks for a module, at the start, in the middle or at the end of its imports
SCRIPT = """
import os, signal, sys
module = sys.argv.pop(1)
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from spillover_command import main
main()
"""


def run(module: str, *arguments: str, **extra):
    command = [sys.executable, "-c", SCRIPT, module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, **extra)


@pytest.mark.parametrize("module", every(4, ["spillover.recommendation", "spillover", "numba", "spillover.cli.runs"]))
def test_while_the_package_is_loaded(module) -> None:
    done = run(module)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "spillover: interrupted\n")


def test_while_the_options_are_read(tmp_path) -> None:
    (tmp_path / "h.csv").write_text("week,promo,sales\n1,1,2\n2,0,3\n3,1,5\n")
    done = run("spillover.history.frame", "check", "h.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "spillover: interrupted\n")


CLEARED_AWAY = """
import os, signal, sys, time
import click
from spillover.cli import main
from spillover.cli.app import Command

class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)

@main.command(cls=Command)
def hold():
    held = Held()
    del held
    time.sleep(60)

main(["hold"], prog_name="spillover")
"""


def test_while_an_object_is_cleared_away() -> None:
    """Python has nowhere to raise it then, shows a traceback, and goes on as if nothing had happened."""
    done = subprocess.run([sys.executable, "-c", CLEARED_AWAY], capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "spillover: interrupted\n")


@pytest.mark.long
def test_a_process_that_ignores_it_goes_on() -> None:
    done = run("numba", "--version", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert (done.returncode, done.stderr) == (0, "")
