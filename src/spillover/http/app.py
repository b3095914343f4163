"""The application: routes, and the layers around them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.routing import BaseRoute

from spillover import __version__
from spillover.http import api_page
from spillover.http.answers import HANDLERS
from spillover.http.guard import Guard, ServerSettings
from spillover.http.metrics import Watch
from spillover.http.routes import ROUTERS
from spillover.http.state import ServerState
from spillover.service import Service

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
    for router in (*ROUTERS, api_page.router):
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
