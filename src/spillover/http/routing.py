"""Routes that check who asks before they read what is asked, and read JSON strictly."""

import json
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from spillover.http.access import caller_of, require_scope
from spillover.http.answers import MEDIA_TYPE, Problem
from spillover.http.models import ProblemDetails
from spillover.service.settings import is_name

DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    403: "The token does not suffice, or the request comes from the page of another server.",
    404: "There is no such stream or round.",
    409: "It contradicts what is recorded.",
    413: "The body is too large.",
    415: "The body must be JSON.",
    422: "A field is not accepted.",
    503: "The log cannot be used; nothing was recorded.",
}
SCHEMA = {"schema": ProblemDetails.model_json_schema()}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {MEDIA_TYPE: SCHEMA}} for status, text in DESCRIPTIONS.items()
}
DEEPEST = 12
SURROGATE = "\\ud"


def again(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The answer to a request that was recorded before."""
    return {200: {"model": model, "description": "It had been recorded before."}}


class StrictRequest(Request):
    """A request whose JSON is parsed strictly."""

    async def json(self) -> Any:
        try:
            return parse(await self.body())
        except BadJson as error:
            raise Problem(400, str(error)) from None


class GuardedRoute(APIRoute):
    """A route that needs a scope. Those that read have threads of their own, so that they cannot hold up the others."""

    needed = "read"
    filtered = False  # whether answers about no one stream show a caller only his own

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        reads = self.needed == "read" and not iscoroutinefunction(endpoint)
        super().__init__(path, among_readers(endpoint) if reads else endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            server = request.app.state.server
            caller = caller_of(request, server.tokens, required=server.needs_token)
            stream = request.path_params.get("stream")
            if stream is not None or not self.filtered:
                require_scope(caller, self.needed, stream)
            if stream is not None and not is_name(stream):
                raise Problem(404, f"stream = {stream[:200]!r}: must be the name of a stream")
            request.state.caller = caller
            if self.body_field is not None:
                require_json(request)
            return await handle(StrictRequest(request.scope, request.receive))

        return guarded


def among_readers(endpoint: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The same function in one of the threads for reading."""

    @wraps(endpoint)
    async def reading(**given: Any) -> Any:
        return await run_sync(partial(endpoint, **given), limiter=given["request"].app.state.server.readers)

    return reading


class FilteredRoute(GuardedRoute):
    filtered = True


class WritingRoute(GuardedRoute):
    needed = "write"


class AdminRoute(GuardedRoute):
    needed = "admin"


def require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, f"Content-Type = {kind[:100]!r}: must be application/json")


def router_of(tag: str, **options: Any) -> APIRouter:
    """A router that calls its operations as their functions are called."""
    return APIRouter(tags=[tag], generate_unique_id_function=lambda route: route.name, **options)


def guarded_router(route: type[GuardedRoute], tag: str) -> APIRouter:
    """A router whose routes need a scope."""
    return router_of(tag, prefix="/v1", route_class=route, responses=REFUSALS)


# --- JSON as it must be: no field twice, no NaN, no nesting without end, only text that can be written ---------------


class BadJson(ValueError):
    """A body that is not JSON, or JSON that can be understood in two ways."""


def parse(body: bytes) -> Any:
    """The value in a body.

    >>> parse(b'{"z": 0.5}')
    {'z': 0.5}
    >>> parse(b'{"z": 0.5, "z": 0.7}')
    Traceback (most recent call last):
    spillover.http.routing.BadJson: z: must be given once
    """
    try:
        text = body.decode()
        found = json.loads(text, object_pairs_hook=without_repeats, parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise BadJson(f"the body: must be UTF-8 ({error.reason} at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"the body: must be JSON ({error})") from None
    except RecursionError:
        raise BadJson(f"the body: must be nested {DEEPEST} levels deep at most") from None
    except BadJson:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise BadJson(f"the body: must be JSON ({error})") from None
    check_depth(found)
    if SURROGATE in text.lower():
        check_text(found)
    return found


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs, in time linear in their number: it runs before anybody else is served."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadJson(f"{name[:100]}: must be given once")
        found[name] = value
    return found


def refuse_constant(name: str) -> Any:
    raise BadJson(f"the body: must be JSON, which has no {name}")


def check_depth(value: Any) -> None:
    """Level by level, so that no depth can exhaust the stack."""
    level = [value]
    for _ in range(DEEPEST):
        level = [item for part in level for item in inner(part)]
        if not level:
            return
    raise BadJson(f"the body: must be nested {DEEPEST} levels deep at most")


def inner(value: Any) -> Any:
    """The lists and objects in a list or an object."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def check_text(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadJson("the body: must be text: half of a surrogate pair stands alone") from None
