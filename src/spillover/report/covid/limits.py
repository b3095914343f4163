"""What the study can and cannot tell, and where its data come from: words, with the study's numbers in them."""

from html import escape

from spillover.experiments.covid import CovidStudy, clustered_interval
from spillover.report.claims import shown
from spillover.report.covid.measures import NAIVE, YESTERDAY, later_errors, overlaps, prediction_errors


def limits(study: CovidStudy) -> str:
    """A plain section for those who decide."""
    errors = {k: clustered_interval(v) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    common = clustered_interval(overlaps(study)["contribution and region-specific cases"])
    better = errors[NAIVE].mean < errors["A y + z, graph at decision time"].mean
    naive_head = "Naive predictors predict better." if better else "Naive predictors are the yardstick."
    points = (
        (
            "Region-specific cases are resampled, not measured.",
            "Nobody recorded which cases of a region came from within it. The study draws them from the spring of "
            "2020, when travel between regions was banned, and takes it that they were the same in autumn. That "
            f"alone decides most of the choices: {shown(common, 1)} of the five regions with the largest "
            "contribution are the five with most cases in that spring.",
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


def provenance(study: CovidStudy) -> str:
    """Attribution, settings, seeds, versions."""
    about, plan = study.about, study.plan
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))
    return (
        f"<p>{escape(about['attribution'])}.</p>"
        f"<p>{len(plan.shifts)} shifts × {plan.seeds} seeds, base seed {plan.seed}; data set s of shift k is drawn "
        f"from number 1000 k + s. NDC-SEM: γ = {plan.discount:g}, ξ = {plan.exploration:g}, λ chosen online; SEM-UCB "
        f"likewise; delay {plan.delay} days, 5 regions a day. On [0, 1] data are divided by {about['unit']:,.1f} "
        f"cases, the largest smoothed count. {escape(versions)}.</p>"
    )
