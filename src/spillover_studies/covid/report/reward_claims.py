"""The paper's claims in Section V-B on rewards, on contributions of regions, and on tuning; see `claims`."""

from collections.abc import Callable, Iterator

import numpy as np

from spillover.report.claims import FAILS, HOLDS, OPEN, UNCHECKABLE, Claim, Variant, by_measures, sign_verdict
from spillover.types import Array
from spillover_studies.covid import SEMI, CovidResults, clustered_interval
from spillover_studies.covid.plan import PAPER_RULE
from spillover_studies.covid.play import ONE_RUN
from spillover_studies.covid.report.measures import (
    COMPARISON_LABELS,
    COMPARISONS,
    OTHER_RULES,
    SCALE_LABELS,
    all_single_ranks,
    daily_gains,
    format_ci,
    format_mean,
    format_number,
    gain,
    graph_share,
    half_verdict,
    in_grid,
    in_most_runs,
    largest_weight,
    more_or_fewer,
    one_run_best,
    overlaps,
    paper_cell,
    runs_won,
    shifts_won,
    signed,
    single_ranks,
    single_winners,
    total_gain,
)
from spillover_studies.covid.scores import SCORES

BY_COMMON = f"scored by: {SCORES['common']}"
CHOSEN_AND_RECORDED = "NDC-SEM's choices and recorded cases"
Measure = Callable[[CovidResults, str, str, str], Array]  # comparison, scored by, how graphs are learned


def rewards(study: CovidResults) -> Iterator[Claim]:
    """Estimated cumulative overall reward, as the paper has it and by other graphs and on other scales."""
    total = total_gain(study, "cases", "own")
    yield Claim(
        "V-B",
        "“NDC-SEM achieves a higher estimated cumulative overall reward compared to SEM-UCB”",
        f"on all 80 days, each by its own final graph, {more_or_fewer(clustered_interval(total))}; more in "
        f"{runs_won(total)} and {shifts_won(total)}",
        sign_verdict(clustered_interval(total)),
        fragile(study),
        tuple(gain_variants(study, total_gain)),
        in_most_runs(total > 0),
    )
    late = gain(study, "cases", "own")
    yield Claim(
        "Appendix, Fig. 9",
        "“after the change point at day 40, NDC-SEM performs better than SEM-UCB […] Consequently, the selected "
        "regions by NDC-SEM yield higher accumulated overall rewards than those by SEM-UCB.”",
        f"on days 40 to 80, each by its own final graph, {more_or_fewer(clustered_interval(late))}; more in "
        f"{runs_won(late)} and {shifts_won(late)}",
        sign_verdict(clustered_interval(late)),
        fragile(study),
        (*gain_variants(study, gain), *regret_variants(study)),
        in_most_runs(late > 0),
    )
    before, after = daily_gains(study, "cases", "own")
    more = clustered_interval(after - before)
    yield Claim(
        "Appendix, Fig. 9",
        "“[NDC-SEM performs better after day 40] due to the fact that it considers the effects of non-stationarity and "
        "the delay”",
        f"its gain over SEM-UCB is {format_mean(before)} cases a day on days 25 to 39 and "
        f"{format_mean(after)} on days 44 to 80; difference {format_ci(more)}",
        sign_verdict(clustered_interval(after), more),
        "Bar: the gain must be above 0 after the change, and larger than before it. Ours; the paper gives no test of "
        "the reason, and the two policies differ in more than that.",
        tuple(reason_variants(study)),
        in_most_runs((after > 0) & (after > before)),
    )


def fragile(study: CovidResults) -> str:
    """Say how much a single region can count in the graphs that the paper scores by."""
    most = [format_number(largest_weight(study, name).max()) for name in COMPARISONS["cases"]]
    return (
        f"The paper's measure, and a fragile one: in NDC-SEM's final graph a region-specific case counts for up to "
        f"{most[0]} cases, in SEM-UCB's for up to {most[1]}."
    )


