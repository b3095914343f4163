"""Live changes: told at once, also those of another server on the same log; they end with the server."""

import threading

import httpx
import pytest

from spillover.http import ServerSettings
from spillover.service import Service, SqliteLog
from tests.service.http.conftest import begin, problem
from tests.service.http.servers import PATIENCE, connected, running


def numbers(response: httpx.Response):
    """The numbers that a connection tells."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield int(line.removeprefix('data: {"seq": ').removesuffix("}"))


def until(found, seq: int) -> list[int]:
    """All numbers up to one."""
    heard = []
    for number in found:
        heard.append(number)
        if number >= seq:
            return heard
    raise AssertionError(f"the connection ended after {heard}")


def test_the_last_number_comes_at_once_and_then_each_new_one(http, stream) -> None:
    with http.stream("GET", f"{stream}/changes", timeout=PATIENCE) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        found = numbers(response)
        assert next(found) == 1
        last = http.post(f"{stream}/decisions", json={"round": 1}).json()["seq"]
        assert until(found, last)[0] > 1
        last = http.post(f"{stream}/executions", json={"round": 1}).json()["seq"]
        heard = until(found, last)
        assert heard == sorted(set(heard))


def test_other_streams_are_not_heard_of(http) -> None:
    own, other = begin(http), begin(http)
    with http.stream("GET", f"{own}/changes", timeout=PATIENCE) as response:
        found = numbers(response)
        assert next(found) == 1
        http.patch(f"{other}/settings", json={"seed": 3})
        http.patch(f"{other}/settings", json={"seed": 4})
        http.patch(f"{own}/settings", json={"seed": 5})
        assert next(found) == 2


def test_a_stream_that_there_is_not(http) -> None:
    problem(http.get("/v1/streams/none/changes"), 404)


def test_a_connection_that_waits_shows_that_it_is_alive(tmp_path) -> None:
    with connected(tmp_path, ServerSettings(heartbeat=0.05)) as http:
        stream = begin(http)
        with http.stream("GET", f"{stream}/changes", timeout=PATIENCE) as response:
            lines = response.iter_lines()
            assert any(line.startswith(":") for line in (next(lines) for _ in range(10)))


def test_what_another_server_records_is_found(tmp_path) -> None:
    """Two services on one log, as with two worker processes."""
    log = SqliteLog(tmp_path / "shared.db")
    one, other = Service(log), Service(log)
    with connected(one, ServerSettings(poll=0.05)) as http:
        stream = begin(http)
        with http.stream("GET", f"{stream}/changes", timeout=PATIENCE) as response:
            found = numbers(response)
            assert next(found) == 1
            other.change_settings(stream.removeprefix("/v1/streams/"), {"seed": 3})
            assert next(found) == 2
    other.close()


def test_waiting_connections_end_with_the_server(tmp_path) -> None:
    """`running` fails if the server does not stop."""
    ended = threading.Event()
    with running(tmp_path) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        stream = begin(client)
        listening = threading.Event()

        def wait() -> None:
            with client.stream("GET", f"{stream}/changes") as response:
                for _ in response.iter_lines():
                    listening.set()
            ended.set()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        assert listening.wait(PATIENCE)
    assert ended.wait(PATIENCE)
    thread.join(PATIENCE)
    client.close()


def test_a_listener_that_leaves_is_forgotten(http, stream) -> None:
    def listeners() -> float:
        lines = http.get("/metrics").text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("spillover_listeners "))

    with http.stream("GET", f"{stream}/changes", timeout=PATIENCE) as response:
        lines = response.iter_lines()  # kept: without it the connection ends
        next(lines)
        assert listeners() >= 1
    for _ in range(200):
        if listeners() == 0:
            return
    pytest.fail("a listener was not forgotten")
