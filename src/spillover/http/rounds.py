"""Routes that record what happens: decide, execute, report, correct, expire."""

from collections import Counter

from fastapi import Response

from spillover.http.answer import Json
from spillover.http.door import StreamName, Writing
from spillover.http.guarded_route import WritingRoute, again, guarded_router
from spillover.http.models import (
    Ask,
    Correction,
    DecisionModel,
    Execution,
    Expiration,
    Outcomes,
    ReceiptModel,
    ReportModel,
)
from spillover.service import Receipt

router = guarded_router(WritingRoute, "rounds")


@router.post(
    "/streams/{stream}/decisions", response_model=DecisionModel, status_code=201, responses=again(DecisionModel)
)
def decide(call: Writing, stream: StreamName, body: Ask) -> Response:
    """The decision of a round: made once; whoever asks again gets the same one."""
    decision = call.service.decide(
        stream, body.round, unavailable=body.unavailable, context=body.context, **call.recorded_by
    )
    event = decision.event
    receipt = Receipt(entry=decision.entry, again=decision.again)
    return call.receipt(receipt, round=event.round, chosen=event.chosen)


@router.post(
    "/streams/{stream}/executions", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel)
)
def execute(call: Writing, stream: StreamName, body: Execution) -> Response:
    """Say what was done in a round; with the next revision, correct what was said."""
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


@router.post("/streams/{stream}/outcomes", response_model=ReportModel)
def report(call: Writing, stream: StreamName, body: Outcomes) -> Json:
    """Report outcomes, 1,000 at most; each gets a status, and one that is refused does not stop the others."""
    found = call.service.report(stream, body.outcomes, **call.recorded_by)
    seq = None if found.entry is None else found.entry.seq
    for status, count in Counter(status.status for status in found.statuses).items():
        call.door.metrics.outcomes.labels(status).inc(count)
    return Json({"seq": seq, "again": found.again, "statuses": [status.to_dict() for status in found.statuses]})


@router.post(
    "/streams/{stream}/corrections", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel)
)
def correct(call: Writing, stream: StreamName, body: Correction) -> Response:
    """Correct an outcome that was reported; null withdraws a value."""
    values = body.values.model_dump(exclude_unset=True)
    receipt = call.service.correct(
        stream, body.round, body.arm, values, revision=body.revision, reason=body.reason, **call.recorded_by
    )
    return call.receipt(receipt)


@router.post(
    "/streams/{stream}/expirations", response_model=ReceiptModel, status_code=201, responses=again(ReceiptModel)
)
def expire(call: Writing, stream: StreamName, body: Expiration) -> Response:
    """Say that nothing more of a round will arrive."""
    return call.receipt(call.service.expire(stream, body.round, reason=body.reason, **call.recorded_by))
