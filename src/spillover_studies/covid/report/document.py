"""The findings of the study as Markdown, for docs/covid.md."""

import textwrap
from collections.abc import Iterator

import numpy as np

from spillover.graph import ROW_BOUND
from spillover.report.claims import Claim, tally
from spillover_studies.covid import SEMI, CovidResults
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, SQUARED_RULE
from spillover_studies.covid.report.claims import covid_claims
from spillover_studies.covid.report.graph_rules import both_effect, specific_a_day, star_effect
from spillover_studies.covid.report.measures import (
    AT_DECISION,
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
    prediction_errors,
    recovery,
    runs_won,
)
from spillover_studies.covid.report.text import sample_size


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
