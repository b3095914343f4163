"""What the study can and cannot tell, and where its data come from: words, with the study's numbers in them."""

from html import escape

import numpy as np

from spillover.graph import ROW_BOUND
from spillover.studies.covid import CovidResults, clustered_interval
from spillover.studies.covid.plan import SEED_ROOM
from spillover.studies.covid.report.checks import SEEDS, bounded_rows, excess, recovery
from spillover.studies.covid.report.measures import NAIVE, YESTERDAY, later_errors, overlaps, prediction_errors, shown

NAMED = ("LOM", "PIE")  # regions of the north, with the largest first wave


def caveats(study: CovidResults) -> str:
    """A plain section for those who decide."""
    errors = {k: clustered_interval(v) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    found = {label: clustered_interval(values) for label, values in overlaps(study).items()}
    common, chosen = (found[f"{what} and region-specific cases"] for what in ("contribution", "NDC-SEM's choices"))
    better = errors[NAIVE].mean < errors["A y + z, graph at decision time"].mean
    naive_head = "Naive predictors predict better." if better else "Naive predictors are the yardstick."
    points = (
        (
            "Region-specific cases are resampled, not measured.",
            "Nobody recorded which cases of a region came from within it. The study draws them from the spring of "
            "2020, when travel between regions was banned, and takes it that they were the same in the study's "
            "months, August to October. That alone decides most of the ranking: of the five regions with the largest "
            f"contribution {shown(common, 1)} are among the five with most cases in that spring, and of the five that "
            f"NDC-SEM chooses most often before the change {shown(chosen, 1)}.",
        ),
        (
            "Recorded cases do not react to choices.",
            "The record is replayed. Whatever a policy chooses, the same cases follow; so it cannot show that an "
            "intervention in the chosen regions would help. The semi-synthetic mode, where choices have effects, is "
            "a model, not evidence.",
        ),
        (
            "The change is artificial.",
            "On day 40 the regions' data are exchanged cyclically. No such thing happened. That a policy finds its way "
            "after it says something about the policy, and nothing about the epidemic.",
        ),
        (
            "The graph partly reflects that change.",
            "Exchanging regions exchanges the edges too. One graph fitted across day 40 mixes two, and is right for "
            "neither.",
        ),
        *graph_points(study),
        (
            "Going together is not causing.",
            "All regions rose together in October. An edge says that the cases of two regions, smoothed over 7 days, "
            "moved alike; a third cause (schools, weather, testing) does the same. Edges are not routes of infection.",
        ),
        (
            naive_head,
            "The last value known at decision time is "
            f"{shown(errors[NAIVE], 1)} cases a region off, yesterday's value {shown(errors[YESTERDAY], 1)}, the "
            f"learned graph {shown(errors['A y + z, graph at decision time'], 1)} although it is told the same day's "
            f"cases of all other regions, and {shown(errors['(I − A)⁻¹ z, graph at decision time'], 1)} when it is "
            "not.",
        ),
    )
    listed = "".join(f"<li><b>{escape(head)}</b> {escape(body)}</li>" for head, body in points)
    simulated = "<p>The points are those of the study on the record; the numbers are of a simulated outbreak.</p>"
    return (
        f"{simulated if study.simulated else ''}"
        "<p>It can tell how a policy that learns from late feedback behaves when the best regions change, on data "
        "with the sizes and rhythms of a real epidemic. It cannot tell where to intervene:</p>"
        f"<ul>{listed}</ul>"
    )


def graph_points(study: CovidResults) -> tuple[tuple[str, str], ...]:
    """Why the data hardly determine the graph: shares in this study, and simulated outbreaks with a known graph."""
    above, test = excess(study), recovery()
    named = ", ".join(f"{r} {above[study.regions.index(r)]:.0%}" for r in NAMED)
    simulated = f"On {len(SEEDS)} simulated outbreaks with a known graph"
    low, high = test.resampled
    return (
        (
            "The model does not fit the sampled cases.",
            "With A ≥ 0 overall cases are at least the region-specific ones. In "
            f"{float(np.mean(above)):.0%} of all region-days the sampled region-specific cases exceed the recorded "
            f"ones ({named}): no graph can produce those days.",
        ),
        (
            "Resampled cases do not identify the graph.",
            "They are drawn without regard to the day, so they carry no information on what y was on that day, "
            f"masked or not. {simulated} the largest error of an entry is {low:.2f} to {high:.2f} with resampled cases "
            f"of all regions, and {test.measured:.0e} with the true ones.",
        ),
        (
            "Many rows sit on the bound.",
            f"{bounded_rows(study):.0%} of the rows of A*, fitted to all regions and days, sum to the bound "
            f"{ROW_BOUND:g} that keeps the spill-over finite: there the bound decides, not the data.",
        ),
        (
            "Masking inflates the graph.",
            "y is the record's whatever is chosen, while z is 0 for regions that were not chosen: all their cases look "
            f"like spill-over. {simulated} and five regions chosen at random a day, the rows of the learned graph sum "
            f"to {test.masked_rows:.2f} on average, those of the true one to {test.true_rows:.2f}: "
            f"{test.masked_rows / test.true_rows:.1f} times as much, even with the true region-specific cases.",
        ),
    )


def provenance(study: CovidResults) -> str:
    """Attribution, settings, seeds, versions."""
    about, plan = study.about, study.plan
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    room = 100 * SEED_ROOM
    first = f" + {room} × {plan.seed}, for the base seed" if plan.seed else f" (+ {room} × the base seed, here 0)"
    seconds = about.get("seconds")
    took = "" if seconds is None else f" Computing took {seconds:,.0f} s in all, without the report."
    return (
        f"<p>{escape(about['attribution'])}.</p>"
        f"<p>{len(plan.shifts)} shifts × {plan.seeds} seeds, base seed {plan.seed}; data set s of shift k is drawn "
        f"from number {SEED_ROOM} k + s{first}. NDC-SEM: γ = {plan.discount:g}, ξ = {plan.exploration:g}, λ chosen "
        f"online; SEM-UCB likewise; delay {plan.delay} days, 5 regions a day. On [0, 1] data are divided by "
        f"{about['unit']:,.1f} cases, the largest smoothed count.{took} {escape(versions)}.</p>"
    )
