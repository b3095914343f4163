"""Numbers of the study for the documents, as Markdown."""

from collections.abc import Callable
from textwrap import fill

from spillover.experiments import Record, Results
from spillover.experiments import open_results as load
from spillover.metrics import mean_interval
from spillover.report.claims import format_ci
from spillover.report.tables import markdown_table, paired_ratio
from spillover_studies.beyond.conclusions import conclusion
from spillover_studies.beyond.families import (
    COMPARED,
    MAIN,
    OURS,
    PAPERS,
    REFERENCE,
    VARIED,
    Family,
    families_run,
    family_table,
)
from spillover_studies.beyond.sweeps import SWEEPS, multiples


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
    points = (f"- **{sweep.title}.** {conclusion(sweep, multiples(results, sweep))}" for sweep in SWEEPS)
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
