"""A process of its own: the same results, and it may fail, be killed or print without harm."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from spillover.service import Service, ahead
from spillover.service.apart import Apart, ProcessEnded
from tests.service.memory_log import MemoryLog
from tests.service.stories import Story
from tests.service.test_same_as_next import same_as_next

HANG = 120.0


@pytest.fixture
def apart():
    found = Apart()
    yield found
    found.close()


def process_of(*arguments: object) -> int:
    print(*arguments)
    return os.getpid()


def doubled(values: np.ndarray) -> np.ndarray:
    values *= 2.0  # what arrives may be written to
    return values


def fail() -> None:
    raise ValueError("budget = 7: must be at most 3")


def die(*arguments: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def unpicklable() -> object:
    return lambda: None


def test_work_is_done_in_one_other_process_whatever_it_prints(apart) -> None:
    first, second = apart.compute(process_of, "hello"), apart.compute(process_of)
    assert first == second == apart.process.pid != os.getpid()


def test_arrays_arrive_and_return_as_they_are(apart) -> None:
    for given in (np.arange(300_000.0).reshape(300, 1_000), np.zeros((0, 4)), np.arange(12.0).reshape(3, 4).T):
        found = apart.compute(doubled, given)
        np.testing.assert_array_equal(found, 2.0 * given)
        assert found.dtype == given.dtype


def test_a_failure_is_raised_here_and_the_process_goes_on(apart) -> None:
    first = apart.compute(process_of)
    with pytest.raises(RuntimeError, match="ValueError: budget = 7: must be at most 3"):
        apart.compute(fail)
    with pytest.raises(RuntimeError, match="pickle"):
        apart.compute(unpicklable)
    with pytest.raises(Exception, match="pickle"):
        apart.compute(unpicklable())
    assert apart.compute(process_of) == first


def test_a_killed_process_is_named_and_replaced(apart) -> None:
    first = apart.compute(process_of)
    with pytest.raises(ProcessEnded, match="ended with code -9"):
        apart.compute(die)
    assert apart.compute(process_of) != first
    os.kill(apart.process.pid, signal.SIGKILL)  # while it waits
    with pytest.raises(ProcessEnded):
        apart.compute(process_of)
    assert apart.compute(process_of) > 0


OWNER = """
import os, time
from spillover.service.apart import Apart
apart = Apart()
print(apart.compute(os.getpid), flush=True)
{then}
"""


@pytest.mark.parametrize("then", ["time.sleep(600)", "apart.compute(time.sleep, 600)"])
def test_it_ends_with_a_process_that_is_killed(then) -> None:
    command = [sys.executable, "-c", OWNER.format(then=then)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        owner.kill()
    for _ in range(int(HANG / 0.05)):
        if ended(child):
            return
        time.sleep(0.05)
    pytest.fail("the process outlived its owner")


def test_closing_it_ends_what_it_does(apart) -> None:
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            apart.compute(time.sleep, 600)
        except ProcessEnded as error:
            failed.append(error)

    assert apart.compute(process_of) > 0
    waiting = threading.Thread(target=wait)
    waiting.start()
    apart.close()
    waiting.join(HANG)
    assert len(failed) == 1
    with pytest.raises(ProcessEnded):
        apart.compute(process_of)


def test_what_python_prints_at_its_start_is_no_result(apart, tmp_path, monkeypatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.write(1, b'hello' * 1000)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert apart.compute(divmod, 7, 2) == (3, 1)


def test_it_imports_nothing_from_the_current_directory(apart, tmp_path, monkeypatch) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('this is not json')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    assert apart.compute(divmod, 7, 2) == (3, 1)


class Broken:
    def __reduce__(self):
        return fail, ()


def test_what_cannot_be_read_there_is_said(apart) -> None:
    first = apart.compute(process_of)
    with pytest.raises(RuntimeError, match="ValueError: budget = 7"):
        apart.compute(process_of, Broken())
    assert apart.compute(process_of) == first


def ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{process}/stat") as status:  # whoever inherits it may leave it as a zombie
        return status.read().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("seed", [1, 5])
def test_reasons_of_the_process_are_those_of_next(tmp_path, monkeypatch, seed) -> None:
    monkeypatch.setattr(ahead, "LARGE", -1)
    service = Service(MemoryLog())
    story = Story(service, "shop", seed)
    story.live(8)
    assert service.ahead.idle(HANG)
    assert service.ahead.apart.process is not None
    for label in story.decided:
        assert label in service.desk.sheet("shop").ledger.reasons_at
    same_as_next(tmp_path, service, "shop", story.decided[-1], "csv")
    service.close()


def test_reasons_are_computed_on_demand_if_the_process_cannot(monkeypatch, caplog) -> None:
    monkeypatch.setattr(ahead, "LARGE", -1)
    monkeypatch.setattr(ahead, "kept", die)
    service = Service(MemoryLog())
    service.create_stream("shop", {"arms": ["radio", "video"], "budget": 1})
    service.decide("shop", "1")
    assert service.ahead.idle(HANG)
    monkeypatch.undo()
    assert "work ahead failed: ProcessEnded" in caplog.text
    assert service.explain("shop", "1")["choose"] == list(service.decision("shop", "1").event.chosen)
    service.close()
