"""The sections of the Covid-19 report: figures and tables, with the texts around them."""

from collections.abc import Callable, Mapping
from html import escape

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from spillover.figures import grid_figure, means_figure
from spillover.figures.style import WIDTH, figure_legend, new_axes, new_panels
from spillover.graph import ROW_BOUND
from spillover.report.tables import html_table, spans, wide_table
from spillover.types import Array
from spillover_studies.covid import LABELS, LITERAL, SEMI, CovidResults, clustered_interval, validation_days
from spillover_studies.covid.plan import BOUNDED_RULE, NO_GRAPH, PAPER_RULE, RULE_LABELS, RULES, SQUARED_RULE, VARIANTS
from spillover_studies.covid.play import ONE_RUN
from spillover_studies.covid.report.figures import (
    days_figure,
    days_panels,
    error_figure,
    gain_figure,
    prediction_panels,
    recorded_panels,
    rules_figure,
    runs_figure,
    schematic_figure,
    selection_figure,
)
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    CHOOSING,
    COMPARISON_LABELS,
    FINAL,
    FROM_ALL,
    NAIVE,
    NO_GRAPH_AT_ALL,
    RECORDED,
    SCALE_LABELS,
    YESTERDAY,
    Measured,
    all_single_ranks,
    best_share,
    detected,
    format_number,
    gain,
    in_grid,
    largest_weight,
    later_errors,
    median_run,
    only_after,
    prediction_errors,
    single_winners,
    total_gain,
)
from spillover_studies.covid.report.tables import (
    contribution_table,
    payoff_table,
    regret_table,
    reward_table,
    tuning_table,
)
from spillover_studies.covid.report.text import words
from spillover_studies.covid.scores import SCORES, forced_choices, last_values, predict_from_all, top_regions
from spillover_studies.covid.worlds import spectral_radius

Draw = Callable[..., str]  # name, axes, and the values of its caption
SHOWN_DAYS = (15, 35, 55, 75)  # every second one of the eight validation days


def as_texts(table: pd.DataFrame, forms: Mapping[str, str]) -> pd.DataFrame:
    """Write some columns of a table in these formats."""
    return table.assign(**{name: [format(value, form) for value in table[name]] for name, form in forms.items()})


def estimates(study: CovidResults, draw: Draw) -> str:
    """The paper's figure of validation days, and the mean errors."""
    found, at, days = study.played(LITERAL, "ndc-sem"), (study.plan.picture, 0), np.array(SHOWN_DAYS)
    z, y = found.z[at][days - 1], found.y[at][days - 1]
    predicted, last = predict_from_all(found.adjacency[at], z, y), last_values(found.y[at], days, study.plan.delay)
    true, estimated, known = (by_region(study, values, days) for values in (y, predicted, last))
    panels = prediction_panels(true, estimated, SHOWN_DAYS, study.regions, naive=known)
    errors = later_errors(prediction_errors(study), len(study.days))
    below = Measured(errors[NAIVE] - errors[f"{FROM_ALL}, {FINAL}"])
    means = {label: clustered_interval(values) for label, values in errors.items()}
    mean_errors = error_figure(means, (NO_GRAPH_AT_ALL, NAIVE, YESTERDAY))
    return draw("error", panels[0], below=below) + draw("prediction-error", mean_errors) + errors_by_day(study)


def by_region(study: CovidResults, values: Array, days: Array) -> Array:
    """Values of the shown run, (days, n), with every region's data in its own place after the shift, too."""
    k = study.plan.shifts[study.plan.picture]
    after = (np.asarray(days) >= study.about["change"])[:, None]
    return np.where(after, np.roll(values, k, axis=-1), values)


def errors_by_day(study: CovidResults) -> str:
    errors = prediction_errors(study)
    days, texts = validation_days(len(study.days)), words(study)
    rows = [
        {"predictor": label} | {f"day {d}": f"{v:,.1f}" for d, v in zip(days, values.mean(axis=(0, 1)), strict=True)}
        for label, values in errors.items()
    ]
    last = {label: f"{float(values[..., -1].mean()):,.0f}" for label, values in errors.items()}
    total, day = study.data["unshifted_overall"].mean(axis=(0, 1, 3)), int(days[-1])
    note = texts(
        "sections.errors",
        day=day,
        growth=total[day - 1] / total[day - 8],
        naive=last[NAIVE],
        ahead=last[f"{FROM_ALL}, {AT_DECISION}"],
        final=last[f"{FROM_ALL}, {FINAL}"],
    )
    return wide_table(pd.DataFrame(rows), caption=texts("tables.errors"), text=("predictor",)) + note


