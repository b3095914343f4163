"""The routes of the page: two documents, its own assets, and plotly.js from the installed package."""

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

# Nothing from outside, no inline script, no inline style, no plugin, no frame. Images: plotly.js measures text with an
# inline SVG picture (data:).
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # ask each time whether it changed: an upgraded server must not meet an old script
}
TEMPLATES = Environment(
    loader=PackageLoader("spillover.dashboard"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def routes() -> list[BaseRoute]:
    """The routes to mount in the application that serves /v1."""
    return [
        Route("/", streams_page, name="streams"),
        Route("/streams/{stream}", stream_page, name="stream"),
        Route("/assets/plotly.min.js", plotly_script, name="plotly"),
        Mount("/assets", Assets(directory=Path(str(files("spillover.dashboard"))) / "assets"), name="assets"),
    ]


def streams_page(request: Request) -> Response:
    """All streams, and the forms to begin one."""
    return HTMLResponse(TEMPLATES.get_template("streams.html").render(), headers=HEADERS)


def stream_page(request: Request) -> Response:
    """One stream; whether there is one of this name, the page finds out."""
    page = TEMPLATES.get_template("stream.html").render(stream=request.path_params["stream"])
    return HTMLResponse(page, headers=HEADERS)


def plotly_script(request: Request) -> Response:
    """plotly.js, from the installed package plotly."""
    path = Path(str(files("plotly"))) / "package_data" / "plotly.min.js"
    return FileResponse(path, media_type="text/javascript", headers=HEADERS)


class Assets(StaticFiles):
    """The page's own scripts and styles, with the headers of the page."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response: Response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers.update(HEADERS)
        return response