def gain_variants(study: CovidResults, measure: Measure) -> Iterator[Variant]:
    """The same difference by other graphs, on other scales and with graphs that are learned by other rules."""
    conditions = [
        (BY_COMMON, "cases", "common", PAPER_RULE),
        (f"scored by: {SCORES['moving']}", "cases", "moving", PAPER_RULE),
        (f"scored by: {SCORES['specific']}", "cases", "specific", PAPER_RULE),
        (f"scored by: {SCORES['recorded']}", "cases", "recorded", PAPER_RULE),
        (COMPARISON_LABELS["unit"], "unit", "own", PAPER_RULE),
        (f"{COMPARISON_LABELS['unit']}, {BY_COMMON}", "unit", "common", PAPER_RULE),
        (COMPARISON_LABELS["bonus"], "bonus", "own", PAPER_RULE),
        (f"{COMPARISON_LABELS['bonus']}, {BY_COMMON}", "bonus", "common", PAPER_RULE),
    ]
    for rule, words in OTHER_RULES.items():
        conditions += [
            (words, "cases", "own", rule),
            (f"{words}, {BY_COMMON}", "cases", "common", rule),
            (f"{COMPARISON_LABELS['unit']}, {words}", "unit", "own", rule),
        ]
    for words, comparison, score, rule in conditions:
        values = measure(study, comparison, score, rule)
        finding = f"{format_mean(values)}, above 0 in {runs_won(values)} and {shifts_won(values)}"
        yield signed(words, finding, values)


def regret_variants(study: CovidResults) -> Iterator[Variant]:
    """Regret, where choices have effects."""
    for comparison, (ours, theirs) in COMPARISONS.items():
        for rule, words in {PAPER_RULE: "", **OTHER_RULES}.items():
            final = {name: study.played(SEMI, name, rule).regret[..., -1] for name in (ours, theirs)}
            saved = final[theirs] - final[ours]
            yield signed(
                ", ".join(part for part in ("semi-synthetic", COMPARISON_LABELS[comparison], words) if part),
                f"final regret of SEM-UCB minus that of NDC-SEM: {format_mean(saved)}, above 0 in {runs_won(saved)}",
                saved,
            )


def reason_variants(study: CovidResults) -> Iterator[Variant]:
    conditions = [
        (BY_COMMON, "cases", "common", PAPER_RULE),
        (f"scored by: {SCORES['specific']}", "cases", "specific", PAPER_RULE),
        (COMPARISON_LABELS["unit"], "unit", "own", PAPER_RULE),
        *((words, "cases", "own", rule) for rule, words in OTHER_RULES.items()),
    ]
    for words, comparison, score, rule in conditions:
        before, after = daily_gains(study, comparison, score, rule)
        more = clustered_interval(after - before)
        finding = f"{format_mean(before)} cases a day before, {format_mean(after)} after"
        single = in_most_runs((after > 0) & (after > before))
        yield Variant(words, finding, sign_verdict(clustered_interval(after), more), single)


# --- contributions ---------------------------------------------------------------------------------------------------


