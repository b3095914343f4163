"""Requests that are repeated until they are answered; each that records something has a key, so none counts twice."""

import json
import random
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from spillover.validate import require


class Refused(ValueError):
    """The service refused a request; the message is that of the service. status: 401, 404, 409, 422 ...

    recorded, given: both versions, where the request is another version of what is recorded (409).
    """

    def __init__(
        self,
        status: int,
        detail: str,
        field: str | None = None,
        value: Any = None,
        recorded: Any = None,
        given: Any = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.field, self.value = status, field, value
        self.recorded, self.given = recorded, given


class Unreachable(ConnectionError):
    """The service did not answer, or could not record anything, for as long as the client was told to try."""


AGAIN = {408, 425, 429, 502, 503, 504}  # the service may answer later
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds


class Transport:
    """A connection to a service.

    timeout: seconds for one attempt. patience: seconds after which no further attempt is made.
    """

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        good = url.startswith(("http://", "https://"))
        require(good, "url", url, "the address of a service, such as http://127.0.0.1:8000")
        require(timeout > 0, "timeout", timeout, "a number of seconds above 0")
        require(patience >= 0, "patience", patience, "a number of seconds from 0 on")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self.http = httpx.Client(base_url=url, headers=headers, timeout=timeout, follow_redirects=False)
        except (httpx.InvalidURL, UnicodeEncodeError):
            raise ValueError("url and token: must be an address and a token, without other characters") from None
        self.url, self.patience = url, patience

    def close(self) -> None:
        self.http.close()

    def get(self, path: str, **parameters: Any) -> httpx.Response:
        """Read something."""
        return self.send("GET", path, params=given(parameters))

    def write(self, method: str, path: str, key: str | None = None, **content: Any) -> Any:
        """Record something, once, however often it is sent; returns the JSON of the answer."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return self.send(method, path, headers=headers, **content).json()

    def send(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Try until there is an answer, with longer and longer pauses."""
        end = time.monotonic() + self.patience
        pause = FIRST_PAUSE
        while True:
            try:
                response = self.http.request(method, path, **content)
                if response.status_code not in AGAIN:
                    return checked(response)
                trouble = problem_of(response)
            except httpx.TransportError as error:
                trouble = str(error) or type(error).__name__
            if time.monotonic() + pause > end:
                raise Unreachable(f"{self.url}: {trouble}")
            time.sleep(pause * random.uniform(0.5, 1.0))  # so that many clients do not come back together
            pause = min(2 * pause, LONGEST_PAUSE)


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that were left out."""
    return {name: value for name, value in parameters.items() if value is not None}


def checked(response: httpx.Response) -> httpx.Response:
    """The response, if it is not a refusal."""
    if response.is_success:
        return response
    try:
        problem = response.json()
        known = {name: problem.get(name) for name in ("field", "value", "recorded", "given")}
        raise Refused(response.status_code, problem["detail"], **known)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, Refused):
            raise
    raise Refused(
        response.status_code, f"{response.url}: must be a service of Spillover (answered {response.status_code})"
    )


def problem_of(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"answered {response.status_code}"


SILENCE = 60.0  # seconds without a sign of life after which the connection counts as lost


def numbers_in(transport: Transport, path: str) -> Iterator[int]:
    """The number of the last entry whenever there is a new one; connects again when the connection ends."""
    last = 0
    lost_at: float | None = None
    while True:
        try:
            for seq in connection(transport, path):
                lost_at = None
                if seq > last:
                    last = seq
                    yield seq
            trouble: Exception = ConnectionError(f"{transport.url}: ended the connection")
        except httpx.TransportError as error:
            trouble = error
        now = time.monotonic()
        lost_at = now if lost_at is None else lost_at
        if now - lost_at > transport.patience:
            raise ConnectionError(f"{transport.url}: {trouble}") from trouble
        time.sleep(min(LONGEST_PAUSE, transport.patience))


def connection(transport: Transport, path: str) -> Iterator[int]:
    """The numbers that one connection tells."""
    with transport.http.stream("GET", path, timeout=httpx.Timeout(10.0, read=SILENCE)) as response:
        if not response.is_success:
            response.read()
        checked(response)
        for line in response.iter_lines():
            if line.startswith("data:"):
                yield int(json.loads(line.removeprefix("data:"))["seq"])
