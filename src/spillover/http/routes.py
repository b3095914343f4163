"""The routes: streams, what is read of them, what happens in rounds, files, and the state of the server."""

import shutil
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from spillover.history.columns import read_columns
from spillover.http.access import caller_of, require_scope
from spillover.http.answers import Json, Problem
from spillover.http.metrics import MEDIA_TYPE
from spillover.http.models import (
    Ask,
    AuditModel,
    Correction,
    DecisionList,
    DecisionModel,
    EventList,
    Execution,
    Expiration,
    HealthModel,
    NewStream,
    Outcomes,
    ReceiptModel,
    ReportModel,
    SettingsChange,
    StreamList,
)
from spillover.http.routing import (
    REFUSALS,
    AdminRoute,
    FilteredRoute,
    GuardedRoute,
    WritingRoute,
    again,
    guarded_router,
    router_of,
)
from spillover.http.state import Call, KeyHeader, StreamName, call_of
from spillover.service import Decision, NotFound, Receipt
from spillover.service.errors import Invalid, naming
from spillover.service.events import Head
from spillover.service.overview import POINTS
from spillover.service.settings import PolicyName

listing = guarded_router(FilteredRoute, "streams")
admin = guarded_router(AdminRoute, "streams")
reading = guarded_router(GuardedRoute, "reading")
writing = guarded_router(WritingRoute, "rounds")
importing = guarded_router(AdminRoute, "files")
exporting = guarded_router(GuardedRoute, "files")
operations = router_of("operations")
ROUTERS = (listing, admin, reading, writing, importing, exporting, operations)
PAGE = 100
# what can be done with a new stream, for programs that follow the description
NEXT_STEPS = ("overview", "outlook", "decide", "execute", "report", "correct", "expire", "change_settings", "audit")
FOLLOWING = {
    name: {"operationId": name, "parameters": {"stream": "$response.body#/stream"}}
    for name in (*NEXT_STEPS, "state", "events", "decisions", "export")
}
CREATED = again(ReceiptModel) | {201: {"links": FOLLOWING}}
Limit = Annotated[int, Query(ge=1, le=1_000, description="Items of an answer.")]


@listing.get("/streams", response_model=StreamList)
def list_streams(
    request: Request,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f]*$")] = "",
    limit: Limit = PAGE,
) -> Json:
    """The streams by name, those that the token is for."""
    call = call_of(request)
    found: list[Head] = []
    while len(found) <= limit and (heads := call.service.log.streams(after, limit + 1)):
        found += [head for head in heads if call.caller.may("read", head.stream)]
        after = heads[-1].stream
    lines = [{"name": head.stream, "seq": head.seq} for head in found[:limit]]
    return Json({"streams": lines, "next": lines[-1]["name"] if len(found) > limit else None})


@admin.post("/streams", response_model=ReceiptModel, status_code=201, responses=CREATED)
def create_stream(request: Request, body: NewStream, key: KeyHeader = None) -> Response:
    """Begin a stream. The same name with the same settings again is answered with the stream that there is."""
    call = call_of(request, key)
    return call.receipt(call.service.create_stream(body.name, body.settings, **call.recorded_by))


@admin.patch("/streams/{stream}/settings", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel))
def change_settings(request: Request, stream: StreamName, body: SettingsChange, key: KeyHeader = None) -> Response:
    """Decide differently from now on; fields that are not given stay as they are."""
    call = call_of(request, key)
    changes = body.model_dump(exclude_unset=True, exclude={"read_at"})
    return call.receipt(call.service.change_settings(stream, changes, read_at=body.read_at, **call.recorded_by))


# --- reading ---------------------------------------------------------------------------------------------------------


LAST = 2**62
After = Annotated[int, Query(ge=0, le=LAST, description="The number of the last entry of the page before.")]
At = Annotated[int | None, Query(ge=1, le=LAST, description="As of this entry; left out: now.")]
OneRound = Annotated[str | None, Query(max_length=40, description="This round alone.")]
Anything = dict[str, Any]


