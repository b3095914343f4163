"""The page of the HTTP interface: Swagger UI, from an installed package; nothing is loaded from outside."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse

from spillover.http.answers import Json, Problem

router = APIRouter(include_in_schema=False)
FILES = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui-standalone-preset.js": "text/javascript",
}
# Swagger UI sets styles from its own script, and shows its signs as data: images
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Spillover: HTTP interface</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
START = 'SwaggerUIBundle({url: "/docs/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null});\n'


@router.get("/docs/openapi.json")
async def description(request: Request) -> Json:
    """The description in the form that Swagger UI 4 reads."""
    return Json(as_openapi_30(request.app.openapi()))


def as_openapi_30(description: dict[str, Any]) -> dict[str, Any]:
    """The same in the words of OpenAPI 3.0, which has no type null and other words for limits."""
    converted: dict[str, Any] = older(description)
    return converted | {"openapi": "3.0.3"}


def older(part: Any) -> Any:
    if isinstance(part, list):
        return [older(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {name: older(value) for name, value in part.items()}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    for limit, word in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(found.get(limit), int | float) and not isinstance(found[limit], bool):
            found[word], found[limit] = found[limit], True
    kinds = found.get("anyOf")
    if isinstance(kinds, list) and {"type": "null"} in kinds:
        rest = [kind for kind in kinds if kind != {"type": "null"}]
        del found["anyOf"]
        found |= {"nullable": True} | ({"allOf": rest} if len(rest) == 1 else {"anyOf": rest})
    return found


def asset_folder() -> Path:
    return Path(str(files("swagger_ui_bundle"))) / "vendor"


@router.get("/docs")
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})


@router.get("/docs/start.js")
async def start() -> Response:
    return Response(START, media_type="text/javascript")


@router.get("/docs/assets/{name}")
async def asset(name: str) -> FileResponse:
    if name not in FILES:
        raise Problem(404, f"name = {name[:100]!r}: must be one of {', '.join(FILES)}")
    found = next(asset_folder().rglob(name))
    return FileResponse(found, media_type=FILES[name], headers={"Cache-Control": "max-age=86400"})
