"""The paper's claims in Section V-B and its appendix, our findings, and whether the claims hold."""

from collections.abc import Iterator

import numpy as np

from spillover.metrics import Interval
from spillover.report.claims import FAILS, HOLDS, OPEN, Claim, sign_verdict
from spillover.studies.covid import LITERAL, SEMI, CovidResults, clustered_interval
from spillover.studies.covid.report.measures import (
    CHOOSING,
    COMPARISON_LABELS,
    COMPARISONS,
    FROM_ALL,
    FROM_SPECIFIC,
    NAIVE,
    YESTERDAY,
    best_share,
    format_ci,
    gain,
    later_errors,
    overlaps,
    paper_cell,
    prediction_errors,
    semi_share,
    shifts_won,
)
from spillover.studies.covid.scores import SCORES

ONLY_AFTER = ("MAR", "ABR", "VDA")  # the regions that the paper names


def estimation(study: CovidResults) -> Iterator[Claim]:
    """The predictions, compared with forecasts that need no graph."""
    errors = later_errors(prediction_errors(study), len(study.days))
    means = {label: clustered_interval(values) for label, values in errors.items()}
    sources = {
        FROM_ALL: "from the same day's cases of the other regions",
        FROM_SPECIFIC: "from the chosen regions' own",
    }
    for predictor, source in sources.items():
        ahead = f"{predictor}, graph at decision time"
        difference = clustered_interval(errors[NAIVE] - errors[ahead])
        yield Claim(
            "V-B, fig. Error",
            f"NDC-SEM efficiently estimates the regions' overall daily cases: {predictor}, {source}",
            f"mean error out of sample, days 25 to 75: {format_ci(means[ahead], 1)} cases per region; with the final "
            f"graph {format_ci(means[f'{predictor}, final graph'], 1)}. That of the last value known at decision time "
            f"is {format_ci(means[NAIVE], 1)}, that of yesterday's {format_ci(means[YESTERDAY], 1)}; the naive error "
            f"minus the graph's is {format_ci(difference, 1)}",
            sign_verdict(difference),
        )


def adaptation(study: CovidResults) -> Iterator[Claim]:
    """Choices after the change."""
    for comparison in ("cases", "unit"):
        ours, theirs = COMPARISONS[comparison]
        difference = clustered_interval(best_share(study, ours) - best_share(study, theirs))
        truth = clustered_interval(semi_share(study, ours) - semi_share(study, theirs))
        yield Claim(
            "V-B, fig. SuperArmSelection",
            f"NDC-SEM selects regions adaptively, SEM-UCB does not ({COMPARISON_LABELS[comparison]})",
            "share of the five regions with the highest expected region-specific cases among the choices of days 44 "
            f"to 80: {best_share(study, ours).mean():.0%} against {best_share(study, theirs).mean():.0%}, difference "
            f"{format_ci(difference, 2)}; of the truly best five in the semi-synthetic mode {format_ci(truth, 2)}",
            sign_verdict(difference, truth),
        )
    yield only_after(study)


def only_after(study: CovidResults) -> Claim:
    """Regions that are chosen after the change but not before it."""
    x, change = study.played(LITERAL, "ndc-sem").x, study.about["change"]
    before = x[..., CHOOSING - 1 : change - 1, :].any(axis=-2)
    new = np.asarray(x[..., change - 1 :, :].any(axis=-2) & ~before)
    shares = ", ".join(f"{r} {new[..., study.regions.index(r)].mean():.0%}" for r in ONLY_AFTER)
    shifts_with = int((new.sum(axis=-1).mean(axis=1) >= 1).sum())
    return Claim(
        "V-B, fig. SuperArmSelection",
        "some regions are selected only after the change, for example Marche, Abruzzo and Valle d'Aosta",
        f"{format_ci(clustered_interval(new.sum(axis=-1)), 1)} regions are chosen after day 40 but not on days 25 to "
        f"39, at least one in {shifts_with} of {len(new)} shifts; the three of the paper in these shares of runs: "
        f"{shares}. Which regions they are depends on the shift",
        HOLDS if shifts_with == len(new) else OPEN,
    )


