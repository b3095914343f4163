"""Running the application: a server that ends its waiting connections when it is told to stop."""

import gc
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

LONGEST_STOP = 10  # seconds that running requests have to end
BACKLOG = 2048
GENERATIONS = (100_000, 20, 100)  # thresholds of the garbage collector, far above Python's own


def collect_rarely() -> None:
    """Look for garbage rarely: a look at all objects stops every thread for 0.1 s, and answers leave few cycles."""
    gc.freeze()
    gc.set_threshold(*GENERATIONS)


class Server(uvicorn.Server):
    """uvicorn's server; connections that wait for changes end first, or it would wait for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.door.listeners.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: one that the system chooses. An address that is taken is an OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY only if named
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    found.set_inheritable(True)
    return found


def server_of(app: FastAPI | Callable[..., Any], **options: Any) -> Server:
    """A server that says nothing of requests: what a log could show of them is in the metrics."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=LONGEST_STOP,
        h11_max_incomplete_event_size=64 * 1024,
        **options,
    )
    return Server(config)