def contribution(study: CovidResults) -> Iterator[Claim]:
    found = overlaps(study)
    means = {label: format_mean(values, 1) for label, values in found.items()}
    same = found["contribution and recorded cases"]
    yield Claim(
        "V-B",
        "“the set of regions with the highest contributions is not necessarily the same as the set of regions with the "
        "highest total number of daily cases”",
        f"{means['contribution and recorded cases']} of the five regions with the largest contribution (weight times "
        f"expected region-specific cases) are among the five with the most recorded cases of days 1 to 39; the sets "
        f"differ in {runs_won(5 - same)}. Of the five that NDC-SEM chooses most often on days 25 to 39 "
        f"{means[CHOSEN_AND_RECORDED]} are",
        HOLDS if bool((same < 5).any()) else FAILS,
        "Bar: they differ in at least one run, as “not necessarily” says.",
        one=in_most_runs(same < 5),
    )
    differ, due = graph_share(study)
    own_differ, own_due = graph_share(study, own=True)
    graphs = (
        due_variant("measure: by A*, the graph of all regions before the shift (ours)", differ, due),
        due_variant("measure: by NDC-SEM's final graph (the paper's), which mixes both periods", own_differ, own_due),
    )
    yield Claim(
        "V-B",
        "“each region's contribution to the Covid-19 development differs from its overall daily cases of infection due "
        "to the existing causal effects amongst the regions”",
        f"of the five regions with the largest contribution by A* {format_mean(differ, 1)} are not "
        f"among those with most recorded cases; {format_mean(due, 1)} of these are there because of "
        f"the graph, the others also without one. {means['contribution and region-specific cases']} of five are the "
        "same with and without the graph",
        by_measures(*(variant.verdict for variant in graphs)),
        "Bar: most of the difference must be due to the graph. Ours; the paper shows no numbers. What remains without "
        "the graph is due to where cases were high in the spring of 2020, from which region-specific cases are drawn.",
        (*graphs, *(due_variant(f"{words}, of A*", *graph_share(study, rule)) for rule, words in OTHER_RULES.items())),
        by_measures(*(variant.one for variant in graphs)),
    )


def due_variant(words: str, differ: Array, due: Array) -> Variant:
    """Judge whether most of the difference is due to the graph."""
    finding = f"{format_mean(due, 1)} of {format_mean(differ, 1)} regions"
    return Variant(words, finding, half_verdict(due, differ), in_most_runs(2 * due > differ))


# --- tuning ----------------------------------------------------------------------------------------------------------


def tuning(study: CovidResults) -> Iterator[Claim]:
    """The grid search as the paper does it, on one run, and over many."""
    if not in_grid(study):
        return
    yield Claim(
        "V-B and appendix, hyperparameter tuning",
        "“we tune the parameters of NDC-SEM by performing a grid search and set them to γ = 0.85 and ξ = 0.1 […] we "
        "[…] chose parameters that resulted in the highest estimated cumulative overall reward”",
        f"the run that the paper searched is not known. On {len(all_single_ranks(study, 'cases'))} runs of ours, each "
        f"searched alone, {single_winners(study, 'cases')} different cells win",
        UNCHECKABLE,
        "The best cell changes from run to run, so that what the paper's run gives cannot be said from others.",
        tuple(tuning_variants(study)),
        UNCHECKABLE,
    )


def tuning_variants(study: CovidResults) -> Iterator[Variant]:
    """Whether the paper's cell is the best one on runs of ours."""
    cells = len(study.plan.discounts) * len(study.plan.explorations)
    for scale, words in SCALE_LABELS.items():
        shown, ranks = int(single_ranks(study, scale, ONE_RUN)[0]), all_single_ranks(study, scale)
        discount, exploration = one_run_best(study, scale)
        yield Variant(
            f"our runs, data {words}",
            f"on the run that figures show, searched as in the paper, the best cell is γ = {discount:g}, ξ = "
            f"{exploration:g} and the paper's is in place {shown} of {cells}. On {len(ranks)} single runs (λ fixed) it "
            f"is the best in {int((ranks == 1).sum())}, with places from {ranks.min()} to {ranks.max()} (median "
            f"{np.median(ranks):.0f})",
            one=in_most_runs(np.append(ranks, shown) == 1),
        )
    for scale, words in SCALE_LABELS.items():
        found = {seeds: paper_cell(study, scale, seeds, "own") for seeds in ("reported", "others")}
        places = " and ".join(str(rank) for rank, _ in found.values())
        better = " and ".join(format_ci(above) for _, above in found.values())
        clear = all(float(above.low) > 0 for _, above in found.values())
        best = all(rank == 1 for rank, _ in found.values())
        yield Variant(
            f"by the mean over all shifts, data {words}",
            f"places {places} on two sets of seeds; the cell that is best on the other set is better by {better} cases",
            FAILS if clear else HOLDS if best else OPEN,
        )