def rewards(study: CovidResults) -> Iterator[Claim]:
    """Estimated cumulative overall reward after the change, by every scoring rule and on both scales."""
    for comparison, label in COMPARISON_LABELS.items():
        for score in ("own", "common", "recorded"):
            values = gain(study, comparison, score)
            interval = clustered_interval(values)
            yield Claim(
                "V-B and appendix, fig. EstCollectedOverallRew",
                f"after day 40 NDC-SEM collects a higher overall reward than SEM-UCB ({label}; scored by: "
                f"{SCORES[score]})",
                f"{format_ci(interval)} cases more on days 40 to 80; above 0 in {shifts_won(values)}",
                sign_verdict(interval),
            )


def regret(study: CovidResults) -> Iterator[Claim]:
    for comparison, (ours, theirs) in COMPARISONS.items():
        final = {name: study.played(SEMI, name).regret[..., -1] for name in (ours, theirs, "delayed-oracle")}
        difference = clustered_interval(final[theirs] - final[ours])
        yield Claim(
            "V-B, in the semi-synthetic mode",
            f"NDC-SEM is better than SEM-UCB where choices have effects ({COMPARISON_LABELS[comparison]})",
            f"final regret {format_ci(clustered_interval(final[ours]))} against "
            f"{format_ci(clustered_interval(final[theirs]))}, difference {format_ci(difference)}; delayed oracle "
            f"{format_ci(clustered_interval(final['delayed-oracle']))}",
            sign_verdict(difference),
        )


def contribution(study: CovidResults) -> Iterator[Claim]:
    found = {label: clustered_interval(values) for label, values in overlaps(study).items()}
    recorded = found["contribution and recorded cases"]
    choices = found["NDC-SEM's choices and recorded cases"]
    common = "; ".join(f"{label}: {format_ci(interval, 1)}" for label, interval in found.items())
    yield Claim(
        "V-B",
        "the regions that contribute most are not necessarily those with most cases",
        f"regions in common among the top five by each, before the change: {common}. The difference is due both to "
        "where region-specific cases were high in the lockdown window and to the graph",
        below_verdict(5.0, recorded, choices),
    )


def below_verdict(limit: float, *intervals: Interval) -> str:
    """Holds if all intervals are below a limit; a value without an interval counts by itself."""
    highs = [float(i.mean) if np.isnan(i.high) else float(i.high) for i in intervals]
    return HOLDS if all(high < limit for high in highs) else OPEN


def tuning(study: CovidResults) -> Iterator[Claim]:
    for scale, label in (("cases", "cases"), ("unit", "[0, 1]")):
        found = {seeds: paper_cell(study, scale, seeds, "own") for seeds in ("reported", "others")}
        in_grid = {name: cell for name, cell in found.items() if cell is not None}
        if not in_grid:
            return
        cells = len(study.plan.discounts) * len(study.plan.explorations)
        names = {"reported": ("first reported", "other"), "others": ("other", "first reported")}
        ranks = "; ".join(
            f"on the {names[seeds][0]} seed of each shift: rank {rank} of {cells}, and the cell that is best on the "
            f"{names[seeds][1]} seed is {format_ci(above)} cases better"
            for seeds, (rank, above) in in_grid.items()
        )
        clear = all(float(above.low) > 0 for _, above in in_grid.values())
        yield Claim(
            "Appendix, hyperparameter tuning",
            f"γ = {study.plan.discount:g} and ξ = {study.plan.exploration:g} result from the grid search ({label})",
            f"scored by each cell's own final graph, as in the paper; {ranks}",
            FAILS if clear else HOLDS if all(rank == 1 for rank, _ in in_grid.values()) else OPEN,
        )


def covid_claims(study: CovidResults) -> list[Claim]:
    """Every claim of Section V-B and its appendix."""
    parts = (estimation, adaptation, rewards, regret, contribution, tuning)
    return [claim for part in parts for claim in part(study)]
