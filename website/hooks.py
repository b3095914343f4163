"""Functions that MkDocs calls while it builds the site (`hooks:` in mkdocs.yml)."""

import logging
import posixpath
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from examples import refresh
from spillover.figures import figure_bytes
from website.outside import outside_files, repository_path, with_site_links
from website.pictures import PICTURES
from website.sessions import run_sessions

log = logging.getLogger("mkdocs.plugins.website")  # a warning fails the build, as it is strict
PICTURE = re.compile(r'(<img [^>]*src="([^"]+)"[^>]*>)')
NUMBER = re.compile(r"-?\d[\d,.]*")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The documents outside of docs/, and the pictures of the concepts."""
    for file in outside_files(config):
        files.append(file)
    for name, draw in PICTURES.items():
        replace(files, f"images/concepts/{name}.svg", figure_bytes(draw(), "svg"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page with what its commands and its Python sessions print now, and pictures as they draw them now."""
    path = page.file.src_uri
    document = repository_path(path)
    if document in refresh.DOCUMENTS:
        markdown = with_commands_run(markdown, document, files)
    if document.startswith("docs/"):
        markdown, complaints = run_sessions(markdown, document, partial(keep_picture, files, path))
        for complaint in complaints:
            log.warning("%s: %s", document, complaint)
    return with_site_links(markdown, path, files)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pictures open in full size: on a phone a figure with labels is too small to read."""
    return PICTURE.sub(r'<a class="picture" href="\2">\1</a>', html)


def with_commands_run(markdown: str, document: str, files: Files) -> str:
    """Fresh answers of commands; other words than in the document are a mistake, other last digits are not."""
    with tempfile.TemporaryDirectory() as name:
        fresh = refresh.refreshed(document, Path(name))
        for picture in Path(name).glob("*.png"):
            replace(files, f"images/{picture.name}", picture.read_bytes())
    if NUMBER.sub("#", fresh) != NUMBER.sub("#", markdown):
        log.warning("%s: commands print something else now: run make examples", document)
    return fresh


def keep_picture(files: Files, page: str, link: str, figure: Any) -> None:
    """Replace a picture that a page shows by the figure that its code has drawn."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    replace(files, path, figure_bytes(figure, posixpath.splitext(path)[1].lstrip(".")))


def replace(files: Files, path: str, content: bytes) -> None:
    """Replace the content of a file of the site; one that no page shows is not there."""
    file = files.get_file_from_path(path)
    if file is not None:
        file.content_bytes = content
