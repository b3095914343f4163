"""The report of the Covid-19 study: one self-contained page, made from its folder."""

from collections.abc import Iterator
from pathlib import Path

from matplotlib.axes import Axes

from spillover.report.claims import FAILS, HOLDS, OPEN, Claim, claims_body
from spillover.report.figures.style import figure_of
from spillover.report.page import Illustrator, Part, write_page
from spillover.studies.covid.report import background, caveats, sections
from spillover.studies.covid.report.claims import covid_claims
from spillover.studies.covid.report.tables import write_tables
from spillover.studies.covid.results import CovidResults, open_study

TITLE = "Covid-19 in Italy: which regions, when tests come late?"
SIMULATED = "Simulated outbreak, not real data: the pipeline of the Covid-19 study"


def write_covid_report(folder: str | Path) -> Path:
    """Write report.html, figures/ and tables into the folder of a study; returns the page's path."""
    study = open_study(folder)
    draw = Captioned(study)
    write_tables(study)
    title = SIMULATED if study.simulated else TITLE
    return write_page(folder, title, subtitle(study), page_parts(study, draw))


class Captioned(Illustrator):
    """Puts "simulated" before every caption where the record was not at hand."""

    def __init__(self, study: CovidResults) -> None:
        super().__init__(study.folder / "figures")
        self.before = "Simulated outbreak, not real data. " if study.simulated else ""

    def __call__(self, name: str, ax: Axes, caption: str) -> str:
        if self.before:  # the picture may be shown without its caption
            figure_of(ax).suptitle("simulated outbreak, not real data", color="#A3330B", fontsize="medium")
        return super().__call__(name, ax, self.before + caption)


def subtitle(study: CovidResults) -> str:
    what = "a simulated outbreak" if study.simulated else "the record of the Italian Civil Protection Department"
    return (
        f"Section V-B of the paper, on {what}: {sections.over(study)}, literal and semi-synthetic, in cases and on "
        "[0, 1]. Made by Spillover from the results beside this page."
    )


def page_parts(study: CovidResults, draw: Captioned) -> Iterator[Part]:
    """(anchor, title, body) of every section."""
    yield "summary", "In short", sections.summary(study)
    yield "claims", "What the paper claims, what we find", told_claims(study, covid_claims(study))
    yield "limits", "What this can and cannot tell a health authority", caveats.caveats(study)
    yield "estimates", "Estimating the cases", sections.estimates(study, draw)
    yield "selection", "The regions chosen each day", sections.selection(study, draw)
    yield "rewards", "Cumulative reward", sections.rewards(study, draw)
    yield "regret", "Regret, where choices have effects", sections.regret(study, draw)
    yield "graph", "The graph, and who contributes", sections.graph(study, draw)
    yield "data", "The data", background.data(study, draw)
    yield "tuning", "Tuning", background.tuning(study, draw)
    yield "provenance", "Data, settings, seeds, versions", caveats.provenance(study)


def told_claims(study: CovidResults, claims: list[Claim]) -> str:
    """The table of claims, under words of this study: what is paired and clustered here differs."""
    counts = {v: sum(c.verdict == v for c in claims) for v in (HOLDS, FAILS, OPEN)}
    _, _, table = claims_body(claims).partition("</p>")
    simulated = " The data are simulated, so this says nothing about Italy." if study.simulated else ""
    return (
        f"<p>{len(claims)} claims: {counts[HOLDS]} hold, {counts[FAILS]} do not hold, {counts[OPEN]} not decided. A "
        f"difference counts when its 95% interval, clustered by shift over {sections.over(study)}, leaves out 0; both "
        f"policies met the same data sets.{simulated}</p>{table}"
    )
