"""Bodies that are too large or too slow are refused before they are read, in every form in which they can be sent."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from spillover.http import ServerSettings
from tests.service.http.conftest import begin, executed, problem
from tests.service.http.servers import PATIENCE, connected
from tests.waiting import wait_until

SMALL = ServerSettings(largest_body=2_000, largest_file=5_000, slowest_body=0.5, most_listeners=2)


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with connected(tmp_path_factory.mktemp("limited"), SMALL) as client:
        yield client


def exchange(http: httpx.Client, request: bytes) -> bytes:
    """What the server answers to bytes as they are, until it ends the connection."""
    where = urlsplit(str(http.base_url))
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE) as connection:
        connection.sendall(request)
        found = b""
        while piece := connection.recv(65_536):
            found += piece
        return found


def head(path: str, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode()


def test_a_body_up_to_the_limit_is_read(http, stream) -> None:
    executed(http, stream)
    body = b'{"outcomes": [{"round": 1, "arm": "radio", "y": 0.5}]}'
    full = body + b" " * (SMALL.largest_body - len(body))
    sent = {"Content-Type": "application/json"}
    assert http.post(f"{stream}/outcomes", content=full, headers=sent).status_code == 200
    problem(http.post(f"{stream}/outcomes", content=full + b" ", headers=sent), 413, "2,000 bytes")


def test_a_body_of_unknown_length_is_counted(http, stream) -> None:
    pieces = (b"x" * 500 for _ in range(10))
    problem(http.post(f"{stream}/outcomes", content=pieces, headers={"Content-Type": "application/json"}), 413)


def test_a_length_that_is_announced_is_enough_to_refuse(http, stream) -> None:
    for length in ("2001", "9" * 18):
        assert b" 413 " in exchange(http, head(f"{stream}/outcomes", f"Content-Length: {length}", "Connection: close"))
    for length in ("-1", "+1", "1e3", "abc", "1, 2", "9" * 30):
        assert b" 400 " in exchange(http, head(f"{stream}/outcomes", f"Content-Length: {length}", "Connection: close"))


def test_a_body_that_does_not_come_is_not_waited_for(http, stream) -> None:
    slow = head(f"{stream}/outcomes", "Content-Length: 100", "Connection: close") + b"{"
    assert b" 408 " in exchange(http, slow)


@pytest.mark.parametrize("part", ["", "GET /v1/health HT", "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_headers_that_do_not_come_are_not_waited_for(tmp_path, part) -> None:
    """The connection ends, whether a request was answered on it before or not."""
    whole = "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connected(tmp_path, ServerSettings(slowest_headers=0.2)) as http:
        assert exchange(http, part.encode()) == b""
        wait_until(lambda: b" 200 " in exchange(http, (whole + part).encode()))  # on a busy machine that may be late


def test_files_have_a_limit_of_their_own(http) -> None:
    path = "/v1/streams/imported/import?budget=1"
    assert http.post(path, content=b"x" * 3_000).status_code == 422
    problem(http.post(path, content=b"x" * 6_000), 413, "5,000 bytes")
    problem(http.post(path, content=(b"x" * 1_000 for _ in range(6))), 413)


@pytest.mark.parametrize(
    "request_", [b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01", b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"/" * 80_000]
)
def test_what_is_no_http_ends_the_connection(http, request_) -> None:
    answer = exchange(http, request_ + b"\r\n\r\n")
    assert answer == b"" or b" 4" in answer.split(b"\r\n")[0]
    assert http.get("/v1/health").status_code == 200


def test_only_so_many_may_wait_for_changes(http) -> None:
    stream = begin(http)
    with (
        http.stream("GET", f"{stream}/changes") as one,
        http.stream("GET", f"{stream}/changes") as two,
    ):
        lines = [response.iter_lines() for response in (one, two)]  # kept: without them the connections end
        assert [next(line) for line in lines] == ["id: 1", "id: 1"]
        with http.stream("GET", f"{stream}/changes") as refused:
            assert refused.status_code == 503
            refused.read()
        assert refused.headers["retry-after"] == "10"
        problem(refused, 503)
