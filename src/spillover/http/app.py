"""The application, the page of its interface, and the server that runs it."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.routing import BaseRoute
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from spillover import __version__
from spillover.http.access import Guard, ServerSettings
from spillover.http.messages import HANDLERS, Problem
from spillover.http.routes import ROUTERS
from spillover.http.state import Json, ServerState, Watch
from spillover.service import Service

interface = APIRouter(include_in_schema=False)
FILES = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui-standalone-preset.js": "text/javascript",
}
# Swagger UI sets styles from its own script, and shows its signs as data: images
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Spillover: HTTP interface</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
START = 'SwaggerUIBundle({url: "/docs/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null});\n'


@interface.get("/docs/openapi.json")
async def description(request: Request) -> Json:
    """The description in the form that Swagger UI 4 reads."""
    return Json(as_openapi_30(request.app.openapi()))


def as_openapi_30(description: dict[str, Any]) -> dict[str, Any]:
    """The same in the words of OpenAPI 3.0, which has no type null and other words for limits."""
    converted: dict[str, Any] = older(description)
    return converted | {"openapi": "3.0.3"}


def older(part: Any) -> Any:
    if isinstance(part, list):
        return [older(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {name: older(value) for name, value in part.items()}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    for limit, word in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(found.get(limit), int | float) and not isinstance(found[limit], bool):
            found[word], found[limit] = found[limit], True
    kinds = found.get("anyOf")
    if isinstance(kinds, list) and {"type": "null"} in kinds:
        rest = [kind for kind in kinds if kind != {"type": "null"}]
        del found["anyOf"]
        found |= {"nullable": True} | ({"allOf": rest} if len(rest) == 1 else {"anyOf": rest})
    return found


def asset_folder() -> Path:
    return Path(str(files("swagger_ui_bundle"))) / "vendor"


@interface.get("/docs")
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})


@interface.get("/docs/start.js")
async def start() -> Response:
    return Response(START, media_type="text/javascript")


@interface.get("/docs/assets/{name}")
async def asset(name: str) -> FileResponse:
    if name not in FILES:
        raise Problem(404, f"name = {name[:100]!r}: must be one of {', '.join(FILES)}")
    found = next(asset_folder().rglob(name))
    return FileResponse(found, media_type=FILES[name], headers={"Cache-Control": "max-age=86400"})


DESCRIPTION = """Decisions on streams of rounds; outcomes may come late, in parts, twice, or corrected.

Requests are strict: unknown fields, fields given twice, NaN and numbers in quotes are refused. Errors are problem
details (RFC 9457). Every request that records something may carry an Idempotency-Key, to be repeated safely."""


def create_app(
    service: Service,
    settings: ServerSettings | None = None,
    *,
    routes: Sequence[BaseRoute] = (),
    say: Callable[[str], None] = lambda words: None,
) -> FastAPI:
    """The service as an ASGI application.

    routes: further ones, such as those of the page. say: is told, in words, that it compiles and that it is ready.
    """
    server = ServerState(service, settings or ServerSettings(), say)
    app = FastAPI(
        title="Spillover",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        exception_handlers=HANDLERS,
    )
    app.state.server = server
    for router in (*ROUTERS, interface):
        app.router.routes.extend(router.routes)  # in one list: to look into router after router takes longer
    app.router.routes.extend(routes)
    app.add_middleware(Watch, metrics=server.metrics)
    app.add_middleware(Guard, settings=server.settings)
    return app


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Get ready, and look for changes by other servers as long as this one runs."""
    server = app.state.server
    server.begin()
    looking = asyncio.create_task(server.listeners.look())
    try:
        yield
    finally:
        server.end()
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


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
