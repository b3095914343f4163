"""Waiting for what another process or thread does, however busy the machine is."""

import subprocess
import time
from collections.abc import Callable

HANG = 600.0  # seconds: nothing here takes so long on any machine, so whoever waits that long waits for nothing


def wait_until(happened: Callable[[], bool], process: "subprocess.Popen[str] | None" = None) -> None:
    """Look again and again, while the process that is to bring it about is alive."""
    deadline = time.monotonic() + HANG
    while not happened():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
