"""One server for the tests of a file, and a stream of its own for each test."""

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from tests.service.http.servers import connected

NUMBERS = count(1)
ARMS = ["radio", "social", "video"]


@pytest.fixture(scope="module")
def http(tmp_path_factory) -> Iterator[httpx.Client]:
    """An HTTP client of a server without tokens."""
    with connected(tmp_path_factory.mktemp("served")) as client:
        yield client


@pytest.fixture
def stream(http) -> str:
    """The path of a new stream with three arms, two of which may be chosen."""
    return begin(http)


def begin(http: httpx.Client, **settings) -> str:
    name = f"stream-{next(NUMBERS)}"
    answer = http.post("/v1/streams", json={"name": name, "settings": {"arms": ARMS, "budget": 2} | settings})
    assert answer.status_code == 201, answer.text
    return f"/v1/streams/{name}"


def executed(http: httpx.Client, stream: str, round: object = 1) -> list[str]:
    """Decide and execute a round; returns the chosen arms."""
    decision = http.post(f"{stream}/decisions", json={"round": round})
    assert decision.status_code == 201, decision.text
    assert http.post(f"{stream}/executions", json={"round": round}).status_code == 201
    return decision.json()["chosen"]


def problem(answer: httpx.Response, status: int, *parts: str) -> dict:
    """The problem details of a refusal."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    for part in parts:
        assert part in found["detail"]
    return found
