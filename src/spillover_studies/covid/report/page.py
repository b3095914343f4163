"""The page of the Covid-19 study, generated from its folder, and that of a simulated outbreak, which judges nothing."""

import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

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
from spillover_studies.covid.report.claims import UNTESTED, covid_claims
from spillover_studies.covid.report.figures import days_figure, recorded_panels, selection_figure
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    COMPARISONS,
    CONDITIONS,
    FINAL,
    FROM_ALL,
    NAIVE,
    SCALE_LABELS,
    best_share,
    bounded_rows,
    detected,
    excess,
    format_mean,
    format_number,
    gain,
    largest_weight,
    later_errors,
    more_or_fewer,
    prediction_errors,
    recovery,
    runs_won,
)
from spillover_studies.covid.report.sections import Draw, both_effect, specific_a_day, star_effect
from spillover_studies.covid.report.tables import write_tables
from spillover_studies.covid.report.text import caveats, provenance, reading, sample_size
from spillover_studies.covid.results import open_study
from spillover_studies.covid.scores import SCORES, clustered_interval, forced_choices, since


def in_short(study: CovidResults, claims: list[Claim] | None = None) -> str:
    """A few short sentences, and the main numbers."""
    sentences = (comparison(study), fragility(study), limits(study), verdicts(claims or covid_claims(study)))
    caption = f"Estimated cases that go back to the chosen regions, days {study.about['change']} to {len(study.days)}"
    return short_body(sentences, main_numbers(study), caption)


def comparison(study: CovidResults) -> str:
    """Whose choices account for more cases after the change, on each scale."""
    found = {scale: clustered_interval(gain(study, scale, "own")) for scale in SCALE_LABELS}
    cases, unit = (more_or_fewer(interval) for interval in found.values())
    return (
        f"After the study's artificial change of day {study.about['change']}, measured as in the paper, NDC-SEM's "
        f"choices account for {cases} than SEM-UCB's with data in cases, and for {unit} with data on [0, 1]: "
        f"{conclusion(*found.values())}."
    )


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


def fragility(study: CovidResults) -> str:
    """Say how much the paper's measure depends on the graphs of the policies."""
    bounded, common = (
        more_or_fewer(clustered_interval(gain(study, "cases", *conditions)))
        for conditions in (("own", BOUNDED_RULE), ("common", PAPER_RULE))
    )
    most = format_number(max(largest_weight(study, name).max() for name in COMPARISONS["cases"]))
    return (
        f"That measure is fragile: in a policy's own graph one case can count for up to {most}. With data in cases the "
        f"difference is {bounded} if the effects on a region may sum to at most {ROW_BOUND:g}, a bound that the paper "
        f"does not have. It is {common} if both policies are measured by the same graph."
    )


