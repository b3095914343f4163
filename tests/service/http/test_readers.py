"""Requests that read, however many and however long: the others are answered meanwhile."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from spillover.service import Service, SqliteLog
from spillover.service.events import Head
from tests.service.http.conftest import begin, executed
from tests.service.http.servers import connected
from tests.waiting import HANG, wait_until

MANY = 50  # more than the threads that a server has for requests that record


@pytest.mark.parametrize(("read", "answer"), [("outlook", 200), ("changes", 404)])
def test_reads_that_never_end_hold_up_nothing_else(read, answer, tmp_path, monkeypatch) -> None:
    going_on, started = threading.Event(), []

    def waiting(stream):
        started.append(stream)
        assert going_on.wait(HANG)

    def outlook(stream, at=None):
        waiting(stream)
        return {}

    def head(stream):
        if stream:  # otherwise `/v1/ready` asks
            waiting(stream)
        return Head(stream=stream)

    service = Service(SqliteLog(tmp_path / "decisions.db"))
    monkeypatch.setattr(service, "outlook", outlook)
    monkeypatch.setattr(service.log, "head", head)
    with connected(service) as http, ThreadPoolExecutor(MANY) as pool:
        stream = begin(http)
        reads = [pool.submit(http.get, f"{stream}/{read}") for _ in range(MANY)]
        try:
            wait_until(lambda: len(started) > 0)
            executed(http, stream)
            assert http.get("/v1/ready").json() == {"status": "ok"}
            assert http.get("/metrics").status_code == 200
            assert len(started) < MANY
        finally:
            going_on.set()
        assert [read.result(HANG).status_code for read in reads] == [answer] * MANY
    service.close()
