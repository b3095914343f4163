"""Running the application: a server that ends connections that only wait, at its end and when they never ask."""

import asyncio
import gc
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

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
        self.config.app.state.server.listeners.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's connection; it ends if the headers of a request do not arrive in time, for which uvicorn would wait."""

    patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.wait_for_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:  # what came is a part of the headers of a request
            self.wait_for_headers()
        else:
            self.stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_waiting()
        super().connection_lost(exc)

    def wait_for_headers(self) -> None:
        """Start to wait; more of the headers does not prolong it."""
        if self.patience is None:
            seconds = self.config.app.state.server.settings.slowest_headers
            self.patience = self.loop.call_later(seconds, self.transport.close)

    def stop_waiting(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None


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
        http=Connection,
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