def limits(study: CovidResults) -> str:
    """Name the limits of the study."""
    errors = {k: float(v.mean()) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    graph, naive = errors[f"{FROM_ALL}, {AT_DECISION}"], errors[NAIVE]
    return (
        "The study does not say where to intervene. It is not recorded which cases started in a region, and recorded "
        f"cases do not react to choices. The learned graph predicts {'worse' if graph > naive else 'better'} than the "
        f"last known value (off by {format_number(graph, 1)} and {format_number(naive, 1)} cases per region and day)."
    )


def verdicts(claims: list[Claim]) -> str:
    return f"The paper's claims about Covid-19, judged under its own conditions: {tally(claims, CONDITIONS)}."


def main_numbers(study: CovidResults) -> pd.DataFrame:
    """Rewards after the change by each policy's own graph, without and with a bound, and by a common graph."""
    rows = []
    measures = {
        SCORES["own"]: ("own", PAPER_RULE),
        f"own final graph, bounded by {ROW_BOUND:g}": ("own", BOUNDED_RULE),
        SCORES["common"]: ("common", PAPER_RULE),
    }
    for measure, (score, rule) in measures.items():
        for scale, words in SCALE_LABELS.items():
            values = gain(study, scale, score, rule)
            totals = [
                format_number(since(study.rewards(LITERAL, name, rule)[score], study.about["change"]).mean())
                for name in COMPARISONS[scale]
            ]
            rows.append([words, measure, *totals, format_mean(values), runs_won(values)])
    columns = ["data", "measured by", "NDC-SEM", "SEM-UCB", "NDC-SEM − SEM-UCB [95%]", "NDC-SEM ahead in"]
    return pd.DataFrame(rows, columns=columns)


TITLE = "Covid-19 in Italy: which regions, when tests come late?"
SIMULATED = "Simulated outbreak, not real data: the pipeline of the Covid-19 study"


def write_covid_report(folder: str | Path) -> Path:
    """Write report.html, figures/ and tables into the folder of a study; returns the path of the page."""
    study = open_study(folder)
    draw = Captioned(study)
    write_tables(study)
    title = SIMULATED if study.simulated else TITLE
    parts = simulated_parts(study, draw) if study.simulated else page_parts(study, draw)
    return write_page(folder, title, subtitle(study), parts)


class Captioned(Illustrator):
    """Marks every figure as simulated where the record was not available."""

    def __init__(self, study: CovidResults) -> None:
        super().__init__(study.folder / "figures")
        self.before = "Simulated outbreak, not real data. " if study.simulated else ""

    def __call__(self, name: str, ax: Axes, caption: str) -> str:
        if self.before:  # a figure may be used without its caption
            figure_of(ax).suptitle("simulated outbreak, not real data", color="#A3330B", fontsize="medium")
        return super().__call__(name, ax, self.before + caption)


def subtitle(study: CovidResults) -> str:
    what = "a simulated outbreak" if study.simulated else "the record of the Italian Civil Protection Department"
    return (
        f"Section V-B of the paper, on {what}: {sample_size(study)}, replayed and semi-synthetic, in "
        "cases and on [0, 1]. Generated by Spillover from the results in this folder."
    )


def page_parts(study: CovidResults, draw: Captioned) -> Iterator[Part]:
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
    found = tally(claims, CONDITIONS)
    untested = "".join(f"<li>{escape(text)}</li>" for text in UNTESTED)
    return (
        f"<p>{escape(found[0].upper() + found[1:])}. Each claim of Section V-B and its appendix has one row, judged "
        "under the paper's own conditions: data in cases (it does not say whether they were scaled), λ by its rule, no "
        "bound on the graph, rewards by each policy's own final graph, the record replayed. Where a row uses another "
        "measure, it says so. Indented rows are the same claim under other conditions, and "
        "do not count. The paper shows one run and does not say which; so one verdict is whether the statement is true "
        "in more than half of the single runs. In the other a difference counts if its 95% interval, clustered by "
        f"shift over {sample_size(study)}, excludes 0. Both policies have the same data sets.</p>"
        f"{claims_table(claims, NAMES, CONDITIONS)}<p>Not in the table, because no data of this study can decide "
        f"them:</p><ul>{untested}</ul>"
    )


def simulated_parts(study: CovidResults, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section."""
    yield "short", "In short", simulated_in_short(study)
    yield "reading", "How to read this page", reading(study)
    yield "steps", "What the software does", simulated_steps(study, draw)
    yield "provenance", "Data, settings, seeds, versions", provenance(study)


def simulated_in_short(study: CovidResults) -> str:
    """Say what the page is, and where the record belongs."""
    files = list(registry())
    repository = SOURCE.removeprefix("https://")
    return (
        "<p><b>Simulated outbreak: nothing on this page is about a real epidemic or about the paper's claims.</b> The "
        "record was not available, so the study ran on made-up cases. It shows that the software works, and judges "
        "nothing.</p>"
        f"<p><b>Where to put the record.</b> It has {len(files)} files, {escape(files[0])} to {escape(files[-1])}, "
        f"from the folder {escape(repository)}. Put them into a folder, unchanged, and give it to the command: "
        f"<code>spillover reproduce covid --data FOLDER</code>, or set the variable <code>{VARIABLE}</code> to it. "
        "Each file is checked. The page on the record is then written to another folder, <code>covid</code>, and has "
        "the paper's figures and claims.</p>"
    )


def simulated_steps(study: CovidResults, draw: Draw) -> str:
    """Every step of the study in words, and three of its pictures."""
    at = (study.plan.picture, 0)
    x = study.played(LITERAL, "ndc-sem").x[at]
    names = ("ndc-sem", "sem-ucb")
    cells = len(study.plan.discounts) * len(study.plan.explorations)
    words = (
        f"Region-specific cases are drawn and smoothed for {sample_size(study)}, and shifted on day "
        f"{study.about['change']}.",
        f"{len(list(planned_runs()))} combinations of policy, mode, scale and way to learn the graph (of which there "
        f"are {len(RULES)}) are played, all data sets of one in a batch.",
        f"The grid of {cells} cells is searched, on both scales.",
        "The arrays go to <code>cells/</code>, the tables to <code>rewards.csv</code>, <code>regret.csv</code>, "
        "<code>errors.csv</code>, <code>tuning.csv</code> and <code>contributions.csv</code>, where every row says "
        "that it is simulated.",
    )
    pictures = (
        draw(
            "recorded-cases",
            recorded_panels(np.array(study.about["cases"]), study.days, study.regions)[0],
            "Daily new cases of the 21 regions, made up.",
        ),
        draw(
            "selection",
            selection_figure(x, study.regions, forced=forced_choices(x, study.plan.delay)),
            "Regions chosen by NDC-SEM on each day of one run. Lines: end of the initialisation, the change, and the "
            "first day on which an outcome from after the change is known.",
        ),
        draw(
            "cumulative-reward",
            days_figure(
                {name: study.rewards(LITERAL, name)["own"] for name in names},
                labels=LABELS,
                change=study.about["change"],
            ),
            "Estimated cumulative overall reward, each policy by its own final graph; mean and 95% band.",
        ),
    )
    return f"<ol>{''.join(f'<li>{text}</li>' for text in words)}</ol>{''.join(pictures)}"


def findings(study: CovidResults) -> str:
    """Write the findings in numbers; the same results always give the same text."""
    claims = covid_claims(study)
    found = f"On the record, {sample_size(study)}, under the paper's own conditions: {tally(claims, CONDITIONS)}."
    parts = [*textwrap.wrap(found, 118), ""]
    parts += [textwrap.fill(line, 118, initial_indent="- ", subsequent_indent="  ") for line in lines(study)]
    parts += ["", "The claims, each under the paper's own conditions (the page has the other ones below each):", ""]
    parts += claim_table(claims)
    return "\n".join(parts)


def lines(study: CovidResults) -> Iterator[str]:
    """The main numbers."""
    for scale, words in SCALE_LABELS.items():
        own, bounded, common = (
            gain(study, scale, score, rule)
            for score, rule in (("own", PAPER_RULE), ("own", BOUNDED_RULE), ("common", PAPER_RULE))
        )
        yield (
            f"NDC-SEM minus SEM-UCB after day 40, data {words}: {format_mean(own)} cases, "
            f"each by its own final graph, above 0 in {runs_won(own)}; {format_mean(bounded)} if "
            f"effects on a region sum to at most {ROW_BOUND:g}, above 0 in {runs_won(bounded)}; "
            f"{format_mean(common)} by the common graph, above 0 in {runs_won(common)}."
        )
    most = {
        rule: [largest_weight(study, name, rule) for name in ("ndc-sem", "sem-ucb")]
        for rule in (PAPER_RULE, BOUNDED_RULE)
    }
    largest = {rule: " and ".join(format_number(values.max()) for values in pair) for rule, pair in most.items()}
    median = " and ".join(format_number(np.median(values)) for values in most[PAPER_RULE])
    yield (
        f"Rewards by a policy's own graph are fragile: a region-specific case counts for up to {largest[PAPER_RULE]} "
        f"cases in the graphs of NDC-SEM and SEM-UCB ({median} in the median run), with the bound for up to "
        f"{largest[BOUNDED_RULE]}."
    )
    shares = [
        f"{best_share(study, name).mean():.0%}" for name in ("ndc-sem", "sem-ucb", "ndc-sem-unit", "sem-ucb-unit")
    ]
    yield (
        f"Of the choices after day 44, {shares[0]} of NDC-SEM's and {shares[1]} of SEM-UCB's are among the five "
        f"regions with the most expected region-specific cases; on [0, 1] {shares[2]} and {shares[3]}."
    )
    found = detected(study, "ndc-sem")
    yield (
        f"Where the optimal five regions are known, NDC-SEM finds {format_mean(found, 1)} of them by "
        f"day 80, and all five in {runs_won(found == 5)}."
    )
    errors = {k: float(v.mean()) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    yield (
        f"The prediction A y + z is off by {errors[f'{FROM_ALL}, {FINAL}']:.1f} cases per region with the final graph "
        f"and by {errors[f'{FROM_ALL}, {AT_DECISION}']:.1f} out of sample; the last known value by {errors[NAIVE]:.1f}."
    )
    yield from penalty_lines(study)
    above, test = excess(study), recovery()
    low, high = test.resampled
    yield (
        f"On {above.mean():.0%} of the region-days the sampled region-specific cases exceed the recorded ones, which "
        f"no graph A >= 0 can produce (Lombardia {above[study.regions.index('LOM')]:.0%}, Piemonte "
        f"{above[study.regions.index('PIE')]:.0%}). With the bound, {bounded_rows(study):.0%} of the rows of A\\* "
        f"are at it."
    )
    yield (
        f"On simulated outbreaks with a known graph, resampled cases do not identify it (largest error of an entry "
        f"{low:.1f} to {high:.1f}), and masking makes its rows sum to {test.masked_rows / test.true_rows:.1f} times "
        "the truth."
    )


def penalty_lines(study: CovidResults) -> Iterator[str]:
    """Yield the sentences on the rule of lambda."""
    rules = (PAPER_RULE, SQUARED_RULE)
    pairs = [
        " and ".join(format_number(specific_a_day(study, n, rule).mean()) for n in ("ndc-sem-unit", "sem-ucb-unit"))
        for rule in rules
    ]
    yield (
        "λ by the paper's rule or by the squared error: on [0, 1] the regions that NDC-SEM and SEM-UCB choose from "
        f"day 40 on have {pairs[0]} region-specific cases a day with the one, {pairs[1]} with the other."
    )
    alone, both = (max(map(abs, effect(study).values())) for effect in (star_effect, both_effect))
    final = [format_number(study.played(SEMI, "sem-ucb", rule).regret[..., -1].mean()) for rule in rules]
    yield (
        f"In the semi-synthetic mode the rule changes the final regret by up to {alone:.0%} if it is that of A\\* "
        f"alone, and by up to {both:.0%} if it is that of the policies as well (SEM-UCB: {final[0]} and {final[1]})."
    )


def claim_table(claims: list[Claim]) -> Iterator[str]:
    yield f"| claim | {' | '.join(CONDITIONS)} |"
    yield "|---|---|---|"
    for claim in claims:
        yield f"| {claim.claim} ({claim.source}) | {claim.one or '–'} | {claim.verdict} |"
