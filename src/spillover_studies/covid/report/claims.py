"""The paper's claims in Section V-B and its appendix: our findings, and whether the claims hold (`texts.toml`)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spillover.report.claims import FAILS, HOLDS, OPEN, UNCHECKABLE, Claim, Variant, sign_verdict
from spillover.types import Array
from spillover_studies.covid import LABELS, LITERAL, SEMI, CovidResults
from spillover_studies.covid.plan import PAPER_RULE
from spillover_studies.covid.play import ONE_RUN
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    COMPARISON_LABELS,
    COMPARISONS,
    FINAL,
    FROM_ALL,
    FROM_SPECIFIC,
    NAIVE,
    NO_GRAPH_AT_ALL,
    OTHER_RULES,
    SCALE_LABELS,
    YESTERDAY,
    Measured,
    all_single_ranks,
    best_share,
    daily_gains,
    detected,
    excess,
    format_ci,
    format_number,
    gain,
    graph_share,
    half_verdict,
    in_grid,
    in_most_runs,
    largest_weight,
    later_errors,
    level_verdict,
    mean_cases,
    one_run_best,
    only_after,
    overlaps,
    paper_cell,
    prediction_errors,
    semi_share,
    single_ranks,
    single_winners,
    total_gain,
)
from spillover_studies.covid.report.text import words
from spillover_studies.covid.scores import SCORES
from spillover_studies.texts import Texts

NAMED = {"MAR": "Marche", "ABR": "Abruzzo", "VDA": "Valle d'Aosta"}  # the regions that the paper names
ENOUGH = 4  # of the five optimal regions, to count as detected
BY_COMMON, BY_SPECIFIC = (f"scored by: {SCORES[score]}" for score in ("common", "specific"))
Measure = Callable[[CovidResults, str, str, str], Array]  # comparison, scored by, how graphs are learned


def signed(texts: Texts, key: str, values: Array, name: str = "values", **others: Any) -> Variant:
    """Make a row that holds if values are above 0, (shifts, seeds); `name`: theirs in the text."""
    found = Measured(values)
    return texts.variant(key, found.verdict, found.one, **{name: found}, **others)


def data_claims(study: CovidResults, texts: Texts) -> Iterator[Claim]:
    """Check what the section takes for granted about its data."""
    above = excess(study)
    share, worst = float(above.mean()), int(np.argmax(above))
    verdict = HOLDS if share == 0 else FAILS
    yield texts.claim("include", verdict, share=share, worst=study.regions[worst], largest=above[worst])
    expected, change = study.data["expected"], study.about["change"]
    spread = max(float(np.ptp(part, axis=-2).max()) for part in np.split(expected, [change - 1], axis=-2))
    overall = study.data["unshifted_overall"].mean(axis=(0, 1, 3))
    growth = overall[-10:].mean() / overall[:10].mean()
    yield texts.claim("constant", HOLDS if spread == 0 else FAILS, spread=spread, growth=growth)


# --- estimates -------------------------------------------------------------------------------------------------------


def estimation(study: CovidResults, texts: Texts) -> Iterator[Claim]:
    """Compare the predictions with forecasts that need no graph, and NDC-SEM with and without its graph."""
    errors = later_errors(prediction_errors(study), len(study.days))
    naive, alone, yesterday = (Measured(errors[label]) for label in (NAIVE, NO_GRAPH_AT_ALL, YESTERDAY))
    primary, level = errors[f"{FROM_ALL}, {FINAL}"], float(mean_cases(study).mean())
    bars = [
        signed(texts, key, other.values - primary, "below", other=other)
        for key, other in (("known", naive), ("alone", alone))
    ]
    yield texts.measured_claim(
        "estimation",
        bars,
        estimation_variants(study, texts, errors),
        error=Measured(primary),
        share=float(primary.mean()) / level,
        level=level,
        naive=naive,
        yesterday=yesterday,
        alone=alone,
    )
    yield helps(study, texts)


def estimation_variants(study: CovidResults, texts: Texts, errors: dict[str, Array]) -> Iterator[Variant]:
    """One predictor each against the last known value."""
    cases = [
        ("out of sample: the graph at decision time", errors, f"{FROM_ALL}, {AT_DECISION}"),
        ("without the same day's cases: (I − A)⁻¹ z", errors, f"{FROM_SPECIFIC}, {FINAL}"),
        ("out of sample and without the same day's cases", errors, f"{FROM_SPECIFIC}, {AT_DECISION}"),
    ]
    conditions = [("on [0, 1]", "ndc-sem-unit", PAPER_RULE)]
    for rule, label in OTHER_RULES.items():
        conditions += [(label, "ndc-sem", rule), (f"on [0, 1], {label}", "ndc-sem-unit", rule)]
    for label, name, rule in conditions:
        other = later_errors(prediction_errors(study, name, rule), len(study.days))
        cases.append((label, other, f"{FROM_ALL}, {FINAL}"))
    for label, found, predictor in cases:
        error = found[predictor]
        yield signed(texts, "error", found[NAIVE] - error, "below", words=label, error=Measured(error))


def helps(study: CovidResults, texts: Texts) -> Claim:
    """NDC-SEM with and without its graph."""
    names = ("ndc-sem", "ndc-sem-no-graph")
    ours, without = (study.rewards(LITERAL, name)["common"] for name in names)
    common = ours[..., -1] - without[..., -1]
    specific = np.subtract(*(study.played(LITERAL, name).z.sum(axis=(-2, -1)) for name in names))
    saved = np.subtract(*(study.played(SEMI, name).regret[..., -1] for name in names[::-1]))
    measures = [
        signed(texts, "measure", more, "more", score=SCORES[score])
        for score, more in (("common", common), ("specific", specific))
    ]
    return texts.measured_claim(
        "helps",
        measures,
        [signed(texts, "saved", saved, "saved")],
        common=Measured(common),
        without=format_number(without[..., -1].mean()),
        specific=Measured(specific),
    )


# --- choices ---------------------------------------------------------------------------------------------------------


def selection(study: CovidResults, texts: Texts) -> Iterator[Claim]:
    """The regions that are chosen only after the change, and how good the choices are then."""
    chosen = only_after(study, "ndc-sem")
    new, rival = (Measured(x.sum(axis=-1)) for x in (chosen, only_after(study, "sem-ucb")))
    every = float((new.values > 0).mean())
    yield texts.claim(
        "adaptive",
        HOLDS if every == 1 else FAILS if every < 0.5 else OPEN,
        one=new.one,
        new=new,
        rival=rival,
    )
    at = {region: chosen[..., study.regions.index(region)] for region in NAMED}
    shares = ", ".join(f"{NAMED[region]} {found.mean():.0%}" for region, found in at.items())
    all_three = Measured(np.all(list(at.values()), axis=0))
    yield texts.claim("named", UNCHECKABLE, one=UNCHECKABLE, all_three=all_three, shares=shares, mean=new.values.mean())
    yield advantage(study, texts)


def advantage(study: CovidResults, texts: Texts) -> Claim:
    """The choices of NDC-SEM and SEM-UCB after the change, by the best regions among them and by the paper's reward."""

    def shares(comparison: str, rule: str = PAPER_RULE) -> Array:
        ours, theirs = (best_share(study, name, rule=rule) for name in COMPARISONS[comparison])
        return np.asarray(ours - theirs)

    def true_shares(comparison: str) -> Array:
        ours, theirs = (semi_share(study, name) for name in COMPARISONS[comparison])
        return np.asarray(ours - theirs)

    found = shares("cases")
    measures = (
        signed(texts, "share", found, words="measure: share of the best regions (ours)"),
        signed(texts, "after", gain(study, "cases", "own")),
    )
    others = {
        COMPARISON_LABELS["unit"]: shares("unit"),
        COMPARISON_LABELS["bonus"]: shares("bonus"),
        **{label: shares("cases", rule) for rule, label in OTHER_RULES.items()},
        **{f"on [0, 1], {label}": shares("unit", rule) for rule, label in OTHER_RULES.items()},
        "semi-synthetic: the truly best five": true_shares("cases"),
        "semi-synthetic, on [0, 1]": true_shares("unit"),
    }
    ours, theirs = (best_share(study, name).mean() for name in COMPARISONS["cases"])
    return texts.measured_claim(
        "advantage",
        measures,
        [signed(texts, "share", values, words=label) for label, values in others.items()],
        ours=ours,
        theirs=theirs,
        shares=Measured(found),
    )