@reading.get("/streams/{stream}", response_model=Anything)
def overview(request: Request, stream: StreamName) -> Json:
    """What a page shows of a stream: settings, counts, delays, pending rounds, the latest rounds, credible bands."""
    call = call_of(request)
    return Json(call.service.overview(stream))


@reading.get("/streams/{stream}/outlook", response_model=Anything)
def outlook(request: Request, stream: StreamName, at: At = None) -> Json:
    """What would be chosen next, with all reasons, as `spillover next --json` prints it. Nothing is recorded."""
    call = call_of(request)
    return Json(call.service.outlook(stream, at))


@reading.get("/streams/{stream}/course", response_model=Anything)
def course(request: Request, stream: StreamName, points: Annotated[int, Query(ge=2, le=1_000)] = POINTS) -> Json:
    """How the estimates have moved, by what is known today."""
    call = call_of(request)
    return Json(call.service.course(stream, points))


@reading.get("/streams/{stream}/decisions", response_model=DecisionList)
def decisions(request: Request, stream: StreamName, after: After = 0, limit: Limit = PAGE) -> Json:
    """Decisions in the order in which they were issued."""
    call = call_of(request)
    found = call.service.decisions(stream, after, limit + 1)
    lines = [decision_line(decision) for decision in found[:limit]]
    return Json({"decisions": lines, "next": lines[-1]["seq"] if len(found) > limit else None})


def decision_line(decision: Decision) -> dict[str, Any]:
    event = decision.event
    return decision.entry.to_dict() | {"again": True, "round": event.round, "chosen": list(event.chosen)}


@reading.get("/streams/{stream}/decisions/{round}", response_model=Anything)
def explain(request: Request, stream: StreamName, round: Annotated[str, Path(max_length=40)]) -> Json:
    """The answer to a round with all reasons, as they were then: what `spillover next --json` printed."""
    call = call_of(request)
    return Json(call.service.explain(stream, round))


@reading.get("/streams/{stream}/state", response_model=Anything)
def state(request: Request, stream: StreamName, at: At = None, round: OneRound = None) -> Json:
    """All rounds (or one), with what is known of them."""
    call = call_of(request)
    return Json(call.service.state(stream, at, round))


@reading.get("/streams/{stream}/events", response_model=EventList)
def events(request: Request, stream: StreamName, after: After = 0, limit: Limit = PAGE) -> Json:
    """The log: entries in order."""
    call = call_of(request)
    found = call.service.events(stream, after, limit + 1)
    lines = [entry.to_dict() for entry in found[:limit]]
    return Json({"events": lines, "next": lines[-1]["seq"] if len(found) > limit else None})


@reading.post("/streams/{stream}/audit", response_model=AuditModel)
def audit(request: Request, stream: StreamName) -> Json:
    """Check the log of the stream, and make its decisions again."""
    call = call_of(request)
    found = call.service.audit(stream)
    return Json(asdict(found) | {"passed": found.passed})


@reading.get(
    "/streams/{stream}/changes",
    response_class=StreamingResponse,
    responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
)
async def changes(request: Request, stream: StreamName) -> StreamingResponse:
    """Server-sent events: the number of the last entry, at once and whenever there is a new one."""
    call = call_of(request)
    listeners = call.server.listeners
    listeners.check_room()
    head = await run_sync(call.service.log.head, stream, limiter=call.server.readers)
    if not head.seq:
        raise NotFound(f"stream = {stream!r}: must be the name of a stream")
    return StreamingResponse(listeners.listen(stream, head.seq), media_type="text/event-stream")


# --- rounds ----------------------------------------------------------------------------------------------------------


@writing.post(
    "/streams/{stream}/decisions", response_model=DecisionModel, status_code=201, responses=again(DecisionModel)
)
def decide(request: Request, stream: StreamName, body: Ask, key: KeyHeader = None) -> Response:
    """The decision of a round: made once; whoever asks again gets the same one."""
    call = call_of(request, key)
    decision = call.service.decide(
        stream, body.round, unavailable=body.unavailable, context=body.context, **call.recorded_by
    )
    event = decision.event
    receipt = Receipt(entry=decision.entry, again=decision.again)
    return call.receipt(receipt, round=event.round, chosen=event.chosen)


