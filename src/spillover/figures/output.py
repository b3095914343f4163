"""Figures as files and as parts of an HTML page: the same figure gives the same bytes."""

import base64
import io
import re
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib
from matplotlib.figure import Figure

from spillover import validate
from spillover.files import write_atomically

FORMATS = ("png", "svg", "pdf")
LONGEST_STEM = 150  # characters of the name of a file: systems allow 255 bytes, also for temporary ones
# No dates and no versions; ids in SVG are hashes, so their salt must be fixed.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
}
SETTINGS: Any = {"svg.hashsalt": "spillover", "svg.fonttype": "path", "pdf.fonttype": 42}


def figure_bytes(figure: Figure, ending: str = "png", *, dpi: int = 150) -> bytes:
    """A figure as the content of a file.

    >>> from spillover.figures import figure_of, new_axes
    >>> figure_bytes(figure_of(new_axes(1, 1)), "svg").decode()[:5]
    '<?xml'
    """
    validate.require(ending in FORMATS, "format", ending, f"one of {', '.join(FORMATS)}")
    content = io.BytesIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(content, format=ending, dpi=dpi, metadata=METADATA[ending])
    return content.getvalue()


def save_figure(figure: Figure, path: str | Path, *, dpi: int = 150) -> None:
    """Write a figure, completely or not at all; the format is the ending of the path.

    >>> import tempfile
    >>> from spillover.figures import figure_of, new_axes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(figure_of(new_axes(1, 1)), f"{folder}/empty.png", dpi=10)
    ...     [path.name for path in Path(folder).iterdir()]
    ['empty.png']
    """
    write_atomically(path, figure_bytes(figure, Path(path).suffix.lstrip(".").lower(), dpi=dpi))


def file_stem(name: str) -> str:
    """The name of a file, without its ending, for a figure that is named after a world, a delay or a policy.

    >>> file_stem("regret-north/south")
    'regret-north%2Fsouth'
    """
    stem = quote(name.replace(" ", "-"), safe="")  # a name may have a slash in it
    if len(stem) <= LONGEST_STEM:
        return stem
    return f"{stem[:LONGEST_STEM]}-{sha256(name.encode()).hexdigest()[:8]}"


def save_figures(figure: Figure, path: str | Path, *, dpi: int = 150, keep_layout: bool = False) -> list[Path]:
    """Write a figure as PNG, SVG and PDF beside each other; the ending of the path is replaced.

    keep_layout: the parts of the figure stay where they are in the PNG, which saves time. The figure keeps that layout.

    >>> import tempfile
    >>> from spillover.figures import figure_of, new_axes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save_figures(figure_of(new_axes(1, 1)), f"{folder}/empty.png", dpi=10)]
    ['empty.png', 'empty.svg', 'empty.pdf']
    """
    # not with_suffix: a name such as "delay-0.5" has no ending to replace
    base = Path(path)
    stem = base.stem if base.suffix.lstrip(".").lower() in FORMATS else base.name
    paths = [base.with_name(f"{stem}.{ending}") for ending in FORMATS]
    for target in paths:
        save_figure(figure, target, dpi=dpi)
        if keep_layout:
            figure.set_layout_engine("none")
    return paths


def png_data(figure: Figure, *, dpi: int = 150) -> str:
    """A figure as a `data:` address, for the src of an <img>.

    >>> from spillover.figures import figure_of, new_axes
    >>> png_data(figure_of(new_axes(1, 1)), dpi=10)[:22]
    'data:image/png;base64,'
    """
    return png_address(figure_bytes(figure, "png", dpi=dpi))


def png_address(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def html_image(figure: Figure, alt: str, *, dpi: int = 150, png: bytes | None = None) -> str:
    """An <img> that carries the figure; `alt` says in words what it shows. png: the picture, if it is drawn already.

    >>> from spillover.figures import figure_of, new_axes
    >>> html_image(figure_of(new_axes(1, 1)), alt="an empty figure", dpi=10)[:26]
    '<img src="data:image/png;b'
    """
    width = round(figure.get_figwidth() * 96)  # CSS has 96 pixels to the inch
    source = png_data(figure, dpi=dpi) if png is None else png_address(png)
    return f'<img src="{source}" width="{width}" alt="{escape(alt)}">'


def html_svg(figure: Figure, alt: str, *, name: str) -> str:
    """The figure as an <svg> element; `name` goes before its ids, so that several can stand on one page.

    >>> from spillover.figures import figure_of, new_axes
    >>> html_svg(figure_of(new_axes(1, 1)), alt="an empty figure", name="first")[:4]
    '<svg'
    """
    validate.require(bool(re.fullmatch(r"[A-Za-z][\w-]*", name)), "name", name, "a letter, then letters, digits, -, _")
    text = figure_bytes(figure, "svg").decode()
    text = text[text.index("<svg") :].rstrip()  # neither the XML declaration nor the document type may stand in HTML
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
