"""A running server for tests: on 127.0.0.1, at a port that the system chooses."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from spillover.http import ServerSettings, create_app
from spillover.http.serving import Server, listening_socket, server_of
from spillover.service import Service, SqliteLog
from tests.waiting import HANG

PATIENCE = HANG


@contextmanager
def running(
    where: Path | Service, settings: ServerSettings | None = None, *, port: int = 0, **options: Any
) -> Iterator[str]:
    """The base URL of a server in a thread. where: a service, or a folder for a database."""
    service = where if isinstance(where, Service) else Service(SqliteLog(where / "decisions.db"))
    server = server_of(create_app(service, settings, **options))
    socket = listening_socket("127.0.0.1", port)
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        wait_for(server)
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        socket.close()
        if not isinstance(where, Service):
            service.close()
        assert not thread.is_alive(), "the server did not stop"


def wait_for(server: Server) -> None:
    end = time.monotonic() + PATIENCE
    while not server.started:
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.005)


@contextmanager
def connected(where: Path | Service, settings: ServerSettings | None = None, **options: Any) -> Iterator[httpx.Client]:
    """An HTTP client of a running server."""
    with running(where, settings, **options) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        yield client
