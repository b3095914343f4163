"""The page of the Covid-19 study, generated from its folder, and that of a simulated outbreak, which judges nothing."""

import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from spillover.figures.style import figure_of
from spillover.graph import ROW_BOUND
from spillover.metrics import Interval
from spillover.report.claims import NAMES, Claim, claims_table, tally
from spillover.report.page import Illustrator, Part, short_body, write_page
from spillover_studies.covid import LABELS, LITERAL, SEMI, CovidResults
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, RULES, SQUARED_RULE, planned_runs
from spillover_studies.covid.record import SOURCE, VARIABLE, registry
from spillover_studies.covid.report import sections
from spillover_studies.covid.report.claims import covid_claims
from spillover_studies.covid.report.figures import days_figure, recorded_panels, selection_figure
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    COMPARISONS,
    CONDITIONS,
    FINAL,
    FROM_ALL,
    NAIVE,
    SCALE_LABELS,
    Measured,
    best_share,
    bounded_rows,
    detected,
    excess,
    format_number,
    gain,
    largest_weight,
    later_errors,
    prediction_errors,
    recovery,
)
from spillover_studies.covid.report.sections import Draw, both_effect, on_unit_scale, star_effect
from spillover_studies.covid.report.tables import write_tables
from spillover_studies.covid.report.text import caveats, largest_weights, provenance, reading, words
from spillover_studies.covid.results import open_study
from spillover_studies.covid.scores import SCORES, forced_choices, since

MEASURES = (("own", PAPER_RULE), ("own", BOUNDED_RULE), ("common", PAPER_RULE))  # of the main numbers


def in_short(study: CovidResults, claims: list[Claim] | None = None) -> str:
    """A few short sentences, and the main numbers."""
    texts = words(study)
    cases, unit = (Measured(gain(study, scale, "own")) for scale in SCALE_LABELS)
    bounded, common = (Measured(gain(study, "cases", *given)) for given in MEASURES[1:])
    most = format_number(max(largest_weight(study, name).max() for name in COMPARISONS["cases"]))
    errors = mean_errors(study)
    graph, naive = errors[f"{FROM_ALL}, {AT_DECISION}"], errors[NAIVE]
    ahead = conclusion(cases.interval, unit.interval)
    found = tally(claims or covid_claims(study), CONDITIONS)
    sentences = (
        texts("short.comparison", cases=cases, unit_scale=unit, conclusion=ahead),
        texts("short.fragility", most=most, bounded=bounded, common=common),
        texts("short.limits", better="worse" if graph > naive else "better", graph=graph, naive=naive),
        texts("short.verdicts", tally=found),
    )
    return short_body(sentences, main_numbers(study), texts("short.caption"))


def mean_errors(study: CovidResults) -> dict[str, float]:
    """The mean error of each predictor after the initialisation."""
    return {k: float(v.mean()) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}


def conclusion(cases: Interval, unit: Interval) -> str:
    """Who is ahead on the two scales."""
    signs = [1 if float(i.low) > 0 else -1 if float(i.high) < 0 else 0 for i in (cases, unit)]
    if signs == [0, 0]:
        return "neither difference is clear"
    if 0 in signs:
        return f"only the difference {'in cases' if signs[0] else 'on [0, 1]'} is clear"
    if signs[0] != signs[1]:
        return "the scale decides which policy is ahead"
    return f"{'NDC-SEM' if signs[0] > 0 else 'SEM-UCB'} is ahead on both scales"