def selection(study: CovidResults, draw: Draw) -> str:
    """The paper's figure of the selected regions, and in how many runs what it says of it holds."""
    found, at = study.played(LITERAL, "ndc-sem"), (study.plan.picture, 0)
    x, best = found.x[at], top_regions(study.data["expected"][at], 5)
    ax = selection_figure(x, study.regions, forced=forced_choices(x, study.plan.delay), best=best)
    new, hits = only_after(study, "ndc-sem"), detected(study, "ndc-sem")
    return draw("selection", ax) + words(study)(
        "sections.selection",
        count=int(new[at].sum()),
        here=", ".join(region for region, chosen in zip(study.regions, new[at], strict=True) if chosen),
        new=Measured(new.sum(axis=-1)),
        hits=Measured(hits),
        all_five=Measured(hits == 5).runs,
    )


def rewards(study: CovidResults, draw: Draw) -> str:
    """The paper's figure of one run, the mean over all runs, the same by other scoring rules, and the gain by shift."""
    names = [variant.name for variant in VARIANTS]
    found = {name: study.rewards(LITERAL, name) for name in names}
    change = study.about["change"]
    total, late = (Measured(measure(study, "cases", "own")) for measure in (total_gain, gain))
    at = median_run(total.values)
    own = {name: found[name]["own"] for name in names[:2]}
    panels = days_panels(
        {SCORES[s]: {name: found[name][s] for name in names} for s in ("own", "common", "moving", "recorded")},
        labels=LABELS,
        change=change,
        ylabel="reward so far (cases)",
    )
    gains = {label: gain(study, name, "common") for name, label in COMPARISON_LABELS.items()}
    end, k = format_number(total.values[at]), study.plan.shifts[at[0]]
    return (
        scale_words(study)
        + draw(
            "one-run-reward",
            runs_figure(own, at, labels=LABELS, change=change),
            total=total,
            late=late,
            end=end,
            k=k,
            number=at[1],
        )
        + draw("cumulative-reward", days_figure(own, labels=LABELS, change=change))
        + gain_table(study)
        + draw("cumulative-reward-rulers", panels[0])
        + draw("gain-by-shift", gain_figure(gains, study.plan.shifts))
    )


def gain_table(study: CovidResults) -> str:
    """NDC-SEM minus SEM-UCB by every scoring rule."""
    table = reward_table(study)
    spanned = table.rename(columns={"low": "gain_low", "high": "gain_high"})
    table["gain on days 40–80 [95%]"] = spans(spanned, "gain", ",.0f")
    table["share of SEM-UCB's"] = [f"{v:+.1%}".replace("-", "−") for v in table["share of SEM-UCB's"]]
    columns = ["comparison", "scored by", "gain on days 40–80 [95%]", "share of SEM-UCB's", "shifts won", "runs won"]
    return wide_table(table[columns], caption=words(study)("tables.gains"), text=("comparison", "scored by"))


def scale_words(study: CovidResults) -> str:
    """Explain why the two scales differ, by how much each policy explores before the change."""
    last = study.about["change"] - 1
    shares = "; ".join(f"{v.label} {best_share(study, v.name, CHOOSING, last).mean():.0%}" for v in VARIANTS)
    return words(study)("sections.scales", choosing=CHOOSING, last=last, shares=shares)


def regret(study: CovidResults, draw: Draw) -> str:
    names = [*(variant.name for variant in VARIANTS), NO_GRAPH.name, "delayed-oracle", "random"]
    curves = {name: study.played(SEMI, name).regret for name in names}
    ax = days_figure(curves, labels=LABELS, change=study.about["change"], ylabel="cumulative expected regret (cases)")
    best = "best five, days 44–80"
    table = as_texts(regret_table(study).rename(columns={"low": "regret_low", "high": "regret_high"}), {best: ".0%"})
    table["policy"] = [LABELS[name] for name in table["policy"]]
    table["final regret [95%]"] = spans(table, "regret", ",.0f")
    start, blind = (Measured(curves[name][..., len(study.regions) - 1]) for name in ("ndc-sem", "random"))
    text = words(study)("sections.start", start=start, blind=blind)
    return text + draw("semi-synthetic-regret", ax) + html_table(table[["policy", "final regret [95%]", best]])


