"""The settings of the study beyond the paper, and regrets as multiples of the delayed oracle's.

Ratios are ratios of mean regrets over the same worlds, rewards and delays, with intervals by the delta method
(`spillover.report.tables.paired_ratio`).
"""

from typing import NamedTuple

import pandas as pd

from spillover.experiments import Record, Results
from spillover.figures import Ratio
from spillover.metrics import Interval
from spillover.report.claims import format_ci
from spillover.report.tables import paired_ratio

OURS, REFERENCE = "switching-sem", "delayed-oracle"
PAPERS = ("ndc-sem", "ndc-sem-tuned", "sem-ucb", "sem-ucb-tuned")  # as printed or published, and tuned for each delay
COMPARED = (OURS, *PAPERS, "ndc-sem-pending", "discounted-ts", REFERENCE)


class Family(NamedTuple):
    """A world at a delay, by their names in the experiment, and its title."""

    name: str
    world: str
    delay: str
    title: str


MAIN = tuple(
    Family(f"{world}-{delay}", world, delay, f"{title}, D = {delay}")
    for world, title in (("all", "all means change"), ("three", "three arms change"))
    for delay in ("50", "200", "400")
)
VARIED = (
    Family("one", "one", "50", "one arm changes"),
    Family("none", "none", "50", "nothing changes"),
    Family("smooth", "smooth", "50", "the means drift smoothly"),
    Family("geometric", "all", "geometric 50", "geometric delays of mean 50"),
    Family("beta", "beta", "50", "Beta rewards"),
    Family("large", "large", "50", "50 arms, 10 per round"),
    Family("lossy", "all", "lossy 50", "20% of the feedback lost"),
    Family("noise", "noise", "50", "noise 0.1 in the structural equations"),
    Family("frequent", "frequent", "50", "a change every 100 rounds"),
    Family("rare", "rare", "50", "one change in 20,000 rounds"),
    Family("pareto", "pareto", "50", "heavy-tailed rewards"),
    Family("stragglers", "all", "pareto 25", "heavy-tailed delays"),
    Family("bad-news", "all", "bad news late", "bad news comes late"),
    Family("conversions", "all", "conversions", "only conversions arrive"),
    Family("one-year", "one-year", "2", "52 rounds, 6 arms"),
    Family("three-years", "three-years", "8", "150 rounds, 20 arms"),
)


def records_of(results: Results, family: Family) -> dict[str, Record]:
    """The records of a family, by policy; those of `spillover_studies.beyond.sweeps` alone are left out."""
    found = results.records(world=family.world, delay=family.delay)
    return {record.policy: record for record in found if record.policy in COMPARED}


def families_run(results: Results, families: tuple[Family, ...]) -> list[tuple[Family, dict[str, Record]]]:
    """The families that were run, with their records."""
    found = [(family, records_of(results, family)) for family in families]
    return [(family, records) for family, records in found if records]


def oracle_ratios(results: Results, families: tuple[Family, ...]) -> list[Ratio]:
    """The regret of every policy as a multiple of the delayed oracle's."""
    found = []
    for family, records in families_run(results, families):
        if REFERENCE in records:
            reference = records[REFERENCE]
            for record in (r for name, r in records.items() if name != REFERENCE):
                mean, low, high = (float(v) for v in paired_ratio(record, reference))
                found.append(Ratio(family.title, record.policy, record.label, mean, low, high))
    return found


def best_of_the_papers(records: dict[str, Record]) -> Record | None:
    """NDC-SEM or SEM-UCB, tuned or not: the lowest mean final regret, chosen in hindsight, in its favour."""
    rivals = [records[name] for name in PAPERS if name in records]
    return min(rivals, key=lambda r: float(r.regret[:, -1].mean())) if rivals else None


def against_the_best(records: dict[str, Record]) -> tuple[Interval, Record] | None:
    """The ratio of our policy's regret to that of the best of the paper's, and that policy."""
    best = best_of_the_papers(records)
    if best is None or OURS not in records:
        return None
    return paired_ratio(records[OURS], best), best


def family_table(results: Results, families: tuple[Family, ...] = VARIED) -> pd.DataFrame:
    """Our final regret in every family, that of the best of the paper's policies, and their ratio."""
    rows = []
    for family, records in families_run(results, families):
        if (found := against_the_best(records)) is not None:
            ratio, best = found
            rows.append(
                {
                    "setting": family.title,
                    "worlds": len(best.replications),
                    records[OURS].label: f"{records[OURS].regret[:, -1].mean():,.0f}",
                    "best of the paper's": f"{best.regret[:, -1].mean():,.0f}",
                    "which": best.label,
                    "ratio": format_ci(ratio, 2),
                }
            )
    return pd.DataFrame(rows)
