"""The report: one self-contained HTML page, made from a folder of results and edited by nobody."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment as Templates
from matplotlib.axes import Axes

from spillover.experiments import Results, open_results
from spillover.files import write_atomically
from spillover.report import beyond, sections
from spillover.report.claims import FAILS, HOLDS, Claim, all_claims
from spillover.report.figures import html_image, save_figures
from spillover.report.figures.style import figure_of


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    anchor: str
    title: str
    body: str


class Illustrator:
    """Puts figures into the page and beside it, as PNG, SVG and PDF."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, ax: Axes, caption: str) -> str:
        figure = figure_of(ax)
        save_figures(figure, self.folder / f"{name}.png")
        return f"<figure>{html_image(figure, caption)}<figcaption>{escape(caption)}</figcaption></figure>"


def write_report(folder: str | Path) -> Path:
    """Write report.html and figures/ into a folder of results; returns the page's path."""
    folder = Path(folder)
    results = open_results(folder)
    draw = Illustrator(folder / "figures")
    parts = [Section(*part) for part in page_parts(results, draw)]
    template = Templates(autoescape=True).from_string(
        files("spillover.report").joinpath("templates/page.html").read_text(encoding="utf-8")
    )
    experiment = results.experiment
    page = template.render(title=experiment.title, subtitle=sections.subtitle(results), sections=parts)
    write_atomically(folder / "report.html", page.encode())
    return folder / "report.html"


def page_parts(results: Results, draw: Illustrator) -> Iterator[tuple[str, str, str]]:
    """(anchor, title, body) of every section that these results allow."""
    if beyond.is_beyond(results):
        yield from beyond_parts(results, draw)
        return
    yield "summary", "In short", sections.summary(results)
    for world in results.experiment.worlds:
        yield f"regret-{world}", sections.regret_title(world), sections.regret(results, world, draw)
    yield "table", "Final regret", sections.final(results)
    if results.experiment.name == "synthetic":
        yield from paper_parts(results, draw)
    yield "parameters", "Parameters", sections.parameters(results)
    yield "settings", "Settings, seeds, versions", sections.settings(results)


def paper_parts(results: Results, draw: Illustrator) -> Iterator[tuple[str, str, str]]:
    """What only the paper's own study has."""
    yield "claims", "What the paper claims, what we find", claims_body(all_claims(results))
    yield "adaptation", "Adaptation to changes", sections.adaptation(results, draw)
    yield "graph", "The graph", sections.graph(results, draw)
    yield "delay", "Regret against the delay", sections.against_delay(results, draw)
    yield "ablation", "What each part brings", sections.ablations(results, draw)
    yield "world", "The world of the pictures", sections.picture_world(results, draw)


def beyond_parts(results: Results, draw: Illustrator) -> Iterator[tuple[str, str, str]]:
    """The study of the policies that are not the paper's."""
    yield "summary", "In short", beyond.in_short(results)
    yield "beyond", "Beyond the paper", beyond.multiples(results, draw)
    yield "regret", "Regret over time", beyond.over_time(results, draw)
    yield "varied", "Where the setting is varied", beyond.varied(results)
    yield "claims", "What is claimed", claims_body(beyond.beyond_claims(results), ("where", "claim", "finding"))
    yield "parameters", "Parameters", sections.parameters(results)
    yield "settings", "Settings, seeds, versions", sections.settings(results)


def claims_body(claims: list[Claim], names: tuple[str, ...] = ("where", "the paper claims", "we find")) -> str:
    """The claims as a table."""
    kinds = {HOLDS: "holds", FAILS: "fails"}
    counts = {
        verdict: sum(c.verdict == verdict for c in claims) for verdict in dict.fromkeys(c.verdict for c in claims)
    }
    told = ", ".join(f"{count} {plural(verdict, count)}" for verdict, count in counts.items())
    rows: list[Any] = [
        f"<tr><td>{escape(c.source)}</td><td>{escape(c.claim)}</td><td>{escape(c.finding)}</td>"
        f'<td class="{kinds.get(c.verdict, "open")}">{escape(c.verdict)}</td></tr>'
        for c in claims
    ]
    head = "".join(f"<th>{name}</th>" for name in (*names, "verdict"))
    return (
        f"<p>{len(claims)} claims: {escape(told)}. A difference counts when its 95% interval leaves out 0; differences "
        "are paired, over the same fresh worlds, rewards and delays.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def plural(verdict: str, count: int) -> str:
    """The verdict as a verb for so many claims.

    >>> plural("holds", 1), plural("does not hold", 2)
    ('holds', 'do not hold')
    """
    words = {HOLDS: "hold", FAILS: "do not hold"}
    return words.get(verdict, verdict) if count != 1 else verdict
