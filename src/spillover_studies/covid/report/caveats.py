"""The limitations of the study and the sources of its data, in text with the study's numbers."""

from html import escape

import numpy as np

from spillover.graph import ROW_BOUND
from spillover_studies.covid import CovidResults, clustered_interval
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, RULES, SEED_ROOM
from spillover_studies.covid.record import REGIONS
from spillover_studies.covid.report.checks import SEEDS, bounded_rows, excess, recovery
from spillover_studies.covid.report.measures import (
    NAIVE,
    YESTERDAY,
    format_ci,
    format_number,
    largest_weight,
    later_errors,
    overlaps,
    prediction_errors,
)

NAMED = ("LOM", "PIE")  # regions of the north, with the largest first wave


def caveats(study: CovidResults) -> str:
    """The limitations, for decision makers."""
    errors = {k: clustered_interval(v) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    found = {label: clustered_interval(values) for label, values in overlaps(study).items()}
    common, chosen = (found[f"{what} and region-specific cases"] for what in ("contribution", "NDC-SEM's choices"))
    better = errors[NAIVE].mean < errors["A y + z, graph at decision time"].mean
    naive_head = "Naive predictors are better." if better else "Naive predictors are the benchmark."
    points = (
        (
            "Region-specific cases are resampled, not measured.",
            "It is not recorded which cases of a region originated there. The study draws them from the spring of "
            "2020, when travel between regions was banned, and assumes the same distribution in the months of the "
            "study, August to October. This decides most of the ranking: of the five regions with the largest "
            f"contribution, {format_ci(common, 1)} are among the five with most cases in that spring; of the five "
            f"that NDC-SEM chooses most often before the change, {format_ci(chosen, 1)}.",
        ),
        (
            "Recorded cases do not react to choices.",
            "The record is replayed. Whatever a policy chooses, the same cases follow, so it cannot show that an "
            "intervention in the chosen regions would help. Where this page lets choices have effects "
            "(semi-synthetic), that is a model, not evidence.",
        ),
        (
            "The change is artificial.",
            "On day 40 the study exchanges the data of the regions, which never happened. How a policy adapts to it "
            "says something about the policy, and nothing about the epidemic. Exchanging regions exchanges the "
            "effects between them too, so a graph fitted across day 40 mixes two graphs, and is wrong for both.",
        ),
        *graph_points(study),
        (
            "Correlation is not causation.",
            "Cases rose in all regions in October. An edge means that the cases of two regions, smoothed over 7 days, "
            "moved together; a common cause (schools, weather, testing) does the same. Edges are not routes of "
            "infection.",
        ),
        (
            naive_head,
            "The mean error of the last value known at decision time is "
            f"{format_ci(errors[NAIVE], 1)} cases per region, that of yesterday's value "
            f"{format_ci(errors[YESTERDAY], 1)}, and that of the learned graph "
            f"{format_ci(errors['A y + z, graph at decision time'], 1)}, although it uses the same day's cases of all "
            f"other regions; without them it is {format_ci(errors['(I − A)⁻¹ z, graph at decision time'], 1)}.",
        ),
    )
    items = "".join(f"<li><b>{escape(head)}</b> {escape(body)}</li>" for head, body in points)
    return (
        "<p><b>What it can tell:</b> how a policy that learns from late feedback behaves when the regions that matter "
        "change, on data with the size and dynamics of a real epidemic; and how much that depends on the scale of the "
        "data, on how the graph is learned, and on the graph that rewards are measured by.</p>"
        "<p><b>What it cannot tell:</b> where to intervene, and whether an intervention would help.</p>"
        f"<ul>{items}</ul>"
    )


def graph_points(study: CovidResults) -> tuple[tuple[str, str], ...]:
    """Why the data hardly identify the graph: shares in this study, and simulated outbreaks with a known graph."""
    above, test = excess(study), recovery()
    examples = ", ".join(f"{REGIONS[r]} {above[study.regions.index(r)]:.0%}" for r in NAMED)
    simulated = f"On {len(SEEDS)} simulated outbreaks with a known graph"
    low, high = test.resampled
    most = {
        rule: " and ".join(format_number(largest_weight(study, name, rule).max()) for name in ("ndc-sem", "sem-ucb"))
        for rule in (PAPER_RULE, BOUNDED_RULE)
    }
    return (
        (
            "The model does not fit the sampled cases.",
            "Without negative effects between regions, overall cases are at least as many as region-specific ones. In "
            f"{float(np.mean(above)):.0%} of all region-days the sampled region-specific cases exceed the recorded "
            f"ones ({examples}): no graph can produce those days.",
        ),
        (
            "Resampled cases do not identify the graph.",
            "They are drawn independently of the day, so they carry no information on the overall cases of that day. "
            f"{simulated}, the largest error of an effect is {low:.2f} to {high:.2f} with resampled cases "
            f"of all regions, and {test.measured:.0e} with the true ones.",
        ),
        (
            "How large the effects are is hardly determined.",
            f"The paper sets no bound. One case of a region then counts for up to {most[PAPER_RULE]} cases of the "
            "country in the graphs that NDC-SEM and SEM-UCB learn. If the effects on a region may sum to at most "
            f"{ROW_BOUND:g}, it is {most[BOUNDED_RULE]}; but then {bounded_rows(study):.0%} of the regions in the "
            "graph of all days are at the bound, and it, not the data, determines them.",
        ),
        (
            "Masking inflates the graph.",
            "Overall cases are recorded whatever is chosen, while region-specific ones count as 0 for regions that "
            f"were not chosen: all their cases look like spill-over. {simulated} and five regions chosen at random "
            f"each day, the effects on a region sum to {test.masked_rows:.2f} on average in the learned graph and to "
            f"{test.true_rows:.2f} in the true one: {test.masked_rows / test.true_rows:.1f} times as much, even with "
            "the true region-specific cases.",
        ),
    )


def provenance(study: CovidResults) -> str:
    """Attribution, settings, seeds, versions."""
    about, plan = study.about, study.plan
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    room = 100 * SEED_ROOM
    first = f" + {room} × {plan.seed}, for the base seed" if plan.seed else f" (+ {room} × the base seed, here 0)"
    seconds = about.get("seconds")
    took = "" if seconds is None else f" Computing took {seconds:,.0f} s, without the report."
    return (
        f"<p>{escape(about['attribution'])}.</p>"
        f"<p>{len(plan.shifts)} shifts × {plan.seeds} seeds, base seed {plan.seed}; data set s of shift k is drawn "
        f"from seed {SEED_ROOM} k + s{first}. NDC-SEM: γ = {plan.discount:g}, ξ = {plan.exploration:g}, λ chosen "
        f"online, graphs learned in {len(RULES)} ways; SEM-UCB likewise; delay {plan.delay} days, 5 regions per day. "
        f"On [0, 1], data are divided by {about['unit']:,.1f} cases, the largest smoothed count.{took} "
        f"{escape(versions)}.</p>"
    )
