"""Routes for those who run the server: alive, ready, metrics."""

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from spillover.http.access import caller_of, require_scope
from spillover.http.answer import Json
from spillover.http.guarded_route import REFUSALS
from spillover.http.metrics import MEDIA_TYPE
from spillover.http.models import HealthModel
from spillover.http.problem import Problem

router = APIRouter(tags=["operations"])
WARMING = "the server is getting ready: on a new machine it compiles for about a minute, and decisions wait until then"


@router.get("/v1/health", response_model=HealthModel)
async def health() -> Json:
    """The process is alive."""
    return Json({"status": "ok"})


@router.get("/v1/ready", response_model=HealthModel, responses={503: REFUSALS[503]})
async def ready(request: Request) -> Json:
    """Decisions are answered at once: what they need is compiled, and the log can be written."""
    door = request.app.state.door
    if not door.ready.is_set():
        raise Problem(503, WARMING, headers={"Retry-After": "1"})
    await run_sync(door.service.log.check_ready, limiter=door.lookouts)
    return Json({"status": "ok"})


@router.get(
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
    door = request.app.state.door
    require_scope(caller_of(request, door.tokens, required=door.needs_token), "read", None)
    door.metrics.open_streams.set(len(door.service.open_streams.streams))
    text = await run_sync(door.metrics.text, limiter=door.lookouts)
    return Response(text, headers={"Content-Type": MEDIA_TYPE})