def main_numbers(study: CovidResults) -> pd.DataFrame:
    """Rewards after the change by each policy's own graph, without and with a bound, and by a common graph."""
    rows = []
    labels = (SCORES["own"], f"own final graph, bounded by {ROW_BOUND:g}", SCORES["common"])
    for label, (score, rule) in zip(labels, MEASURES, strict=True):
        for scale, data in SCALE_LABELS.items():
            found = Measured(gain(study, scale, score, rule))
            totals = [
                format_number(since(study.rewards(LITERAL, name, rule)[score], study.about["change"]).mean())
                for name in COMPARISONS[scale]
            ]
            rows.append([data, label, *totals, f"{found}", found.runs])
    columns = ["data", "measured by", "NDC-SEM", "SEM-UCB", "NDC-SEM − SEM-UCB [95%]", "NDC-SEM ahead in"]
    return pd.DataFrame(rows, columns=columns)


def write_covid_report(folder: str | Path) -> Path:
    """Write report.html, figures/ and tables into the folder of a study; returns the path of the page."""
    study = open_study(folder)
    draw, texts = Captioned(study), words(study)
    write_tables(study)
    title = texts("simulated_title" if study.simulated else "title")
    what = "a simulated outbreak" if study.simulated else "the record of the Italian Civil Protection Department"
    parts = simulated_parts(study, draw) if study.simulated else page_parts(study, draw)
    return write_page(folder, title, texts("subtitle", what=what), parts)


class Captioned:
    """Draws figures with their captions; marks every one as simulated where the record was not available."""

    def __init__(self, study: CovidResults) -> None:
        self.draw, self.texts = Illustrator(study.folder / "figures"), words(study)
        self.simulated = study.simulated

    def __call__(self, name: str, ax: Axes, *, text: str | None = None, **values: Any) -> str:
        """text: the key of the caption, where it is not the figure's name."""
        if not self.simulated:
            return self.draw(name, ax, self.texts(f"captions.{text or name}", **values))
        # a figure may be used without its caption
        figure_of(ax).suptitle("simulated outbreak, not real data", color="#A3330B", fontsize="medium")
        caption = self.texts(f"simulated.captions.{text or name}", **values)
        return self.draw(name, ax, f"Simulated outbreak, not real data. {caption}")


