"""The report: one self-contained HTML page, generated from a folder of results."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from jinja2 import Environment as Templates
from matplotlib.axes import Axes

from spillover.experiments import Results, open_results
from spillover.figures import html_image, save_figures
from spillover.figures.output import file_stem
from spillover.figures.style import figure_of
from spillover.files import write_atomically
from spillover.report import sections
from spillover.report.sections import Draw

Part: TypeAlias = tuple[str, str, str]  # anchor, title, body
PageParts: TypeAlias = Callable[[Results, Draw], Iterator[Part]]


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    anchor: str
    title: str
    body: str


class Illustrator:
    """Embeds figures in the page, and saves them as PNG, SVG and PDF."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, ax: Axes, caption: str) -> str:
        figure = figure_of(ax)
        png = save_figures(figure, self.folder / f"{file_stem(name)}.png", keep_layout=True)[0].read_bytes()
        image = html_image(figure, caption, png=png)
        return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"


def write_report(folder: str | Path, parts: PageParts | None = None) -> Path:
    """Write report.html and figures/ into a folder of results; returns the path of the page.

    parts: the sections of the page (default: those of any experiment).

    >>> import tempfile
    >>> from spillover.experiments import example_results, run_experiment
    >>> quick = example_results().experiment.changed(replications=1, delays=["2"], policies=["random"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     computed = run_experiment(quick, folder, progress=False)
    ...     write_report(folder, parts=lambda results, picture: iter([("Notes", "notes", "<p>mine</p>")])).name
    'report.html'
    """
    results = open_results(folder)
    draw = Illustrator(Path(folder) / "figures")
    content = (parts or page_parts)(results, draw)
    return write_page(folder, results.experiment.title, sections.subtitle(results), content)


def write_page(folder: str | Path, title: str, subtitle: str, parts: Iterable[Part]) -> Path:
    """Write report.html from its sections, completely or not at all."""
    template = Templates(autoescape=True).from_string(
        files("spillover.report").joinpath("templates/page.html").read_text(encoding="utf-8")
    )
    page = template.render(title=title, subtitle=subtitle, sections=[Section(*part) for part in parts])
    path = Path(folder) / "report.html"
    write_atomically(path, page.encode())
    return path


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section of the default page: first what to take away."""
    yield "short", "In short", sections.in_short(results)
    yield from overview(results, draw)
    yield from provenance(results)


def overview(results: Results, draw: Draw, titles: Mapping[str, str] | None = None) -> Iterator[Part]:
    """The results of the first comparison; titles: of worlds, to use instead of their names in the file."""
    titles = titles or {}
    for world in results.experiment.worlds:
        yield f"regret-{world}", sections.regret_title(world, titles), sections.regret(results, world, draw)
    yield "table", "Final regret", sections.final_regret(results, titles)


def provenance(results: Results) -> Iterator[Part]:
    """Parameters, settings, seeds and versions behind the numbers."""
    yield "parameters", "Parameters", sections.parameters(results)
    yield "settings", "Settings, seeds, versions", sections.settings(results)
