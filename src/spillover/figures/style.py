"""One style for all figures, the same in every one; and figures as files and as parts of an HTML page."""

import base64
import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend

from spillover import validate
from spillover.files import write_atomically
from spillover.formatting import printable
from spillover.policies.registry import CLASSES

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


Dashes = str | tuple[int, tuple[float, ...]]
WIDTH = 5.0  # inches of a figure: shown 400 pixels wide, as on a phone, its letters of 8 to 10 points are 9 to 11 high


class Style(NamedTuple):
    """The look of a policy; each of the four distinguishes it from its neighbours, so grey is enough.

    >>> styles_for(["ndc-sem"])["ndc-sem"].marker
    'o'
    """

    color: str
    linestyle: Dashes
    marker: str
    hatch: str


# Okabe and Ito's colours without their yellow (too light for a line) and black (kept for what is not a policy).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES: tuple[Dashes, ...] = ("-", (0, (5, 1.6)), (0, (6, 1.5, 1.2, 1.5)), (0, (1.2, 1.2)), (0, (2.5, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++", "||", "oo", "--")

REFERENCES = {
    "random": Style("#8C8C8C", (0, (1, 2.5)), "x", "xx"),
    "delayed-oracle": Style("#000000", (0, (8, 2)), "d", "--"),
    "oracle": Style("#000000", "-", "", ""),
}
# Beyond the paper, and its policies with other parameters: drawn beside NDC-SEM and SEM-UCB, so with other colours and
# lines.
BEYOND = {
    "ndc-sem-tuned": Style("#8B7D00", (0, (3, 1.4)), "P", "++"),  # on the same line as ndc-sem at D = 50, a blue one
    "ndc-sem-once": Style(COLORS[4], (0, (6, 1.5, 1.2, 1.5)), "^", "...."),
    "sem-ucb-tuned": Style("#7A3B00", (0, (1.2, 1.2)), "X", "oo"),
    "ndc-sem-for-50": Style(COLORS[0], "-", "o", ""),
    "ndc-sem-for-200": Style(COLORS[1], (0, (5, 1.6)), "s", "////"),
    "ndc-sem-for-400": Style(COLORS[4], (0, (1.2, 1.2)), "v", "xxxx"),
    "ndc-sem-misdated": Style(COLORS[1], (0, (2.5, 1.2)), "X", "\\\\\\\\"),
    "switching-sem-misdated": Style(COLORS[3], (0, (6, 1.5, 1.2, 1.5)), "D", "||"),
    "switching-sem": Style("#6A3D9A", (0, (9, 1.3)), "*", "|||"),  # also drawn beside CUCB, which is green
    "ndc-sem-pending": Style(COLORS[4], (0, (3, 1, 1, 1, 1, 1)), "v", "OO"),
    "discounted-ts": Style(COLORS[3], (0, (5, 1.2, 2, 1.2)), "D", "**"),
}
POLICY_ORDER = (
    "ndc-sem", "sem-ucb", "cucb", "cts", "ftrl",
    "window-cucb", "discounted-cucb", "glr-cucb", "glr-sem-ucb", "super-arm-ucb", "ablated-ndc-sem",
    "cucb-known-graph", "cts-known-graph", "ftrl-known-graph",
    "window-cucb-known-graph", "discounted-cucb-known-graph", "glr-cucb-known-graph",
    "instrumental-sem", "payoff-regression",
)  # fmt: skip

FIXED = REFERENCES | BEYOND


def numbered_style(k: int) -> Style:
    """The k-th style: colours and lines have coprime cycles, so 30 in a row differ in at least one of the two."""
    return Style(COLORS[k % len(COLORS)], LINES[k % len(LINES)], MARKERS[k % len(MARKERS)], HATCHES[k % len(HATCHES)])


def styles_for(names: Iterable[str]) -> dict[str, Style]:
    """A style for every policy name: the fixed one, or the next free one for a name that is not built in.

    The name of a built-in class, such as "NDCSEM", has the style of the policy's own name.
    Pass the names of all policies of several figures, and your own policies look the same in each.

    >>> styles_for(["mine", "ndc-sem"])["ndc-sem"] == styles_for(["ndc-sem"])["ndc-sem"]
    True
    """
    chosen: dict[str, Style] = {}
    others = 0
    for name in dict.fromkeys(names):
        known = CLASSES.get(name, name)
        if known in FIXED:
            chosen[name] = FIXED[known]
        elif known in POLICY_ORDER:
            chosen[name] = numbered_style(POLICY_ORDER.index(known))
        else:
            chosen[name] = numbered_style(len(POLICY_ORDER) + others)
            others += 1
    return chosen


