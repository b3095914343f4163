"""Routes: create streams, list them, change their settings."""

from typing import Annotated

from fastapi import Query, Response

from spillover.http.answer import Json
from spillover.http.door import Reading, StreamName, Writing
from spillover.http.guarded_route import AdminRoute, FilteredRoute, again, guarded_router
from spillover.http.models import NewStream, ReceiptModel, SettingsChange, StreamList
from spillover.service.events import Head

PAGE = 100
reading = guarded_router(FilteredRoute, "streams")
admin = guarded_router(AdminRoute, "streams")
# what can be done with a new stream, for programs that follow the description
NEXT_STEPS = ("overview", "outlook", "decide", "execute", "report", "correct", "expire", "change_settings", "audit")
FOLLOWING = {
    name: {"operationId": name, "parameters": {"stream": "$response.body#/stream"}}
    for name in (*NEXT_STEPS, "state", "events", "decisions", "export")
}
CREATED = again(ReceiptModel) | {201: {"links": FOLLOWING}}
Limit = Annotated[int, Query(ge=1, le=1_000, description="Items of an answer.")]


@reading.get("/streams", response_model=StreamList)
def list_streams(
    call: Reading,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f]*$")] = "",
    limit: Limit = PAGE,
) -> Json:
    """The streams by name, those that the token is for."""
    found: list[Head] = []
    while len(found) <= limit and (heads := call.service.log.streams(after, limit + 1)):
        found += [head for head in heads if call.caller.may("read", head.stream)]
        after = heads[-1].stream
    lines = [{"name": head.stream, "seq": head.seq} for head in found[:limit]]
    return Json({"streams": lines, "next": lines[-1]["name"] if len(found) > limit else None})


@admin.post("/streams", response_model=ReceiptModel, status_code=201, responses=CREATED)
def create_stream(call: Writing, body: NewStream) -> Response:
    """Begin a stream. The same name with the same settings again is answered with the stream that there is."""
    return call.receipt(call.service.create_stream(body.name, body.settings, **call.recorded_by))


@admin.patch("/streams/{stream}/settings", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel))
def change_settings(call: Writing, stream: StreamName, body: SettingsChange) -> Response:
    """Decide differently from now on; fields that are not given stay as they are."""
    changes = body.model_dump(exclude_unset=True, exclude={"read_at"})
    return call.receipt(call.service.change_settings(stream, changes, read_at=body.read_at, **call.recorded_by))
