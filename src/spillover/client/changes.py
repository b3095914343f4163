"""Live changes of a stream, read from server-sent events."""

import json
import time
from collections.abc import Iterator

import httpx

from spillover.client.transport import LONGEST_PAUSE, Transport, checked

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