class Picture(Figure):
    """A figure that a notebook shows, also where pyplot was never imported."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(inches * 96) for inches in self.get_size_inches())  # CSS has 96 pixels to the inch
        return figure_bytes(self, dpi=120), {"width": width, "height": height}


def new_panels(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float] = (WIDTH, 4.0), **options: Any
) -> list[Axes]:
    """Axes on a figure of their own, row by row, without the global state of pyplot; `size` is that of the figure.

    Panels go below each other, so that a figure is no wider than `WIDTH`.

    >>> len(new_panels(2, 1, size=(5.0, 6.0)))
    2
    """
    figure = Picture(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1))
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return list(np.ravel(axes))


def new_axes(width: float = WIDTH, height: float = 4.0) -> Axes:
    """One pair of axes on a figure of its own.

    >>> ax = new_axes(height=3.0)
    >>> lines = ax.plot([1, 2, 3], [0.5, 0.9, 1.2])
    """
    return new_panels(size=(width, height))[0]


def figure_of(ax: Axes) -> Figure:
    """The figure that axes are on.

    >>> figure_of(new_axes(5.0, 3.0)).get_size_inches()
    array([5., 3.])
    """
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError(f"ax = {ax!r}: must be on a figure")
    return figure


def hide_spines(ax: Axes) -> None:
    """Hide the spines without a scale."""
    ax.spines[["top", "right"]].set_visible(False)


def mark_changes(ax: Axes, changes: Iterable[int]) -> None:
    """Vertical lines where the means change."""
    for k, change in enumerate(changes):
        label = "change of the means" if k == 0 else "_change"
        ax.axvline(change, color="0.55", linewidth=0.9, linestyle=(0, (2, 2)), zorder=0, label=label)


def sparse_markers(points: int, line: int, lines: int) -> tuple[int, int]:
    """Place about eight markers on a line of `points` points, not at the positions of other lines."""
    step = max(1, points // 8)
    return (line * step // max(lines, 1)) % step, step


def draw_band(ax: Axes, x: Any, curve: Any, style: Style, label: str, *, line: int, lines: int) -> None:
    """Draw (mean, low, high) as a line with a band; it is the `line`-th of `lines`, whose markers stand apart."""
    mean, low, high = curve
    ax.plot(
        x, mean, label=label, color=style.color, linestyle=style.linestyle, marker=style.marker, markersize=4.5,
        markevery=sparse_markers(len(mean), line, lines), linewidth=1.6,
    )  # fmt: skip
    ax.fill_between(x, low, high, color=style.color, alpha=0.18, linewidth=0)


def draw_grid_lines(ax: Axes, axis: Literal["x", "y"]) -> None:
    """Draw light grid lines at the ticks of an axis, behind everything else."""
    ax.grid(axis=axis, color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)


def figure_legend(axes: Sequence[Axes]) -> Legend | None:
    """One legend for all axes, below them, with as many columns as fit. The figure grows by its height.

    >>> axes = new_panels(2)
    >>> lines = [ax.plot([1, 2], label="NDC-SEM") for ax in axes]
    >>> [text.get_text() for text in figure_legend(axes).get_texts()]
    ['NDC-SEM']
    """
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(textwrap.fill(label, 40), handle)
    if not entries:
        return None
    figure = figure_of(axes[0])
    for columns in range(min(len(entries), 9), 0, -1):
        legend = figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            handlelength=2.8,
            columnspacing=1.2,
            fontsize="small",
        )
        if columns == 1 or legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + legend.get_window_extent().height / figure.dpi)
    return legend


NAMED_NODES = 12  # arms that may have names in the graph; more are numbered
LONG_NAME = 26  # letters of a name in the graph; with longer names arms are numbered


def shorten(name: str, most: int) -> str:
    """A long name without its middle: similar names often differ at the end."""
    if len(name) <= most:
        return name
    tail = most // 2
    return f"{name[: most - 1 - tail].rstrip()}…{name[-tail:].lstrip()}"


def as_written(text: str) -> str:
    """Escape dollar signs, which would start a formula, and characters that are not seen."""
    return "\n".join(printable(line) for line in text.split("\n")).replace("$", r"\$")


def row_names(names: Sequence[str]) -> list[str]:
    """Distinct names for the bars: in two lines for few arms, shortened for many."""
    if len(names) <= NAMED_NODES:
        return [textwrap.fill(text, 32) for text in short_names(names, 60)]
    return short_names(names, 30)


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Distinct short names: where names differ in the middle, the middle is kept rather than the end."""
    names = [printable(name) for name in names]
    texts = [shorten(name, most) for name in names]
    for text in {text for text in texts if texts.count(text) > 1}:
        alike = [k for k, other in enumerate(texts) if other == text]
        letters = zip(*(names[k] for k in alike), strict=False)
        same = sum(1 for _ in takewhile(lambda these: len(set(these)) == 1, letters))
        for k in alike:
            texts[k] = keep_around(names[k], same, most)
    return [text if texts.count(text) == 1 else f"{text} ({k + 1})" for k, text in enumerate(texts)]


def keep_around(name: str, place: int, most: int) -> str:
    """The beginning of a name and the letters around a position in it."""
    head, room = most // 4, most - most // 4 - 2
    start = max(place - room // 2, 0)
    if start <= head:
        return f"{name[: most - 1].rstrip()}…"
    return f"{name[:head].rstrip()}…{name[start : start + room].strip()}…"