def graph(study: CovidResults, draw: Draw) -> str:
    learned = study.played(LITERAL, "ndc-sem").adjacency[study.plan.picture, 0]
    unmasked = study.star().mean(axis=(0, 1))
    cases = study.data["unshifted_overall"].mean(axis=(0, 1, 2))
    panels = new_panels(2, 1, size=(6.2, 12.6))
    titles = ("learned by NDC-SEM, after the last day", "all regions, all days, before the shift")
    for ax, adjacency, title in zip(panels, (learned, unmasked), titles, strict=True):
        schematic_figure(
            adjacency, study.about["latitude"], study.about["longitude"], study.regions, shades=cases, ax=ax,
            title=title,
        )  # fmt: skip
    figure_legend(panels)
    return radii(study) + draw("graph", panels[0]) + contributions(study)


def radii(study: CovidResults) -> str:
    """The largest spectral radii; weights are NaN where one is 1 or more."""
    graphs = {LABELS[v.name]: study.played(LITERAL, v.name).adjacency for v in VARIANTS}
    graphs |= {"common graph": study.common(), "A*, before the shift": study.star()}
    values = "; ".join(f"{escape(name)} {float(spectral_radius(a).max()):.2f}" for name, a in graphs.items())
    return words(study)("sections.radii", radii=values)


def contributions(study: CovidResults) -> str:
    """The table of regions; places are written into the cells that they rank, so that a narrow page has all columns."""
    shares = "chosen by NDC-SEM, days 25–39"
    found = contribution_table(study)
    forms = {"region-specific cases a day": ",.1f", "weight": ".2f", "contribution": ",.1f", shares: ".0%"}
    table = as_texts(found, forms)
    ranked = zip(found[RECORDED], found["place by cases"], strict=True)
    table["region"] = [f"{place}. {name}" for place, name in zip(found.iloc[:, 0], found["region"], strict=True)]
    recorded = "recorded cases a day, 7-day means of days 1–39 (place)"
    table[recorded] = [f"{cases:,.1f} ({place})" for cases, place in ranked]
    columns = ["region", recorded, *forms]
    return wide_table(table[columns], caption=words(study)("tables.contributions"), text=("region",))


def payoff(study: CovidResults) -> str:
    """Average payoff and runtimes."""
    table, texts = payoff_table(study), words(study)
    decisions = len(study.plan.shifts) * study.plan.seeds * len(study.days)
    frame = pd.DataFrame(
        {
            "policy": [LABELS[name] for name in table["policy"]],
            "replayed, own graph": [format_or_dash(v) for v in table["own"]],
            "replayed, common graph": [format_or_dash(v) for v in table["common"]],
            "semi-synthetic": [format_or_dash(v) for v in table["semi"]],
            "seconds": [f"{v:.1f}" for v in table["seconds"]],
            "ms per decision": [f"{1000 * v / decisions:.3f}" for v in table["seconds"]],
        }
    )
    return texts("sections.payoff") + wide_table(frame, caption=texts("tables.payoff"))


def format_or_dash(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:,.0f}"


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
                    "region-specific cases a day": f"{Measured(specific_a_day(study, variant.name, rule))}",
                    "error at decision time": f"{Measured(decision_error(study, variant.name, rule)):1}",
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
    names, texts = [variant.name for variant in VARIANTS], words(study)
    measures = {
        SPECIFIC: {RULE_LABELS[rule]: {n: specific_a_day(study, n, rule) for n in names} for rule in RULES},
        REGRET: {RULE_LABELS[rule]: {n: study.played(SEMI, n, rule).regret[..., -1] for n in names} for rule in RULES},
    }
    figure = draw("lambda-rules", rules_figure(measures, labels=LABELS)[0])
    first = wide_table(rules_table(study), caption=texts("tables.rules"), text=("policy", "graph"))
    return rule_words(study) + figure + first + wide_table(star_table(study), caption=texts("tables.star"))


