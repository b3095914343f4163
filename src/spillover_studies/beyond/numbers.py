"""The main numbers and sentences of the study: for its page, and as Markdown for the documents."""

from collections.abc import Callable
from textwrap import fill

import pandas as pd

from spillover.experiments import Record, Results
from spillover.experiments import open_results as load
from spillover.metrics import mean_interval
from spillover.report.claims import HOLDS, format_ci, verdict_counts
from spillover.report.page import short_body
from spillover.report.tables import markdown_table, paired_ratio
from spillover_studies.beyond.claims import beyond_claims, conclusion, least_regret
from spillover_studies.beyond.settings import (
    COMPARED,
    MAIN,
    OURS,
    PAPERS,
    PRINTED,
    REFERENCE,
    SWEEPS,
    TEXTS,
    TUNED,
    VARIED,
    Family,
    families_run,
    family_table,
    multiples,
)


def in_short(results: Results) -> str:
    """Three sentences, then regrets as multiples of the delayed oracle's."""
    sentences = (best_policy(results), parameters(results), claims(results))
    return short_body(sentences, numbers(results), TEXTS("short.caption"))


def best_policy(results: Results) -> str:
    """Count the settings in which our policy is the best one beyond doubt."""
    findings = [found for _, records in families_run(results, MAIN + VARIED) if (found := least_regret(records))]
    if not findings:
        return TEXTS("short.no_best")
    clear = sum(found.verdict == HOLDS for found in findings)
    return TEXTS("short.best", clear=clear, settings=len(findings))


def parameters(results: Results) -> str:
    """Say what parameters do for NDC-SEM, in the paper's setting."""
    shares, multiples_of_ours = [], []
    for family, records in families_run(results, MAIN[:3]):
        if {PRINTED, TUNED, OURS} <= records.keys():
            share = paired_ratio(records[TUNED], records[PRINTED])
            shares.append(f"{format_ci(share, 2)} at D = {family.delay}")
            multiples_of_ours.append(f"{float(paired_ratio(records[TUNED], records[OURS]).mean):.1f}")
    if not shares:
        return TEXTS("short.no_parameters")
    return TEXTS("short.parameters", shares=", ".join(shares), multiples=", ".join(multiples_of_ours))


def claims(results: Results) -> str:
    found = beyond_claims(results)
    if not found:
        return TEXTS("short.no_claims")
    return TEXTS("short.claims", counts=verdict_counts([claim.verdict for claim in found]))


def numbers(results: Results) -> pd.DataFrame:
    """One row for each setting of the paper's, one column for each policy."""
    chosen = (OURS, TUNED, PRINTED, "sem-ucb")
    rows = [multiples_row(family, records, chosen) for family, records in families_run(results, MAIN + VARIED)]
    return pd.DataFrame([row for row in rows if len(row) > 1][:3]).fillna("–")


def multiples_row(family: Family, records: dict[str, Record], chosen: tuple[str, ...]) -> dict[str, str]:
    row = {"setting": family.title}
    if REFERENCE in records:
        own = (records[name] for name in chosen if name in records)
        row |= {r.label: format_ci(paired_ratio(r, records[REFERENCE]), 2) for r in own}
    return row


def setting(results: Results) -> str:
    """Every policy in the paper's setting: final regret, and the interval of its ratio to the delayed oracle's."""
    worlds = dict.fromkeys(family.world for family in MAIN)
    return "\n\n".join(table_of(results, tuple(f for f in MAIN if f.world == world)) for world in worlds)


def table_of(results: Results, families: tuple[Family, ...]) -> str:
    """One column for each delay."""
    found = families_run(results, families)
    header = [found[0][0].title.partition(", ")[0], *(f"D = {family.delay}" for family, _ in found)]
    rows = [[found[0][1][name].label, *(regret_of(records, name) for _, records in found)] for name in COMPARED]
    return markdown_table(header, rows)


def regret_of(records: dict[str, Record], name: str) -> str:
    regret = f"{records[name].regret[:, -1].mean():,.0f}"
    if name == REFERENCE:
        return regret
    ratio = paired_ratio(records[name], records[REFERENCE])
    return f"{regret} [{float(ratio.low):.2f}, {float(ratio.high):.2f}]"


def blind(results: Results) -> str:
    """The regret of the rounds before any outcome."""
    parts = []
    for family, records in families_run(results, MAIN[:3]):
        ours, reference = (format_ci(mean_interval(records[name].blind_regret)) for name in (OURS, REFERENCE))
        parts.append([family.title, ours, reference])
    return markdown_table(["blind rounds", "Switching-SEM", "delayed oracle"], parts)


def varied(results: Results) -> str:
    """Our policy against the best of the paper's, where one aspect is another one."""
    table = family_table(results, VARIED)
    return markdown_table(list(table.columns), table.to_numpy().tolist())


def conclusions(results: Results) -> str:
    """The sentence that each sweep ends with."""
    points = (f"- **{sweep.title}.** {conclusion(sweep, multiples(results, sweep))}" for sweep in SWEEPS.values())
    return "\n".join(fill(point, 120, subsequent_indent="  ", break_on_hyphens=False) for point in points)


def readme(results: Results) -> str:
    """The main numbers of the paper's setting: our policy, and NDC-SEM with both sets of parameters."""
    found, shown = families_run(results, MAIN[:3]), (OURS, *PAPERS[1::-1])
    rows = [
        [f"D = {family.delay}", *(format_ci(paired_ratio(records[name], records[REFERENCE]), 2) for name in shown)]
        for family, records in found
    ]
    count = len(found[0][1][OURS].replications)
    labels = [found[0][1][name].label for name in shown]
    return markdown_table([f"regret over the delayed oracle's, {count} fresh worlds", *labels], rows)


NUMBERS: dict[str, Callable[[Results], str]] = {
    "setting": setting,
    "blind": blind,
    "varied": varied,
    "conclusions": conclusions,
    "readme": readme,
}
__all__ = ["NUMBERS", "load"]
