"""Answers: JSON, and errors as problem details (RFC 9457), which say what was given, and what is accepted."""

import json
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import HTTPException, RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from spillover.service import Conflict, Invalid, NotFound, StorageError
from spillover.service.errors import invalid_of, shortened
from spillover.service.events import json_text

MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL = 1_000  # characters


class Json(Response):
    """JSON without NaN or infinities."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content).encode()


class Problem(HTTPException):
    """A request that is refused. field, value: what is wrong, as far as that is one part of the request.

    versions: further members of the answer: what is recorded, and what was given.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        field: str | None = None,
        value: Any = None,
        versions: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.field, self.value, self.versions = field, value, versions


def problem_response(problem: Problem) -> Response:
    """The answer that tells of a problem."""
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status_code).phrase,
        "status": problem.status_code,
        "detail": short_text(problem.detail),
    }
    if problem.field is not None:
        content |= {"field": problem.field, "value": short(problem.value)}
    content |= problem.versions or {}
    body = json.dumps(content, allow_nan=False).encode()  # ASCII only: what was given may be no text at all
    return Response(body, problem.status_code, problem.headers, MEDIA_TYPE)


def short(value: Any) -> Any:
    """A value as JSON if it is a number or a short text; else the beginning of what it looks like."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 2**53:  # also no NaN
        return value
    return shortened(value if isinstance(value, str) else repr(value))


def short_text(text: str) -> str:
    """A message with its middle left out where it is long: what was given may be part of it."""
    return text if len(text) <= LONGEST_DETAIL else f"{text[: LONGEST_DETAIL // 2]} ... {text[-LONGEST_DETAIL // 2 :]}"


async def on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, Invalid)
    return problem_response(Problem(422, str(error), field=error.field, value=error.value))


async def on_not_found(request: Request, error: Exception) -> Response:
    return problem_response(Problem(404, str(error)))


async def on_conflict(request: Request, error: Exception) -> Response:
    assert isinstance(error, Conflict)
    both = None if error.recorded is None else {"recorded": error.recorded, "given": error.given}
    return problem_response(Problem(409, str(error), versions=both))


async def on_storage_error(request: Request, error: Exception) -> Response:
    detail = f"the log cannot be used, and nothing was recorded: {error}"
    return problem_response(Problem(503, detail, headers={"Retry-After": "1"}))


async def on_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await on_invalid(request, invalid_of(error.errors()[0], skip=1))


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    if isinstance(error, Problem):
        return problem_response(error)
    return problem_response(Problem(error.status_code, str(error.detail), headers=error.headers))


async def on_failure(request: Request, error: Exception) -> Response:
    """A defect: it is written to the server's stderr with its place, and said here without."""
    return problem_response(Problem(500, "the server failed; nothing is known to be recorded", headers=FAILED))


FAILED = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "no-store"}
HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    Invalid: on_invalid,
    NotFound: on_not_found,
    Conflict: on_conflict,
    StorageError: on_storage_error,
    RequestValidationError: on_validation,
    StarletteHTTPException: on_http_error,
    Exception: on_failure,
}
