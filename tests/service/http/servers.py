"""A running server for tests: on 127.0.0.1, at a port that the system chooses."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from spillover.http import ServerSettings, create_app
from spillover.http.app import listening_socket, server_of
from spillover.service import Service, SqliteLog
from tests.waiting import HANG, wait_until

PATIENCE = HANG


@contextmanager
def running(
    where: Path | Service,
    settings: ServerSettings | None = None,
    *,
    port: int = 0,
    until: Callable[[FastAPI], bool] = lambda app: app.state.server.ready.is_set(),
    **options: Any,
) -> Iterator[str]:
    """The base URL of a server in a thread. where: a service, or a folder for a database. until: when to begin."""
    service = where if isinstance(where, Service) else Service(SqliteLog(where / "decisions.db"))
    app = create_app(service, settings, **options)
    server = server_of(app)
    socket = listening_socket("127.0.0.1", port)
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started and until(app))
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        socket.close()
        if not isinstance(where, Service):
            service.close()
        assert not thread.is_alive(), "the server did not stop"


@contextmanager
def connected(where: Path | Service, settings: ServerSettings | None = None, **options: Any) -> Iterator[httpx.Client]:
    """An HTTP client of a running server."""
    with running(where, settings, **options) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        yield client
