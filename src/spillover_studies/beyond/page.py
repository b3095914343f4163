"""The page of the study beyond the paper: regrets as multiples of the delayed oracle's, in several settings."""

from collections.abc import Iterator
from html import escape

from spillover.experiments import Results
from spillover.figures import ratios_figure, regret_panels
from spillover.report import page as default
from spillover.report.claims import claims_body
from spillover.report.page import Draw, Part
from spillover.report.tables import final_table, show_final, wide_table
from spillover_studies.beyond.claims import beyond_claims, conclusion
from spillover_studies.beyond.numbers import in_short
from spillover_studies.beyond.settings import (
    MAIN,
    SWEEPS,
    TEXTS,
    VARIED,
    families_run,
    family_table,
    multiples,
    oracle_ratios,
    sweep_ratios,
    worlds_of,
)

GRAPH = ("graph",)  # the same learner wherever it is a parameter


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; results without anything to compare get the default page."""
    if not oracle_ratios(results, MAIN + VARIED):
        yield from default.page_parts(results, draw)
        return
    yield "short", "In short", in_short(results)
    yield "claims", "Our claims", claims_body(beyond_claims(results), ("we claim", "we find"))
    yield "beyond", "The paper's setting", papers_setting(results, draw)
    yield "regret", "Regret over time", over_time(results, draw)
    yield "varied", "Variations of the setting", varied(results, draw)
    yield from sweep_parts(results, draw)
    yield "parameters", "Parameters", default.parameters(results, without=GRAPH)
    yield "settings", "Settings, seeds, versions", default.settings(results)


def papers_setting(results: Results, draw: Draw) -> str:
    """Figure and tables of the paper's setting, in which all means change or those of three arms do."""
    ratios = oracle_ratios(results, MAIN)
    if not ratios:
        return TEXTS("notes.no_setting")
    body = TEXTS("notes.setting") + draw("beyond-ratios", ratios_figure(ratios), TEXTS("captions.ratios"))
    for world, title in (("all", "All means change"), ("three", "Three arms change")):
        records = [r for f, found in families_run(results, MAIN) if f.world == world for r in found.values()]
        if records:
            body += wide_table(show_final(final_table(records)), caption=title)
    return body


def over_time(results: Results, draw: Draw) -> str:
    families = [(family, found) for family, found in families_run(results, MAIN) if family.delay == "50"]
    records = {family.title: list(found.values()) for family, found in families}
    if not records:
        return TEXTS("notes.no_regret")
    return draw("beyond-regret", regret_panels(records)[0], TEXTS("captions.regret"))


def varied(results: Results, draw: Draw) -> str:
    ratios = oracle_ratios(results, VARIED)
    if not ratios:
        return TEXTS("notes.no_varied")
    body = TEXTS("notes.varied") + draw("beyond-varied", ratios_figure(ratios), TEXTS("captions.varied"))
    table = family_table(results)
    return body + (wide_table(table, text=("setting", "which")) if len(table) else "")


def sweep_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """One section for each question: what is varied, the figure, and a sentence that concludes."""
    for sweep in SWEEPS.values():
        found = multiples(results, sweep)
        if len({one.setting for one in found}) > 1:
            caption = TEXTS("captions.sweep", title=sweep.title, worlds=worlds_of(found))
            figure = draw(f"beyond-{sweep.name}", ratios_figure(sweep_ratios(found)), caption)
            said = f"<p><b>{escape(conclusion(sweep, found))}</b></p>"
            yield sweep.name, sweep.title, f"<p>{escape(sweep.question)}</p>{said}{figure}"
