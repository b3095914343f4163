"""The texts of the page with the study's numbers: its terms, its limitations and the sources of its data."""

from html import escape

from spillover.graph import ROW_BOUND
from spillover_studies.covid import CovidResults
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, PICTURE_SEED, RULE_LABELS, RULES, SEED_ROOM
from spillover_studies.covid.record import REGIONS
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    FROM_ALL,
    FROM_SPECIFIC,
    NAIVE,
    SEEDS,
    YESTERDAY,
    Measured,
    bounded_rows,
    excess,
    format_number,
    largest_weight,
    later_errors,
    overlaps,
    prediction_errors,
    recovery,
)
from spillover_studies.texts import Texts

NAMED = ("LOM", "PIE")  # regions of the north, with the largest first wave


def words(study: CovidResults) -> Texts:
    """The texts of the page, and what all of them may use."""
    plan, about = study.plan, study.about
    return Texts(
        __package__,
        plan=plan,
        change=about["change"],
        unit=about["unit"],
        days=len(study.days),
        regions=len(study.regions),
        data=len(plan.shifts) * plan.seeds,
        bound=f"{ROW_BOUND:g}",
        sample=f"{len(plan.shifts)} shifts × {plan.seeds} seeds",
        run=f"shift k = {plan.shifts[plan.picture]} (drawn from seed {PICTURE_SEED}), data set 0 of it",
    )


def reading(study: CovidResults) -> str:
    """The terms of the page."""
    plan, names = study.plan, study.about["names"]
    k = plan.shifts[plan.picture]
    given = {"k": k, "first": names[0], "moved": names[k % len(names)], "most": len(names) - 1}
    return words(study).points("reading", **given, shifts=len(plan.shifts), rules=RULE_LABELS)


def caveats(study: CovidResults) -> str:
    """The limitations, for decision makers: shares in this study, and simulated outbreaks with a known graph."""
    errors = {k: Measured(v) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    found = {label: Measured(values) for label, values in overlaps(study).items()}
    common, chosen = (found[f"{what} and region-specific cases"] for what in ("contribution", "NDC-SEM's choices"))
    naive, graph = errors[NAIVE], errors[f"{FROM_ALL}, {AT_DECISION}"]
    better = naive.interval.mean < graph.interval.mean
    above, test = excess(study), recovery()
    points = words(study).points(
        "caveats",
        common=common,
        chosen=chosen,
        above=float(above.mean()),
        examples=", ".join(f"{REGIONS[r]} {above[study.regions.index(r)]:.0%}" for r in NAMED),
        outbreaks=len(SEEDS),
        test=test,
        most=largest_weights(study),
        at_bound=bounded_rows(study),
        inflated=test.masked_rows / test.true_rows,
        naive_head="Naive predictors are better." if better else "Naive predictors are the benchmark.",
        naive=naive,
        yesterday=errors[YESTERDAY],
        graph=graph,
        alone=errors[f"{FROM_SPECIFIC}, {AT_DECISION}"],
    )
    return words(study)("can_tell") + points


def largest_weights(study: CovidResults) -> dict[str, str]:
    """For how many cases one can count in the graphs of both policies, without and with a bound."""
    return {
        rule: " and ".join(format_number(largest_weight(study, name, rule).max()) for name in ("ndc-sem", "sem-ucb"))
        for rule in (PAPER_RULE, BOUNDED_RULE)
    }


def provenance(study: CovidResults) -> str:
    """Attribution, settings, seeds, versions."""
    about, plan, texts = study.about, study.plan, words(study)
    room = 100 * SEED_ROOM
    seconds = about.get("seconds")
    return texts(
        "provenance",
        attribution=escape(about["attribution"]),
        shifts=len(plan.shifts),
        room=SEED_ROOM,
        first=f" + {room} × {plan.seed}, for the base seed" if plan.seed else f" (+ {room} × the base seed, here 0)",
        ways=len(RULES),
        took="" if seconds is None else texts("took", seconds=seconds),
        versions=escape(", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items()))),
    )
