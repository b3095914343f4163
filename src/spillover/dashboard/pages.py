"""The routes of the page: two documents, its own assets, and plotly.js from the installed package."""

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

# Ask each time whether it changed: after an upgrade a browser must not run the old scripts.
HEADERS = {"Cache-Control": "no-cache"}
TEMPLATES = Environment(
    loader=PackageLoader("spillover.dashboard"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
ASSETS = StaticFiles(directory=Path(str(files("spillover.dashboard"))) / "assets")
PLOTLY = StaticFiles(directory=Path(str(files("plotly"))) / "package_data")


def routes() -> list[BaseRoute]:
    """The routes of the page, for the application that serves /v1."""
    return [
        Route("/", streams_page),
        Route("/streams/{stream}", stream_page),
        Route("/assets/plotly.min.js", plotly_script),
        Route("/assets/{name}", asset),
    ]


def streams_page(request: Request) -> Response:
    """All streams, and the forms to begin one."""
    return HTMLResponse(TEMPLATES.get_template("streams.html").render(), headers=HEADERS)


def stream_page(request: Request) -> Response:
    """One stream; whether there is one of this name, the page finds out."""
    page = TEMPLATES.get_template("stream.html").render(stream=request.path_params["stream"])
    return HTMLResponse(page, headers=HEADERS)


async def plotly_script(request: Request) -> Response:
    """plotly.js, from the installed package plotly."""
    return await asset_of(PLOTLY, "plotly.min.js", request)


async def asset(request: Request) -> Response:
    """A script or style of the page."""
    return await asset_of(ASSETS, request.path_params["name"], request)


async def asset_of(folder: StaticFiles, name: str, request: Request) -> Response:
    """A file with its tag; "not modified" if the browser has it already."""
    response = await folder.get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response
