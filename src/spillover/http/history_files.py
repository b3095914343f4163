"""Routes for files: a history that becomes a stream, and a stream as a file."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from spillover.history.columns import read_columns
from spillover.http.door import Call, Reading, StreamName, Writing
from spillover.http.guarded_route import AdminRoute, GuardedRoute, again, guarded_router
from spillover.http.models import ReceiptModel
from spillover.http.problem import Problem
from spillover.http.reading import At
from spillover.service.errors import Invalid, naming
from spillover.service.settings import PolicyName

importing = guarded_router(AdminRoute, "files")
exporting = guarded_router(GuardedRoute, "files")
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
    call: Writing,
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
) -> Response:
    """Begin a stream with the rounds of a file (CSV, Parquet, Excel), as `spillover next` reads it: the body."""
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
    folder = Path(await run_in_threadpool(tempfile.mkdtemp, prefix="spillover-import-"))
    try:
        path = folder / f"history{ending}"
        await receive_file(request, path)
        return await run_in_threadpool(begin, call, stream, path, settings, filename, reading | {"columns": columns})
    except Invalid as error:  # the file as its owner knows it
        raise Invalid(str(error).replace(str(path), filename), error.field, error.value) from None
    finally:
        await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)


async def receive_file(request: Request, path: Path) -> None:
    """Write the body to a file, piece by piece."""
    with path.open("wb") as file:
        async for piece in request.stream():
            await run_in_threadpool(file.write, piece)


def begin(
    call: Call, stream: str, path: Path, settings: dict[str, Any], name: str, reading: dict[str, Any]
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
    call: Reading,
    stream: StreamName,
    format: Literal["csv", "parquet", "jsonl"] = "csv",
    at: At = None,
    round: Annotated[
        str | None, Query(max_length=40, description="What the decision of this round was made from.")
    ] = None,
) -> Response:
    """The rounds as a file. The header X-Spillover-Command has the command that decides from it, percent-encoded."""
    found = call.service.export(stream, format, at=at, round=round)
    name = quote(f"{stream}.{format}", safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "X-Spillover-Seq": str(found.seq),
        "X-Spillover-Command": quote(found.command, safe=" /=."),
        "X-Spillover-Limits": quote(found.limits, safe=" /=."),
    }
    return Response(found.content, headers=headers, media_type=found.media_type)
