"""The routes of the page: two documents, its own assets, and plotly.js from the installed package."""

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader
from starlette.staticfiles import StaticFiles

# Ask each time whether it changed: after an upgrade a browser must not run the old scripts.
HEADERS = {"Cache-Control": "no-cache"}
TEMPLATES = Environment(
    loader=PackageLoader("spillover.dashboard"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
ASSETS = StaticFiles(directory=Path(str(files("spillover.dashboard"))) / "assets")
PLOTLY = StaticFiles(directory=Path(str(files("plotly"))) / "package_data")

router = APIRouter(include_in_schema=False)


@router.get("/")
def streams_page() -> Response:
    """All streams, and the forms to begin one."""
    return HTMLResponse(TEMPLATES.get_template("streams.html").render(), headers=HEADERS)


@router.get("/streams/{stream}")
def stream_page(stream: str) -> Response:
    """One stream; whether there is one of this name, the page finds out."""
    return HTMLResponse(TEMPLATES.get_template("stream.html").render(stream=stream), headers=HEADERS)


@router.get("/assets/plotly.min.js")
async def plotly_script(request: Request) -> Response:
    """plotly.js, from the installed package plotly."""
    return await asset_of(PLOTLY, "plotly.min.js", request)


@router.get("/assets/{name}")
async def asset(name: str, request: Request) -> Response:
    """A script or style of the page."""
    return await asset_of(ASSETS, name, request)


async def asset_of(folder: StaticFiles, name: str, request: Request) -> Response:
    """A file with its tag; "not modified" if the browser has it already."""
    response = await folder.get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response