# --- rewards ---------------------------------------------------------------------------------------------------------


def rewards(study: CovidResults, texts: Texts) -> Iterator[Claim]:
    """Estimated cumulative overall reward, as the paper has it and by other graphs and on other scales."""
    most = [format_number(largest_weight(study, name).max()) for name in COMPARISONS["cases"]]
    total, late = (Measured(measure(study, "cases", "own")) for measure in (total_gain, gain))
    variants = tuple(gain_variants(study, texts, total_gain))
    yield texts.claim("total", total.verdict, variants, total.one, total=total, most=most)
    variants = (*gain_variants(study, texts, gain), *regret_variants(study, texts))
    yield texts.claim("late", late.verdict, variants, late.one, late=late, most=most)
    before, after, more, *verdicts = reason(study, "cases", "own", PAPER_RULE)
    yield texts.claim(
        "reason",
        verdicts[0],
        reason_variants(study, texts),
        verdicts[1],
        before=before,
        after=after,
        more=more,
    )


def reason(study: CovidResults, *conditions: str) -> tuple[Measured, Measured, Measured, str, str]:
    """The gain a day before and after the change, the difference, and both verdicts on it as the reason."""
    before, after = daily_gains(study, *conditions)
    more, late = Measured(after - before), Measured(after)
    single = in_most_runs((after > 0) & (after > before))
    return Measured(before), late, more, sign_verdict(late.interval, more.interval), single


