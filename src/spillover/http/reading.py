"""Routes that read: overview, outlook, decisions with their reasons, state, events, changes, audit."""

from dataclasses import asdict
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Path, Query
from fastapi.responses import StreamingResponse

from spillover.http.answer import Json
from spillover.http.door import Reading, StreamName
from spillover.http.guarded_route import GuardedRoute, guarded_router
from spillover.http.models import AuditModel, DecisionList, EventList
from spillover.http.streams import PAGE, Limit
from spillover.service import Decision, NotFound
from spillover.service.overview import POINTS

router = guarded_router(GuardedRoute, "reading")
LAST = 2**62
After = Annotated[int, Query(ge=0, le=LAST, description="The number of the last entry of the page before.")]
At = Annotated[int | None, Query(ge=1, le=LAST, description="As of this entry; left out: now.")]
OneRound = Annotated[str | None, Query(max_length=40, description="This round alone.")]
Anything = dict[str, Any]


@router.get("/streams/{stream}", response_model=Anything)
def overview(call: Reading, stream: StreamName) -> Json:
    """What a page shows of a stream: settings, counts, delays, pending rounds, the latest rounds, credible bands."""
    return Json(call.service.overview(stream))


@router.get("/streams/{stream}/outlook", response_model=Anything)
def outlook(call: Reading, stream: StreamName, at: At = None) -> Json:
    """What would be chosen next, with all reasons, as `spillover next --json` prints it. Nothing is recorded."""
    return Json(call.service.outlook(stream, at))


@router.get("/streams/{stream}/course", response_model=Anything)
def course(call: Reading, stream: StreamName, points: Annotated[int, Query(ge=2, le=1_000)] = POINTS) -> Json:
    """How the estimates have moved, by what is known today."""
    return Json(call.service.course(stream, points))


@router.get("/streams/{stream}/decisions", response_model=DecisionList)
def decisions(call: Reading, stream: StreamName, after: After = 0, limit: Limit = PAGE) -> Json:
    """Decisions in the order in which they were issued."""
    found = call.service.decisions(stream, after, limit + 1)
    lines = [decision_line(decision) for decision in found[:limit]]
    return Json({"decisions": lines, "next": lines[-1]["seq"] if len(found) > limit else None})


def decision_line(decision: Decision) -> dict[str, Any]:
    event = decision.event
    return decision.entry.to_dict() | {"again": True, "round": event.round, "chosen": list(event.chosen)}


@router.get("/streams/{stream}/decisions/{round}", response_model=Anything)
def explain(call: Reading, stream: StreamName, round: Annotated[str, Path(max_length=40)]) -> Json:
    """The answer to a round with all reasons, as they were then: what `spillover next --json` printed."""
    return Json(call.service.explain(stream, round))


@router.get("/streams/{stream}/state", response_model=Anything)
def state(call: Reading, stream: StreamName, at: At = None, round: OneRound = None) -> Json:
    """All rounds (or one), with what is known of them."""
    return Json(call.service.state(stream, at, round))


@router.get("/streams/{stream}/events", response_model=EventList)
def events(call: Reading, stream: StreamName, after: After = 0, limit: Limit = PAGE) -> Json:
    """The log: entries in order."""
    found = call.service.events(stream, after, limit + 1)
    lines = [entry.to_dict() for entry in found[:limit]]
    return Json({"events": lines, "next": lines[-1]["seq"] if len(found) > limit else None})


@router.post("/streams/{stream}/audit", response_model=AuditModel)
def audit(call: Reading, stream: StreamName) -> Json:
    """Check the log of the stream, and make its decisions again."""
    found = call.service.audit(stream)
    return Json(asdict(found) | {"passed": found.passed})


@router.get(
    "/streams/{stream}/changes",
    response_class=StreamingResponse,
    responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
)
async def changes(call: Reading, stream: StreamName) -> StreamingResponse:
    """Server-sent events: the number of the last entry, at once and whenever there is a new one."""
    listeners = call.door.listeners
    listeners.check_room()
    head = await run_sync(call.service.log.head, stream, limiter=call.door.readers)
    if not head.seq:
        raise NotFound(f"stream = {stream!r}: must be the name of a stream")
    return StreamingResponse(listeners.listen(stream, head.seq), media_type="text/event-stream")
