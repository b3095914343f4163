"""Requests that read, however many and however long: the others are answered meanwhile."""

import threading
from concurrent.futures import ThreadPoolExecutor

from spillover.service import Service, SqliteLog
from tests.service.http.conftest import begin, executed
from tests.service.http.servers import connected
from tests.waiting import HANG, wait_until

MANY = 50  # more than the threads that a server has for requests that record


def test_reads_that_never_end_hold_up_nothing_else(tmp_path, monkeypatch) -> None:
    going_on, started = threading.Event(), []

    def outlook(stream, at=None):
        started.append(stream)
        assert going_on.wait(HANG)
        return {}

    service = Service(SqliteLog(tmp_path / "decisions.db"))
    monkeypatch.setattr(service, "outlook", outlook)
    with connected(service) as http, ThreadPoolExecutor(MANY) as pool:
        stream = begin(http)
        reads = [pool.submit(http.get, f"{stream}/outlook") for _ in range(MANY)]
        try:
            wait_until(lambda: len(started) > 0)
            executed(http, stream)
            assert http.get("/v1/ready").json() == {"status": "ok"}
            assert http.get("/metrics").status_code == 200
            assert len(started) < MANY
        finally:
            going_on.set()
        assert [read.result(HANG).status_code for read in reads] == [200] * MANY
    service.close()
