"""What requests and answers look like. Requests are strict, errors are problem details (RFC 9457)."""

import json
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from fastapi.exceptions import HTTPException, RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException as StarletteHTTPException

from spillover.history.columns import MOST_ARMS
from spillover.service import Conflict, Invalid, NotFound, StorageError
from spillover.service.errors import invalid_of, shortened
from spillover.service.rounds import MOST_ITEMS
from spillover.service.settings import Name, Settings, SomeSettings

LARGEST_ROUND = 10**15
Round = Annotated[
    Annotated[int, Field(ge=-LARGEST_ROUND, le=LARGEST_ROUND)] | Annotated[str, Field(min_length=1, max_length=40)],
    Field(description="A number, a date, a time, a month (2026-03), a quarter (2026Q1) or a week (2026-W05)."),
]
Arms = Annotated[list[Name], Field(max_length=MOST_ARMS)]
Context = Annotated[dict[Name, float | Name], Field(max_length=MOST_ARMS)]
Reason = Annotated[str, Field(max_length=1_000, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Strict(BaseModel):
    """A request."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class SettingsChange(SomeSettings):
    """Only the fields that are to change."""

    read_at: int | None = Field(
        None,
        ge=1,
        lt=2**62,
        description="The number of the entry as of which the settings were read; 409 if they were changed since.",
    )


class NewSettings(Settings):
    """Settings of a new stream."""


class NewStream(Strict):
    name: Name
    settings: NewSettings


class Ask(Strict):
    """Decide a round."""

    round: Round
    unavailable: Arms = []
    context: Context = {}


class Execution(Strict):
    """What was done: the decision as issued (neither chosen nor cancelled), other arms, or nothing (cancelled).

    amounts: by arm, instead of chosen, in a stream that has amounts (doses). revision: one more than the last corrects
    what was recorded.
    """

    round: Round
    chosen: Arms | None = None
    amounts: Annotated[dict[Name, float], Field(max_length=MOST_ARMS)] | None = None
    cancelled: bool = False
    context: Context | None = None
    revision: int = Field(1, ge=1, lt=2**31, description="The first record is revision 1; 2 corrects it.")
    reason: Reason = Field("", description="Why it is corrected.")


class OutcomeItem(Strict):
    """An outcome, or a part of one; arm is left out where the stream has one outcome for all arms."""

    round: Round
    arm: Name | None = None
    z: float | None = None
    y: float | None = None


class Outcomes(Strict):
    outcomes: Annotated[list[OutcomeItem], Field(min_length=1, max_length=MOST_ITEMS)]


class Values(Strict):
    """What is corrected; null withdraws a value."""

    z: float | None = None
    y: float | None = None


class Correction(Strict):
    round: Round
    arm: Name | None = None
    revision: int = Field(ge=1, lt=2**31, description="One more than the last; the first report is revision 1.")
    values: Values
    reason: Reason = ""


class Expiration(Strict):
    round: Round
    reason: Reason = ""


# --- answers ---------------------------------------------------------------------------------------------------------


class ProblemDetails(BaseModel):
    """RFC 9457; field and value say what is wrong, where that is one part of the request.

    recorded, given: both versions, where the request is another version of what is recorded (409).
    """

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None
    recorded: Any = None
    given: Any = None


class EntryModel(BaseModel):
    """An event as it is stored."""

    stream: str
    seq: int
    key: str
    request: str
    time: str
    author: str
    previous: str
    kind: str
    event: dict[str, Any]
    attachment: str
    digest: str


class ReceiptModel(EntryModel):
    again: bool = Field(description="Whether it had been recorded before this request.")


class DecisionModel(ReceiptModel):
    round: str
    chosen: list[str]


class StreamLine(BaseModel):
    name: str
    seq: int


class StreamList(BaseModel):
    streams: list[StreamLine]
    next: str | None


class DecisionList(BaseModel):
    decisions: list[DecisionModel]
    next: int | None


class EventList(BaseModel):
    events: list[EntryModel]
    next: int | None


class StatusModel(BaseModel):
    status: Literal["recorded", "duplicate", "late", "refused"]
    reason: str
    field: str | None
    flag: str = Field(description="Why a recorded outcome is far from what is usual; empty if it is not.")


class ReportModel(BaseModel):
    seq: int | None
    again: bool
    statuses: list[StatusModel]


class AuditModel(BaseModel):
    stream: str
    passed: bool
    entries: int
    decisions: int
    skipped: int
    problems: list[str]


class HealthModel(BaseModel):
    status: Literal["ok"]


MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL = 1_000  # characters


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


def problem_of(error: Exception) -> Problem:
    """What to answer to an error; of a defect nothing is said, its place is written to the server's stderr."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        error = invalid_of(error.errors()[0], skip=1)
    if isinstance(error, Invalid):
        return Problem(422, str(error), field=error.field, value=error.value)
    if isinstance(error, NotFound):
        return Problem(404, str(error))
    if isinstance(error, Conflict):
        both = None if error.recorded is None else {"recorded": error.recorded, "given": error.given}
        return Problem(409, str(error), versions=both)
    if isinstance(error, StorageError):
        detail = f"the log cannot be used, and nothing was recorded: {error}"
        return Problem(503, detail, headers={"Retry-After": "1"})
    if isinstance(error, StarletteHTTPException):
        return Problem(error.status_code, str(error.detail), headers=error.headers)
    return Problem(500, "the server failed; nothing is known to be recorded", headers=FAILED)


async def on_error(request: Request, error: Exception) -> Response:
    return problem_response(problem_of(error))


FAILED = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "no-store"}
ERRORS = (Invalid, NotFound, Conflict, StorageError, RequestValidationError, StarletteHTTPException, Exception)
HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = dict.fromkeys(
    ERRORS, on_error
)
