"""The section on learning graphs: the rule of lambda and a bound on the effects, on the same runs; and A*."""

import numpy as np
import pandas as pd

from spillover.graph import ROW_BOUND
from spillover.report.tables import html_table
from spillover.types import Array
from spillover_studies.covid import LABELS, LITERAL, SEMI, CovidResults, clustered_interval
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, RULE_LABELS, RULES, SQUARED_RULE, VARIANTS
from spillover_studies.covid.report.figures import rules_figure
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    FROM_ALL,
    format_ci,
    format_mean,
    format_number,
    gain,
    largest_weight,
    later_errors,
    prediction_errors,
)
from spillover_studies.covid.report.sections import Draw
from spillover_studies.covid.report.text import sample_size

SHORT = {PAPER_RULE: "as in the paper", BOUNDED_RULE: f"bounded, {ROW_BOUND:g}", SQUARED_RULE: "squared error, 1%"}
SPECIFIC = "region-specific cases a day in the chosen regions, days 40 to 80"
REGRET = "semi-synthetic: final regret (cases), A* learned in the same way"


def specific_a_day(study: CovidResults, name: str, rule: str) -> Array:
    """Region-specific cases a day in the chosen regions from the change on, (shifts, seeds)."""
    z = study.played(LITERAL, name, rule).z[..., study.about["change"] - 1 :, :]
    return np.asarray(z.sum(axis=-1).mean(axis=-1))


def decision_error(study: CovidResults, name: str, rule: str) -> Array:
    """Mean error of A y + z with the graph at decision time, in cases per region, (shifts, seeds)."""
    errors = later_errors(prediction_errors(study, name, rule), len(study.days))
    return errors[f"{FROM_ALL}, {AT_DECISION}"]


def star_effect(study: CovidResults) -> dict[str, float]:
    """Return how the final regret of each policy changes if λ of A* alone is chosen by the paper's rule, not ours."""
    return rule_effect(study, (PAPER_RULE, PAPER_RULE), (PAPER_RULE, SQUARED_RULE))


def both_effect(study: CovidResults) -> dict[str, float]:
    """Return the same if λ of A* and of the policies is."""
    return rule_effect(study, (PAPER_RULE, PAPER_RULE), (SQUARED_RULE, SQUARED_RULE))


def rule_effect(study: CovidResults, *rules: tuple[str, str]) -> dict[str, float]:
    """Compare the final regret of each policy under two pairs of rules, of the policy and of A*, as a share."""
    found = {}
    for variant in VARIANTS:
        first, second = (study.played(SEMI, variant.name, *pair).regret[..., -1].mean() for pair in rules)
        found[variant.name] = float(first / second - 1)
    return found


def rules_table(study: CovidResults) -> pd.DataFrame:
    """Every rule on the replayed record: one row for each policy and rule."""
    rows = []
    for variant in VARIANTS:
        for rule in RULES:
            played = study.played(LITERAL, variant.name, rule)
            rows.append(
                {
                    "policy": variant.label,
                    "graph": SHORT[rule],
                    "region-specific cases a day": format_ci(
                        clustered_interval(specific_a_day(study, variant.name, rule))
                    ),
                    "error at decision time": format_ci(
                        clustered_interval(decision_error(study, variant.name, rule)), 1
                    ),
                    "effects": f"{(played.adjacency > 0).sum(axis=(-2, -1)).mean():.0f}",
                    "largest weight": (
                        f"{format_number(np.median(largest_weight(study, variant.name, rule)))} "
                        f"({format_number(largest_weight(study, variant.name, rule).max())})"
                    ),
                    "median λ": f"{float(np.median(played.sparsity)):.0e}",
                }
            )
    return pd.DataFrame(rows)


