"""What to take away from the study beyond the paper: three sentences from its results, and the main numbers."""

import pandas as pd

from spillover.experiments import Record, Results
from spillover.report.claims import HOLDS, format_ci, verdict_counts
from spillover.report.short import short_body
from spillover.report.tables import paired_ratio
from spillover_studies.beyond.claims import beyond_claims, least_regret
from spillover_studies.beyond.families import MAIN, OURS, PAPERS, REFERENCE, VARIED, Family, families_run

PRINTED, TUNED, *_ = PAPERS


def in_short(results: Results) -> str:
    """Three sentences, then regrets as multiples of the delayed oracle's."""
    caption = (
        "Final expected regret as a multiple of the delayed oracle's (which knows the graph, and the means of the "
        "latest round whose outcome has arrived), with 95% intervals"
    )
    return short_body((best_policy(results), parameters(results), claims(results)), numbers(results), caption)


def best_policy(results: Results) -> str:
    """In how many settings our policy is the best one beyond doubt."""
    findings = [found for _, records in families_run(results, MAIN + VARIED) if (found := least_regret(records))]
    if not findings:
        return "Switching-SEM was not run beside other policies."
    clear = sum(found.verdict == HOLDS for found in findings)
    return (
        f"Switching-SEM, without tuning, has less regret than every other policy in {clear} of {len(findings)} "
        "settings (95% intervals of paired differences)."
    )


def parameters(results: Results) -> str:
    """What parameters do for NDC-SEM, in the paper's setting."""
    shares, multiples_of_ours = [], []
    for family, records in families_run(results, MAIN[:3]):
        if {PRINTED, TUNED, OURS} <= records.keys():
            share = paired_ratio(records[TUNED], records[PRINTED])
            shares.append(f"{format_ci(share, 2)} at D = {family.delay}")
            multiples_of_ours.append(f"{float(paired_ratio(records[TUNED], records[OURS]).mean):.1f}")
    if not shares:
        return "NDC-SEM was not run with two sets of parameters."
    return (
        "Tuning NDC-SEM for each delay on other worlds multiplies the regret that it has with the paper's printed "
        f"parameters by {', '.join(shares)}; that leaves {', '.join(multiples_of_ours)} times the regret of "
        "Switching-SEM."
    )


def claims(results: Results) -> str:
    found = beyond_claims(results)
    return (
        f"Of what we claim about these policies, {verdict_counts([claim.verdict for claim in found])}."
        if found
        else "No claim can be decided."
    )


def numbers(results: Results) -> pd.DataFrame:
    """One row for each setting of the paper's, one column for each policy."""
    chosen = (OURS, TUNED, PRINTED, "sem-ucb")
    rows = [multiples(family, records, chosen) for family, records in families_run(results, MAIN + VARIED)]
    return pd.DataFrame([row for row in rows if len(row) > 1][:3]).fillna("–")


def multiples(family: Family, records: dict[str, Record], chosen: tuple[str, ...]) -> dict[str, str]:
    row = {"setting": family.title}
    if REFERENCE in records:
        own = (records[name] for name in chosen if name in records)
        row |= {r.label: format_ci(paired_ratio(r, records[REFERENCE]), 2) for r in own}
    return row
