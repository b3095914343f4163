"""The page of the study beyond the paper: regrets as multiples of the delayed oracle's, in several settings."""

from collections.abc import Iterator
from html import escape

from spillover.experiments import Results
from spillover.figures import ratios_figure, regret_panels
from spillover.report import page as default
from spillover.report.claims import claims_body
from spillover.report.page import Draw, Part
from spillover.report.tables import final_table, html_table, show_final
from spillover_studies.beyond.claims import beyond_claims, conclusion
from spillover_studies.beyond.numbers import in_short
from spillover_studies.beyond.settings import (
    MAIN,
    SWEEPS,
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
    note = (
        "<p>Ratios are ratios of mean final regrets over the same worlds, with 95% intervals by the delta method. The "
        "delayed oracle plays the set that was best in the latest round whose outcome has arrived, and random sets "
        "before any outcome: the cost of the delay alone. It is a reference, not a bound. NDC-SEM appears with the "
        "parameters that the paper prints for each delay, tuned for each delay on other worlds, and with pulls in "
        "flight counted and one setting for all delays.</p><p>The blind rounds are the first D + 1, before any "
        "outcome arrives. There Switching-SEM plays by the declared order of the arms (later arms may affect more "
        "arms), the delayed oracle at random; so there is a separate ratio for the rounds after them.</p>"
    )
    ratios = oracle_ratios(results, MAIN)
    if not ratios:
        return "<p>There are no results in the paper's setting.</p>"
    caption = (
        "Final expected regret divided by that of the delayed oracle, with 95% intervals, at constant delays D: all "
        "means change, as in the paper, or those of three arms."
    )
    body = note + draw("beyond-ratios", ratios_figure(ratios), caption)
    for world, title in (("all", "All means change"), ("three", "Three arms change")):
        records = [r for f, found in families_run(results, MAIN) if f.world == world for r in found.values()]
        if records:
            body += f'<div class="wide">{html_table(show_final(final_table(records)), caption=title)}</div>'
    return body


def over_time(results: Results, draw: Draw) -> str:
    families = [(family, found) for family, found in families_run(results, MAIN) if family.delay == "50"]
    records = {family.title: list(found.values()) for family, found in families}
    if not records:
        return "<p>There are no results at D = 50.</p>"
    caption = (
        "Cumulative expected regret by round at D = 50, mean and 95% band; vertical lines: changes of the means. "
        "NDC-SEM is tuned for D = 50 on other worlds, has the parameters that the paper prints, or counts pulls in "
        "flight."
    )
    return draw("beyond-regret", regret_panels(records)[0], caption)


def varied(results: Results, draw: Draw) -> str:
    ratios = oracle_ratios(results, VARIED)
    if not ratios:
        return "<p>There are no results in other settings.</p>"
    note = (
        "<p>One aspect at a time is varied, at a mean delay of 50, with the same policies and parameters. The table "
        "has mean final regrets. The best of the paper's is that one of NDC-SEM and SEM-UCB, tuned or not, "
        "with the lowest mean, so chosen in its favour; the ratio of Switching-SEM to it is paired, and below 1 is "
        "less regret.</p>"
    )
    caption = (
        "Final expected regret divided by that of the delayed oracle, with 95% intervals, where one aspect of the "
        "setting is another one."
    )
    body = note + draw("beyond-varied", ratios_figure(ratios), caption)
    table = family_table(results)
    if len(table) == 0:
        return body
    return body + f'<div class="wide">{html_table(table, text=("setting", "which"))}</div>'


def sweep_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """One section for each question: what is varied, the figure, and a sentence that concludes."""
    for sweep in SWEEPS:
        found = multiples(results, sweep)
        if len({one.setting for one in found}) > 1:
            caption = (
                f"{sweep.title}: final expected regret divided by that of the delayed oracle, with 95% intervals over "
                f"{worlds_of(found)}."
            )
            figure = draw(f"beyond-{sweep.name}", ratios_figure(sweep_ratios(found)), caption)
            said = f"<p><b>{escape(conclusion(sweep, found))}</b></p>"
            yield sweep.name, sweep.title, f"<p>{escape(sweep.question)}</p>{said}{figure}"