@writing.post(
    "/streams/{stream}/executions", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel)
)
def execute(request: Request, stream: StreamName, body: Execution, key: KeyHeader = None) -> Response:
    """Say what was done in a round; with the next revision, correct what was said."""
    call = call_of(request, key)
    receipt = call.service.execute(
        stream,
        body.round,
        body.chosen,
        amounts=body.amounts,
        cancelled=body.cancelled,
        context=body.context,
        revision=body.revision,
        reason=body.reason,
        **call.recorded_by,
    )
    return call.receipt(receipt)


@writing.post("/streams/{stream}/outcomes", response_model=ReportModel)
def report(request: Request, stream: StreamName, body: Outcomes, key: KeyHeader = None) -> Json:
    """Report outcomes, 1,000 at most; each gets a status, and one that is refused does not stop the others."""
    call = call_of(request, key)
    outcomes: Any = body.outcomes  # they have the fields of an `Outcome`
    found = call.service.report(stream, outcomes, **call.recorded_by)
    seq = None if found.entry is None else found.entry.seq
    for status, count in Counter(status.status for status in found.statuses).items():
        call.server.metrics.outcomes.labels(status).inc(count)
    return Json({"seq": seq, "again": found.again, "statuses": [status.to_dict() for status in found.statuses]})


@writing.post(
    "/streams/{stream}/corrections", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel)
)
def correct(request: Request, stream: StreamName, body: Correction, key: KeyHeader = None) -> Response:
    """Correct an outcome that was reported; null withdraws a value."""
    call = call_of(request, key)
    values = body.values.model_dump(exclude_unset=True)
    receipt = call.service.correct(
        stream, body.round, body.arm, values, revision=body.revision, reason=body.reason, **call.recorded_by
    )
    return call.receipt(receipt)


@writing.post(
    "/streams/{stream}/expirations", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel)
)
def expire(request: Request, stream: StreamName, body: Expiration, key: KeyHeader = None) -> Response:
    """Say that nothing more of a round will arrive."""
    call = call_of(request, key)
    return call.receipt(call.service.expire(stream, body.round, reason=body.reason, **call.recorded_by))


# --- files -----------------------------------------------------------------------------------------------------------