def page_parts(study: CovidResults, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section."""
    claims = covid_claims(study)
    yield "short", "In short", in_short(study, claims)
    yield "limits", "What a health authority can and cannot learn from this", caveats(study)
    yield "reading", "How to read this page", reading(study)
    yield "claims", "The paper's claims and our findings", claims_section(study, claims)
    yield "estimates", "Estimating the cases", sections.estimates(study, draw)
    yield "selection", "The regions chosen each day", sections.selection(study, draw)
    yield "rewards", "Cumulative reward", sections.rewards(study, draw)
    yield "penalty", "How graphs are learned", sections.graph_rules(study, draw)
    yield "regret", "Regret if choices have effects", sections.regret(study, draw)
    yield "payoff", "Average payoff and runtimes", sections.payoff(study)
    yield "graph", "The graph, and which regions contribute", sections.graph(study, draw)
    yield "data", "The data", sections.data(study, draw)
    yield "tuning", "Tuning", sections.tuning(study, draw)
    yield "provenance", "Data, settings, seeds, versions", provenance(study)


def claims_section(study: CovidResults, claims: list[Claim]) -> str:
    """The table of claims, with an introduction of its own: pairs and clusters are different here."""
    texts, found = words(study), tally(claims, CONDITIONS)
    untested = "".join(f"<li>{escape(texts.fill(text, {}))}</li>" for text in texts.entry("tally.untested"))
    before = texts("tally.before", tally=escape(found[0].upper() + found[1:]))
    return f"{before}{claims_table(claims, NAMES, CONDITIONS)}{texts('tally.after', untested=untested)}"


def simulated_parts(study: CovidResults, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section."""
    yield "short", "In short", simulated_in_short(study)
    yield "reading", "How to read this page", reading(study)
    yield "steps", "What the software does", simulated_steps(study, draw)
    yield "provenance", "Data, settings, seeds, versions", provenance(study)


def simulated_in_short(study: CovidResults) -> str:
    """Say what the page is, and where the record belongs."""
    files, repository = list(registry()), escape(SOURCE.removeprefix("https://"))
    given = {"count": len(files), "first": escape(files[0]), "last": escape(files[-1])}
    return words(study)("simulated.short", **given, repository=repository, variable=VARIABLE)


def simulated_steps(study: CovidResults, draw: Draw) -> str:
    """Every step of the study in words, and three of its pictures."""
    plan, change = study.plan, study.about["change"]
    x = study.played(LITERAL, "ndc-sem").x[plan.picture, 0]
    own = {name: study.rewards(LITERAL, name)["own"] for name in COMPARISONS["cases"]}
    cells, runs = len(plan.discounts) * len(plan.explorations), len(list(planned_runs()))
    return (
        words(study)("simulated.steps", runs=runs, ways=len(RULES), cells=cells)
        + draw("recorded-cases", recorded_panels(np.array(study.about["cases"]), study.days, study.regions)[0])
        + draw("selection", selection_figure(x, study.regions, forced=forced_choices(x, plan.delay)))
        + draw("cumulative-reward", days_figure(own, labels=LABELS, change=change))
    )


def findings(study: CovidResults) -> str:
    """Write the findings in numbers; the same results always give the same text."""
    claims, texts = covid_claims(study), words(study)
    parts = [*textwrap.wrap(texts("findings.claims", tally=tally(claims, CONDITIONS)), 118), ""]
    parts += [textwrap.fill(line, 118, initial_indent="- ", subsequent_indent="  ") for line in lines(study)]
    parts += ["", texts("findings.table"), ""]
    parts += claim_table(claims)
    return "\n".join(parts)


def lines(study: CovidResults) -> Iterator[str]:
    """The main numbers."""
    texts = words(study)
    for scale, label in SCALE_LABELS.items():
        own, bounded, common = (Measured(gain(study, scale, *given)) for given in MEASURES)
        yield texts("findings.gain", scale=label, own=own, bounded=bounded, common=common)
    medians = (np.median(largest_weight(study, name)) for name in COMPARISONS["cases"])
    median = " and ".join(format_number(value) for value in medians)
    yield texts("findings.fragile", largest=largest_weights(study), median=median)
    names = (*COMPARISONS["cases"], *COMPARISONS["unit"])
    yield texts("findings.shares", shares=[best_share(study, name).mean() for name in names])
    found = detected(study, "ndc-sem")
    yield texts("findings.detected", found=Measured(found), all_five=Measured(found == 5).runs)
    errors = mean_errors(study)
    final, ahead = errors[f"{FROM_ALL}, {FINAL}"], errors[f"{FROM_ALL}, {AT_DECISION}"]
    yield texts("findings.errors", final=final, ahead=ahead, naive=errors[NAIVE])
    rules = (PAPER_RULE, SQUARED_RULE)
    yield texts("findings.rule", pairs=[on_unit_scale(study, rule) for rule in rules])
    alone, both = (max(map(abs, effect(study).values())) for effect in (star_effect, both_effect))
    regrets = [format_number(study.played(SEMI, "sem-ucb", rule).regret[..., -1].mean()) for rule in rules]
    yield texts("findings.effect", alone=alone, both=both, final=regrets)
    above, test = excess(study), recovery()
    examples = {name.lower(): above[study.regions.index(region)] for region, name in EXAMPLES.items()}
    yield texts("findings.excess", above=above.mean(), at_bound=bounded_rows(study), **examples)
    yield texts("findings.outbreaks", test=test, inflated=test.masked_rows / test.true_rows)


EXAMPLES = {"LOM": "Lombardia", "PIE": "Piemonte"}


def claim_table(claims: list[Claim]) -> Iterator[str]:
    yield f"| claim | {' | '.join(CONDITIONS)} |"
    yield "|---|---|---|"
    for claim in claims:
        yield f"| {claim.claim} ({claim.source}) | {claim.one or '–'} | {claim.verdict} |"