def rule_words(study: CovidResults) -> str:
    """Explain which rule is used where."""
    unbounded, bounded = (Measured(gain(study, "cases", "own", rule)) for rule in (PAPER_RULE, BOUNDED_RULE))
    paper, squared = (
        np.array([decision_error(study, variant.name, rule).mean() for variant in VARIANTS])
        for rule in (PAPER_RULE, SQUARED_RULE)
    )
    effects = [star_effect(study), both_effect(study)]
    alone, both = (max(found.items(), key=lambda item: abs(item[1])) for found in effects)
    return words(study)(
        "sections.rules",
        unbounded=unbounded,
        bounded=bounded,
        levels={rule: on_unit_scale(study, rule) for rule in RULES},
        better=int((paper < squared).sum()),
        policies=len(VARIANTS),
        alone=abs(alone[1]),
        alone_policy=LABELS[alone[0]],
        both=abs(both[1]),
        both_policy=LABELS[both[0]],
    )


def on_unit_scale(study: CovidResults, rule: str) -> str:
    """Region-specific cases a day in the regions that both policies choose, with data on [0, 1]."""
    names = ("ndc-sem-unit", "sem-ucb-unit")
    return " and ".join(format_number(float(specific_a_day(study, name, rule).mean())) for name in names)


def data(study: CovidResults, draw: Draw) -> str:
    texts, days = words(study), study.days
    panels = recorded_panels(np.array(study.about["cases"]), days, study.regions)
    recorded = draw("recorded-cases", panels[0], first=days[0], last=days[-1])
    expected = study.data["expected"][study.plan.picture, 0]
    ax = new_axes(6.2, 8.6)
    means_figure(expected, best=top_regions(expected, 5), names=study.regions, changes=(study.about["change"],), ax=ax)
    ax.set(xlabel="day", ylabel=f"region (each row from 0 to {expected.max():,.0f} cases)")
    for value in ax.texts:
        value.set_fontsize(8)  # to be read on a narrow screen
    rename(ax, {"in the optimal set": "the five highest", "other arms": "other regions"})
    figure_legend([ax])
    text = texts("sections.data", negative=study.about["negative_counts"])
    return text + recorded + abbreviations(study) + draw("expected-cases", ax)


def abbreviations(study: CovidResults) -> str:
    """The names of the regions, three in a row."""
    pairs = list(zip(study.regions, study.about["names"], strict=True))
    rows = [[text for pair in pairs[k::7] for text in pair] for k in range(7)]
    columns = [f"{what}{' ' * k}" for k in range(len(rows[0]) // 2) for what in ("short", "region")]
    return html_table(pd.DataFrame(rows, columns=columns), caption=words(study)("tables.regions"), text=columns)


def rename(ax: Axes, labels: dict[str, str]) -> None:
    """Replace labels in the legend: arms are regions here."""
    for artist in ax.collections:
        artist.set_label(labels.get(str(artist.get_label()), str(artist.get_label())))


def tuning(study: CovidResults, draw: Draw) -> str:
    """The grid search on one run as in the paper, beside the mean over the shifts."""
    texts = words(study)
    body = texts("sections.tuning")
    for scale, label in SCALE_LABELS.items():
        panels = new_panels(2, 1, size=(WIDTH, 12.4))
        grids = {
            "one run, as in the paper": study.grid(scale, ONE_RUN),
            f"mean over {len(study.plan.shifts)} shifts": study.grid(scale, "reported"),
        }
        for ax, (title, found) in zip(panels, grids.items(), strict=True):
            grid_figure(
                found.rewards["own"].mean(axis=-1), study.plan.discounts, study.plan.explorations,
                measure="estimated reward (cases)", smaller_is_better=False, title=f"{title}, data {label}", ax=ax,
                circled=(study.plan.discount, study.plan.exploration),
            )  # fmt: skip
        given = {"sparsity": study.grid_sparsity(scale), "single": single_words(study, scale)}
        body += draw(f"grid-{scale}", panels[0], text="grid", scale=label, **given)
    value, best = "value on the reported seed", "share of the grid's best"
    table = as_texts(tuning_table(study), {"discount γ": ".2f", "exploration ξ": ".0e", value: ",.0f", best: ".0%"})
    table = table.rename(columns={"discount γ": "γ", "exploration ξ": "ξ"})
    return body + wide_table(table, caption=texts("tables.tuning"), text=("scale", "seed", "chosen by"))


def single_words(study: CovidResults, scale: str) -> str:
    """Count how often a search on a single run would choose the paper's cell."""
    if not in_grid(study):
        return ""
    ranks = all_single_ranks(study, scale)
    wins, winners = int((ranks == 1).sum()), single_winners(study, scale)
    return words(study)("sections.single", count=len(ranks), winners=winners, wins=wins, median=np.median(ranks))