Text = Annotated[str | None, Query(max_length=2_000, pattern=r"^[^\x00-\x1f]*$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Ends = Annotated[list[Number], Query(max_length=2, description="The lower end, and again: the upper end.")]
ENDINGS = (".csv", ".csv.gz", ".parquet", ".xlsx")
ANY_FILE = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


@importing.post(
    "/streams/{stream}/import",
    response_model=ReceiptModel,
    status_code=201,
    responses=again(ReceiptModel),
    openapi_extra={"requestBody": ANY_FILE | {"required": True}},
)
async def import_file(
    request: Request,
    stream: StreamName,
    budget: Annotated[int, Query(ge=1, le=2_000, description="How many arms may be chosen, at most.")],
    filename: Annotated[
        str, Query(max_length=200, description="Its ending says what it is: " + ", ".join(ENDINGS))
    ] = "history.csv",
    policy: Annotated[PolicyName | None, Query()] = None,
    set: Annotated[list[str], Query(max_length=100, description="NAME=VALUE; repeatable.")] = [],  # noqa: B006
    context: Annotated[list[str], Query(max_length=100, description="Columns known before each decision.")] = [],  # noqa: B006
    columns: Text = None,
    reward_range: Ends = [],  # noqa: B006
    overall_range: Ends = [],  # noqa: B006
    minimise: bool = False,
    doses: Annotated[bool, Query(description="Decisions are amounts.")] = False,
    dates: Literal["day-first", "month-first"] | None = None,
    decimal: Literal["point", "comma"] | None = None,
    key: KeyHeader = None,
) -> Response:
    """Begin a stream with the rounds of a file (CSV, Parquet, Excel), as `spillover next` reads it: the body."""
    call = call_of(request, key)
    ending = next((known for known in ENDINGS if filename.lower().endswith(known)), None)
    if ending is None:
        raise Problem(
            422, f"filename = {filename!r}: must end in {', '.join(ENDINGS)}", field="filename", value=filename
        )
    settings: dict[str, Any] = {"budget": budget, "set": set} | ({"policy": policy} if policy else {})
    for name, ends in (("reward_range", reward_range), ("overall_range", overall_range)):
        if len(ends) == 1:
            raise Problem(422, f"{name} = {ends}: must be two numbers, the lower one first", field=name, value=ends)
        settings |= {name: tuple(ends)} if ends else {}
    reading = {"context": context or None, "minimise": minimise, "doses": doses, "dates": dates, "decimal": decimal}
    folder = FilePath(await run_in_threadpool(tempfile.mkdtemp, prefix="spillover-import-"))
    try:
        path = folder / f"history{ending}"
        await receive_file(request, path)
        return await run_in_threadpool(begin, call, stream, path, settings, filename, reading | {"columns": columns})
    except Invalid as error:  # the file as its owner knows it
        raise Invalid(str(error).replace(str(path), filename), error.field, error.value) from None
    finally:
        await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)


async def receive_file(request: Request, path: FilePath) -> None:
    """Write the body to a file, piece by piece."""
    with path.open("wb") as file:
        async for piece in request.stream():
            await run_in_threadpool(file.write, piece)


def begin(
    call: Call, stream: str, path: FilePath, settings: dict[str, Any], name: str, reading: dict[str, Any]
) -> Response:
    with naming("columns"):
        reading["columns"] = None if reading["columns"] is None else read_columns(reading["columns"])
    receipt = call.service.import_history(stream, path, settings, source=name, **call.recorded_by, **reading)
    return call.receipt(receipt)


@exporting.get(
    "/streams/{stream}/export",
    response_class=Response,
    responses={
        200: {
            "description": "The file.",
            "content": {"text/csv": {}, "application/x-ndjson": {}, "application/vnd.apache.parquet": {}},
        }
    },
)
def export(
    request: Request,
    stream: StreamName,
    format: Literal["csv", "parquet", "jsonl"] = "csv",
    at: At = None,
    round: Annotated[
        str | None, Query(max_length=40, description="What the decision of this round was made from.")
    ] = None,
) -> Response:
    """The rounds as a file. The header X-Spillover-Command has the command that decides from it, percent-encoded."""
    call = call_of(request)
    found = call.service.export(stream, format, at=at, round=round)
    name = quote(f"{stream}.{format}", safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "X-Spillover-Seq": str(found.seq),
        "X-Spillover-Command": quote(found.command, safe=" /=."),
        "X-Spillover-Limits": quote(found.limits, safe=" /=."),
    }
    return Response(found.content, headers=headers, media_type=found.media_type)


# --- the server ------------------------------------------------------------------------------------------------------


WARMING = "the server is getting ready: on a new machine it compiles for about a minute, and decisions wait until then"


@operations.get("/v1/health", response_model=HealthModel)
async def health() -> Json:
    """The process is alive."""
    return Json({"status": "ok"})


@operations.get("/v1/ready", response_model=HealthModel, responses={503: REFUSALS[503]})
async def ready(request: Request) -> Json:
    """Decisions are answered at once: what they need is compiled, and the log can be written."""
    server = request.app.state.server
    if not server.ready.is_set():
        raise Problem(503, WARMING, headers={"Retry-After": "1"})
    await run_sync(server.service.log.check_ready, limiter=server.lookouts)
    return Json({"status": "ok"})


@operations.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Figures for Prometheus.", "content": {"text/plain": {}}},
        401: REFUSALS[401],
        403: REFUSALS[403],
    },
)
async def metrics(request: Request) -> Response:
    """Requests and their times, events, folds, open streams; needs the scope read for all streams."""
    server = request.app.state.server
    require_scope(caller_of(request, server.tokens, required=server.needs_token), "read", None)
    server.metrics.open_streams.set(len(server.service.open_streams.streams))
    text = await run_sync(server.metrics.text, limiter=server.lookouts)
    return Response(text, headers={"Content-Type": MEDIA_TYPE})