def gain_variants(study: CovidResults, texts: Texts, measure: Measure) -> Iterator[Variant]:
    """The same difference by other graphs, on other scales and with graphs that are learned by other rules."""
    scores = ((f"scored by: {SCORES[score]}", score) for score in ("common", "moving", "specific", "recorded"))
    conditions = [(label, "cases", score, PAPER_RULE) for label, score in scores]
    for comparison in ("unit", "bonus"):
        label = COMPARISON_LABELS[comparison]
        conditions += [
            (label, comparison, "own", PAPER_RULE),
            (f"{label}, {BY_COMMON}", comparison, "common", PAPER_RULE),
        ]
    for rule, label in OTHER_RULES.items():
        conditions += [
            (label, "cases", "own", rule),
            (f"{label}, {BY_COMMON}", "cases", "common", rule),
            (f"{COMPARISON_LABELS['unit']}, {label}", "unit", "own", rule),
        ]
    for label, *given in conditions:
        yield signed(texts, "gain", measure(study, *given), words=label)


def regret_variants(study: CovidResults, texts: Texts) -> Iterator[Variant]:
    """Regret, where choices have effects."""
    for comparison, names in COMPARISONS.items():
        for rule, label in {PAPER_RULE: "", **OTHER_RULES}.items():
            ours, theirs = (study.played(SEMI, name, rule).regret[..., -1] for name in names)
            parts = ("semi-synthetic", COMPARISON_LABELS[comparison], label)
            yield signed(texts, "regret", theirs - ours, words=", ".join(filter(None, parts)))


def reason_variants(study: CovidResults, texts: Texts) -> Iterator[Variant]:
    conditions = [
        (BY_COMMON, "cases", "common", PAPER_RULE),
        (BY_SPECIFIC, "cases", "specific", PAPER_RULE),
        (COMPARISON_LABELS["unit"], "unit", "own", PAPER_RULE),
        *((label, "cases", "own", rule) for rule, label in OTHER_RULES.items()),
    ]
    for label, *given in conditions:
        before, after, _, *verdicts = reason(study, *given)
        yield texts.variant("reason", *verdicts, words=label, before=before, after=after)


# --- contributions ---------------------------------------------------------------------------------------------------