def star_table(study: CovidResults) -> pd.DataFrame:
    """Final regret in the semi-synthetic mode under both rules of A* and of the policies."""
    alone, both = star_effect(study), both_effect(study)
    rows = []
    for variant in VARIANTS:
        final = [
            format_number(study.played(SEMI, variant.name, *rules).regret[..., -1].mean())
            for rules in ((PAPER_RULE, PAPER_RULE), (PAPER_RULE, SQUARED_RULE), (SQUARED_RULE, SQUARED_RULE))
        ]
        changes = [f"{found[variant.name]:+.0%}".replace("-", "−") for found in (alone, both)]
        rows.append([variant.label, *final, *changes])
    columns = [
        "policy", "both the paper's", "A* squared", "both squared", "change by A* alone", "change by both",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def graph_rules(study: CovidResults, draw: Draw) -> str:
    """The section: text, figure and two tables."""
    names = [variant.name for variant in VARIANTS]
    measures = {
        SPECIFIC: {RULE_LABELS[rule]: {n: specific_a_day(study, n, rule) for n in names} for rule in RULES},
        REGRET: {RULE_LABELS[rule]: {n: study.played(SEMI, n, rule).regret[..., -1] for n in names} for rule in RULES},
    }
    figure = draw(
        "lambda-rules",
        rules_figure(measures, labels=LABELS)[0],
        "Three ways to learn the graph, on the same data sets; mean and 95% interval, clustered by shift, over "
        f"{sample_size(study)}. Above: replayed; more cases mean that the choices matter more. Below: "
        "semi-synthetic; less regret is better.",
    )
    first = html_table(
        rules_table(study),
        caption="Replayed record; days 40 to 80, errors in cases per region on validation days 25 to 75; largest "
        "weight of a region in the policy's final graph, median of the runs (largest of all)",
        text=("policy", "graph"),
    )
    second = html_table(
        star_table(study), caption="Semi-synthetic mode: final regret by the rule of λ, of A* and of the policies"
    )
    return words(study) + figure + f'<div class="wide">{first}</div><div class="wide">{second}</div>'


def words(study: CovidResults) -> str:
    """Explain which rule is used where."""
    level = {
        (name, rule): float(specific_a_day(study, name, rule).mean())
        for name in ("ndc-sem-unit", "sem-ucb-unit")
        for rule in RULES
    }
    pairs = {
        rule: " and ".join(format_number(level[name, rule]) for name in ("ndc-sem-unit", "sem-ucb-unit"))
        for rule in RULES
    }
    differences = {rule: format_mean(gain(study, "cases", "own", rule)) for rule in (PAPER_RULE, BOUNDED_RULE)}
    ahead = {rule: [decision_error(study, variant.name, rule).mean() for variant in VARIANTS] for rule in RULES}
    better = sum(ours < theirs for ours, theirs in zip(ahead[PAPER_RULE], ahead[SQUARED_RULE], strict=True))
    alone, both = star_effect(study), both_effect(study)
    largest_alone, largest = (max(found, key=lambda name, f=found: abs(f[name])) for found in (alone, both))  # type: ignore[misc]
    return (
        "<p>The paper chooses λ every day by the mean absolute error ε(t) of A y + z on the validation days that have "
        "arrived. Its claims are judged with that rule, on this page as well. The package's own default, "
        "<code>self-tuned</code>, takes the largest λ whose squared error is within 1% of the lowest: it needs running "
        "sums only, so that its memory does not grow with the number of days, and it prefers graphs with fewer "
        "effects. <code>paper-tuned</code> is the paper's rule.</p>"
        "<p>The paper searches cyclic graphs and sets no bound on their effects, and neither does this page unless it "
        "says so. A bound keeps spill-over finite whatever the data, which is why the package has one by default "
        f"(<code>row_bound={ROW_BOUND:g}</code>). It decides who is ahead by the paper's measure, in cases: the reward "
        f"of NDC-SEM after day 40 minus that of SEM-UCB, each by its own final graph, is {differences[PAPER_RULE]} "
        f"without it and {differences[BOUNDED_RULE]} with it.</p>"
        f"<p>On [0, 1] the rule of λ matters: the regions that NDC-SEM and SEM-UCB choose from day 40 on have "
        f"{pairs[PAPER_RULE]} region-specific cases a day with the paper's rule, {pairs[SQUARED_RULE]} with ours, and "
        f"{pairs[BOUNDED_RULE]} with the paper's and the bound. At decision time "
        f"the graphs of the paper's rule predict better for {better} of the {len(VARIANTS)} policies; a rule that "
        "predicts better need not choose better. In the "
        f"semi-synthetic mode λ of A* alone changes the final regret by up to {abs(alone[largest_alone]):.0%} "
        f"({LABELS[largest_alone]}), and λ of A* and of the policies by up to {abs(both[largest]):.0%} "
        f"({LABELS[largest]}), because A* sets how much every region's cases count.</p>"
    )
