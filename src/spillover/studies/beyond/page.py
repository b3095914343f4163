"""The page of the study beyond the paper: policies as multiples of the delayed oracle, in variations of its setting."""

from collections.abc import Iterator
from html import escape

import numpy as np

from spillover.experiments import Results
from spillover.metrics import Interval
from spillover.report.claims import claims_body, shown
from spillover.report.figures import ratios_figure, regret_panels
from spillover.report.page import Part, provenance
from spillover.report.page import page_parts as general_parts
from spillover.report.sections import Draw
from spillover.report.tables import final_table, html_table, show_final
from spillover.studies.beyond.claims import beyond_claims
from spillover.studies.beyond.families import MAIN, REFERENCE, VARIED, family_table, oracle_ratios, there


def page_parts(results: Results, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section; a part that has nothing to compare gets the page of any experiment."""
    if not oracle_ratios(results, MAIN + VARIED):
        yield from general_parts(results, draw)
        return
    yield "summary", "In short", in_short(results)
    yield "beyond", "Beyond the paper", multiples(results, draw)
    yield "regret", "Regret over time", over_time(results, draw)
    yield "varied", "Where the setting is varied", varied(results)
    yield "claims", "What is claimed", claims_body(beyond_claims(results), ("where", "claim", "finding"))
    yield from provenance(results)


def in_short(results: Results) -> str:
    """How far from the delayed oracle each policy is, in the paper's own setting."""
    lines = []
    for family, records in there(results, MAIN):
        ratios = sorted(oracle_ratios(results, (family,)), key=lambda r: r.mean)
        told = "; ".join(f"{escape(r.label)} {shown(Interval(*map(np.array, r[3:])), 2)}" for r in ratios)
        if told:
            lines.append(
                f"<li><b>{escape(family.title)}</b> ({len(records[REFERENCE].replications)} worlds): {told}.</li>"
            )
    return (
        "<p>Final expected regret as a multiple of the delayed oracle's, least first, with 95% intervals. The delayed "
        "oracle plays the set that was best in the latest round heard of, and random sets while blind: what a delay "
        "costs somebody who learns everything at once. A reference, not a bound.</p>"
        f"<ul>{''.join(lines)}</ul>"
    )


def multiples(results: Results, draw: Draw) -> str:
    """The picture of all families and the tables of the paper's setting."""
    note = (
        "<p>Ratios are those of the mean final regrets over the same worlds, with 95% intervals by the delta method. "
        "The blind rounds are the first D + 1, in which nobody has heard anything. Switching-SEM plays by the declared "
        "order of the arms then (later arms may act on more), the delayed oracle at random: so the rounds after them "
        "have a ratio of their own.</p>"
    )
    caption = (
        "Final expected regret over that of the delayed oracle, with 95% intervals, in the paper's setting (all means "
        "change), where three arms change, and where one thing is varied at a mean delay of 50."
    )
    body = note + draw("beyond-ratios", ratios_figure(oracle_ratios(results, MAIN + VARIED)), caption)
    for world, title in (("all", "All means change"), ("three", "Three arms change")):
        records = [r for f, found in there(results, MAIN) if f.world == world for r in found.values()]
        if records:
            body += f'<div class="wide">{html_table(show_final(final_table(records)), caption=title)}</div>'
    return body


def over_time(results: Results, draw: Draw) -> str:
    found = {family.title: list(records.values()) for family, records in there(results, MAIN) if family.delay == "50"}
    caption = "Cumulative expected regret by round at D = 50, mean and 95% band; vertical lines: the means change."
    return draw("beyond-regret", regret_panels(found)[0], caption) if found else "<p>Nothing was run at D = 50.</p>"


def varied(results: Results) -> str:
    note = (
        "<p>One thing at a time is another one, at a mean delay of 50; all policies as above. Mean final regrets; the "
        "last column is Switching-SEM's over that of the better of NDC-SEM and SEM-UCB (the one with the lower mean, "
        "so chosen in its favour), paired, with its 95% interval: below 1 is less regret.</p>"
    )
    return f'{note}<div class="wide">{html_table(family_table(results), text=("family",))}</div>'
