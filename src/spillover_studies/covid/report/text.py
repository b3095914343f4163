"""The terms of the page, the limitations of the study and the sources of its data, with the study's numbers."""

from html import escape

import numpy as np

from spillover.graph import ROW_BOUND
from spillover_studies.covid import CovidResults, clustered_interval
from spillover_studies.covid.plan import (
    BOUNDED_RULE,
    PAPER_RULE,
    PICTURE_SEED,
    RULE_LABELS,
    RULES,
    SEED_ROOM,
    SQUARED_RULE,
)
from spillover_studies.covid.record import REGIONS
from spillover_studies.covid.report.measures import (
    NAIVE,
    SEEDS,
    YESTERDAY,
    bounded_rows,
    excess,
    format_ci,
    format_number,
    largest_weight,
    later_errors,
    overlaps,
    prediction_errors,
    recovery,
)


def sample_size(study: CovidResults) -> str:
    return f"{len(study.plan.shifts)} shifts × {study.plan.seeds} seeds"


def shown_run(study: CovidResults) -> str:
    """Name the run that figures of a single run show."""
    k = study.plan.shifts[study.plan.picture]
    return f"shift k = {k} (drawn from seed {PICTURE_SEED}), data set 0 of it"


def reading(study: CovidResults) -> str:
    """The terms of the page."""
    plan, k = study.plan, study.plan.shifts[study.plan.picture]
    first, moved = (study.about["names"][i % len(study.regions)] for i in (0, k))
    unit = f"{study.about['unit']:,.0f}"
    points = (
        (
            "Choice.",
            f"On each of the {len(study.days)} days a policy chooses 5 of the {len(study.regions)} regions, and learns "
            f"the outcome {plan.delay} days later. On the first {len(study.regions)} days, the initialisation, it "
            "tries all regions.",
        ),
        (
            "Parameters.",
            f"NDC-SEM has the parameters that the paper prints (γ = {plan.discount:g}, ξ = {plan.exploration:g}, its "
            "Table I), everywhere but in the grid search. SEM-UCB has none but λ.",
        ),
        (
            "Region-specific and overall cases.",
            "z of a region are the new cases that started there, known for chosen regions only; y are all its new "
            "cases, those that came from other regions included: y = A y + z. A is the graph, A[i, j] the effect of "
            "region j on region i.",
        ),
        (
            "Shift.",
            f"On day {study.about['change']} the study moves the data of all regions k places along the alphabetical "
            f"list: names stay, data move. With k = {k}, “{first}” has the cases of {moved} from that day on. The "
            f"paper draws one k from 1 to {len(study.regions) - 1}; here {len(plan.shifts)} are used, with "
            f"{plan.seeds} data sets each. These are the runs: {sample_size(study)}.",
        ),
        (
            "Reward.",
            "The reward of a day is the estimated number of new cases in the whole country that go back to the "
            "region-specific cases of the chosen regions. More reward means that the chosen regions matter more for "
            "the spread, which is what the policies look for. It does not mean that fewer people fall ill.",
        ),
        (
            "Common graph: the ruler of rewards.",
            "The reward depends on the graph that it is computed with. The paper uses the final graph of each policy, "
            "so that a policy with larger effects in its graph gets more reward for the same choices. The common graph "
            "measures both policies alike: it is fitted to all regions on all days, chosen or not. A second one is "
            "fitted before the shift and moved along with the data.",
        ),
        (
            "In cases, on [0, 1].",
            "Neither policy's bonus for trying regions scales with the data. The paper's record is in cases, its "
            f"theory is for rewards on [0, 1], and it does not say whether it scaled the data. Both are shown; on "
            f"[0, 1] data are divided by {unit}, the largest count "
            "of a region, and results are shown in cases again.",
        ),
        (
            "Replayed, semi-synthetic.",
            "Replayed, as in the paper (the files say “literal”): the recorded cases follow whatever is chosen. "
            "Semi-synthetic: cases follow from the choices through A*, the graph of all regions before the shift. Only "
            "there is the best choice known, and regret: the reward that is missed by not choosing it.",
        ),
        (
            "How graphs are learned.",
            "The graph has a penalty λ on its effects, chosen again every day by the error on validation days (one in "
            f"ten) that have arrived. It is learned {RULE_LABELS[PAPER_RULE]}. Two alternatives, named "
            f"where they are used, change one thing each: {RULE_LABELS[BOUNDED_RULE]}; {RULE_LABELS[SQUARED_RULE]}.",
        ),
        (
            "Intervals.",
            "They are 95% intervals in which each shift counts once, with the mean of its data sets.",
        ),
    )
    return "<ul>" + "".join(f"<li><b>{escape(head)}</b> {escape(body)}</li>" for head, body in points) + "</ul>"


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
    """Explain why the data hardly identify the graph: shares in this study, simulated outbreaks with a known graph."""
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
