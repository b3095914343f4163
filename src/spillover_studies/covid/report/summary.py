"""What a reader should take away from the Covid-19 study, in a few short sentences and a small table."""

import pandas as pd

from spillover.graph import ROW_BOUND
from spillover.metrics import Interval
from spillover.report.claims import Claim, tally
from spillover.report.short import short_body
from spillover_studies.covid.plan import BOUNDED_RULE, LITERAL, PAPER_RULE
from spillover_studies.covid.report.claims import covid_claims
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    COMPARISONS,
    FROM_ALL,
    NAIVE,
    SCALE_LABELS,
    format_ci,
    format_number,
    gain,
    largest_weight,
    later_errors,
    more_or_fewer,
    prediction_errors,
    runs_won,
)
from spillover_studies.covid.report.verdicts import CONDITIONS
from spillover_studies.covid.results import CovidResults
from spillover_studies.covid.scores import SCORES, clustered_interval, since


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
    """How much the paper's measure depends on the graphs of the policies."""
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
    """What the study cannot say."""
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
            rows.append([words, measure, *totals, format_ci(clustered_interval(values)), runs_won(values)])
    columns = ["data", "measured by", "NDC-SEM", "SEM-UCB", "NDC-SEM − SEM-UCB [95%]", "NDC-SEM ahead in"]
    return pd.DataFrame(rows, columns=columns)
