"""The page of the study beyond the paper: regrets as multiples of the delayed oracle's, in several settings."""

from collections.abc import Iterator
from html import escape

import numpy as np

from spillover.experiments import Results
from spillover.metrics import Interval
from spillover.report.claims import claims_body, format_ci
from spillover.report.figures import ratios_figure, regret_panels
from spillover.report.page import Part, provenance
from spillover.report.page import page_parts as general_parts
from spillover.report.sections import Draw
from spillover.report.tables import final_table, html_table, show_final
from spillover.studies.beyond.claims import beyond_claims
from spillover.studies.beyond.families import MAIN, REFERENCE, VARIED, families_run, family_table, oracle_ratios


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; results without anything to compare get the default page."""
    if not oracle_ratios(results, MAIN + VARIED):
        yield from general_parts(results, draw)
        return
    yield "summary", "In short", in_short(results)
    yield "beyond", "Beyond the paper", multiples(results, draw)
    yield "regret", "Regret over time", over_time(results, draw)
    yield "varied", "Variations of the setting", varied(results)
    yield "claims", "Claims", claims_body(beyond_claims(results), ("claim", "finding"))
    yield from provenance(results)


def in_short(results: Results) -> str:
    """The ratio of each policy to the delayed oracle, in the paper's setting."""
    lines = []
    for family, records in families_run(results, MAIN):
        ratios = sorted(oracle_ratios(results, (family,)), key=lambda r: r.mean)
        parts = "; ".join(f"{escape(r.label)} {format_ci(Interval(*map(np.array, r[3:])), 2)}" for r in ratios)
        if parts:
            lines.append(
                f"<li><b>{escape(family.title)}</b> ({len(records[REFERENCE].replications)} worlds): {parts}.</li>"
            )
    return (
        "<p>Final expected regret as a multiple of the delayed oracle's, lowest first, with 95% intervals. The delayed "
        "oracle plays the set that was best in the latest round whose outcome has arrived, and random sets before any "
        "outcome: the cost of the delay alone. It is a reference, not a bound.</p>"
        f"<ul>{''.join(lines)}</ul>"
    )


def multiples(results: Results, draw: Draw) -> str:
    """The figure of all families, and the tables of the paper's setting."""
    note = (
        "<p>Ratios are ratios of mean final regrets over the same worlds, with 95% intervals by the delta method. The "
        "blind rounds are the first D + 1, before any outcome arrives. There Switching-SEM plays by the declared order "
        "of the arms (later arms may affect more arms), the delayed oracle at random; so there is a separate ratio for "
        "the rounds after them.</p>"
    )
    caption = (
        "Final expected regret divided by that of the delayed oracle, with 95% intervals: in the paper's setting (all "
        "means change), with three changing arms, and in variations of one aspect at a mean delay of 50."
    )
    body = note + draw("beyond-ratios", ratios_figure(oracle_ratios(results, MAIN + VARIED)), caption)
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
    caption = "Cumulative expected regret by round at D = 50, mean and 95% band; vertical lines: changes of the means."
    return draw("beyond-regret", regret_panels(records)[0], caption)


def varied(results: Results) -> str:
    note = (
        "<p>One aspect at a time is varied, at a mean delay of 50, with the same policies. Mean final regrets; the "
        "last column is the ratio of Switching-SEM to the better of NDC-SEM and SEM-UCB (the one with the lower mean, "
        "so chosen in its favour), paired, with its 95% interval: below 1 is less regret.</p>"
    )
    return f'{note}<div class="wide">{html_table(family_table(results), text=("family",))}</div>'
