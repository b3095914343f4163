"""A server says that it is ready when what decisions need is compiled and loaded, not before."""

import subprocess
import sys
import threading

from spillover.http import state
from spillover.service import Service
from tests.service.http.conftest import begin, problem
from tests.service.http.servers import connected
from tests.service.memory_log import MemoryLog
from tests.waiting import HANG, wait_until

LOADED_LATER = """
import threading
import numpy as np
from spillover import kernels
from spillover.service.decisions import warm_up
from tests.service.memory_log import MemoryLog
from tests.service.stories import Story
from spillover.service import Service

def loaded():
    return {name for name, value in vars(kernels).items() if isinstance(value, np.ufunc)}

warm_up(threading.Event())
before = loaded()
assert before
for seed in range(4):
    service = Service(MemoryLog())
    story = Story(service, "shop", seed)
    story.live(8)
    service.explain("shop", story.decided[-1])
    service.outlook("shop")
print(sorted(loaded() - before))
"""


def test_no_kernel_is_compiled_or_loaded_after_the_server_is_ready() -> None:
    found = subprocess.run(
        [sys.executable, "-c", LOADED_LATER], capture_output=True, text=True, timeout=HANG, check=True
    )
    assert found.stdout == "[]\n"


def test_a_server_is_not_ready_while_it_compiles(monkeypatch) -> None:
    compiled = threading.Event()
    said: list[str] = []

    def compiling(stopped: threading.Event, say) -> None:
        say("compiling")
        assert compiled.wait(HANG)

    monkeypatch.setattr(state, "warm_up", compiling)
    with connected(Service(MemoryLog()), say=said.append, until=lambda app: True) as http:
        found = problem(http.get("/v1/ready"), 503, "the server is getting ready", "compiles")
        assert found["status"] == 503
        assert http.get("/v1/health").json() == {"status": "ok"}
        begin(http)  # what needs no kernel is answered meanwhile
        assert said == ["compiling"]
        compiled.set()
        wait_until(lambda: http.get("/v1/ready").is_success)
        assert said == ["compiling", "ready"]


def test_a_server_that_is_stopped_while_it_compiles_stops(monkeypatch) -> None:
    """And is never said to be ready."""
    said: list[str] = []
    monkeypatch.setattr(state, "warm_up", lambda stopped, say: stopped.wait(HANG))
    with connected(Service(MemoryLog()), say=said.append, until=lambda app: True) as http:
        problem(http.get("/v1/ready"), 503)
    assert said == []


def test_a_server_that_cannot_compile_ahead_says_so_and_answers(monkeypatch, caplog) -> None:
    def failing(stopped: threading.Event, say) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(state, "warm_up", failing)
    with connected(Service(MemoryLog())) as http:
        assert http.get("/v1/ready").is_success
    assert "warming up failed: the first decisions may take long" in caplog.text