def contribution(study: CovidResults, texts: Texts) -> Iterator[Claim]:
    """Whether the regions that contribute most are those with most cases, and whether the graph is why."""
    found = {label: Measured(values) for label, values in overlaps(study).items()}
    differ = Measured(5 - found["contribution and recorded cases"].values)
    verdict = HOLDS if bool((differ.values > 0).any()) else FAILS
    yield texts.claim("sets", verdict, one=differ.one, found=found, differ=differ)
    pair = graph_share(study)
    graphs = (
        due_variant(texts, "measure: by A*, the graph of all regions before the shift (ours)", *pair),
        due_variant(
            texts,
            "measure: by NDC-SEM's final graph (the paper's), which mixes both periods",
            *graph_share(study, own=True),
        ),
    )
    others = (due_variant(texts, f"{label}, of A*", *graph_share(study, rule)) for rule, label in OTHER_RULES.items())
    yield texts.measured_claim(
        "causal",
        graphs,
        others,
        differ=Measured(pair[0]),
        due=Measured(pair[1]),
        found=found,
    )


def due_variant(texts: Texts, label: str, differ: Array, due: Array) -> Variant:
    """Judge whether most of the difference is due to the graph."""
    verdicts = half_verdict(due, differ), in_most_runs(2 * due > differ)
    return texts.variant("due", *verdicts, words=label, due=Measured(due), differ=Measured(differ))


def detection(study: CovidResults, texts: Texts) -> Iterator[Claim]:
    """Whether the optimal regions are found, where they are known."""
    others = ", ".join(
        f"{LABELS[name]} {Measured(detected(study, name)):1}" for name in ("sem-ucb", "ndc-sem-no-graph", "random")
    )
    conditions = [("on [0, 1]", "ndc-sem-unit", PAPER_RULE)]
    conditions += [(f"{label}, of A*, too", "ndc-sem", rule) for rule, label in OTHER_RULES.items()]
    verdicts, values = detected_verdicts(study, "ndc-sem")
    variants = []
    for label, *given in conditions:
        both, found = detected_verdicts(study, *given)
        variants.append(texts.variant("detected", *both, words=label, **found))
    yield texts.claim("detection", verdicts[0], variants, verdicts[1], **values, others=others, enough=ENOUGH)


def detected_verdicts(study: CovidResults, *given: str) -> tuple[tuple[str, str], dict[str, Any]]:
    """Both verdicts on what a policy detects, and the values of their texts."""
    found = Measured(detected(study, *given))
    verdicts = level_verdict(found.interval, ENOUGH), in_most_runs(found.values >= ENOUGH)
    return verdicts, {"found": found, "all_five": Measured(found.values == 5).runs}


# --- tuning ----------------------------------------------------------------------------------------------------------


def tuning(study: CovidResults, texts: Texts) -> Iterator[Claim]:
    """The grid search as the paper does it, on one run, and over many."""
    if in_grid(study):
        runs, winners = len(all_single_ranks(study, "cases")), single_winners(study, "cases")
        variants = tuple(tuning_variants(study, texts))
        yield texts.claim("grid", UNCHECKABLE, variants, UNCHECKABLE, runs=runs, winners=winners)


def tuning_variants(study: CovidResults, texts: Texts) -> Iterator[Variant]:
    """Whether the paper's cell is the best one on runs of ours."""
    cells = len(study.plan.discounts) * len(study.plan.explorations)
    for scale, label in SCALE_LABELS.items():
        shown, ranks = int(single_ranks(study, scale, ONE_RUN)[0]), all_single_ranks(study, scale)
        yield texts.variant(
            "single",
            one=in_most_runs(np.append(ranks, shown) == 1),
            scale=label,
            best=one_run_best(study, scale),
            shown=shown,
            cells=cells,
            count=len(ranks),
            wins=int((ranks == 1).sum()),
            low=ranks.min(),
            high=ranks.max(),
            median=np.median(ranks),
        )
    for scale, label in SCALE_LABELS.items():
        found = [paper_cell(study, scale, seeds, "own") for seeds in ("reported", "others")]
        clear = all(float(above.low) > 0 for _, above in found)
        best = all(rank == 1 for rank, _ in found)
        places, better = " and ".join(str(rank) for rank, _ in found), " and ".join(format_ci(up) for _, up in found)
        verdict = FAILS if clear else HOLDS if best else OPEN
        yield texts.variant("mean", verdict, scale=label, places=places, better=better)


def covid_claims(study: CovidResults) -> list[Claim]:
    """Every claim of Section V-B and its appendix, each once."""
    parts = (estimation, selection, rewards, contribution, detection, data_claims, tuning)
    texts = words(study)
    return [claim for part in parts for claim in part(study, texts)]
