"""The settings of the study, and regrets in them as multiples of the delayed oracle's.

Ratios are ratios of mean regrets over the same worlds, rewards and delays, with intervals by the delta method
(`spillover.report.tables.paired_ratio`). So settings with larger payoffs can be compared.
"""

from typing import NamedTuple

import pandas as pd

from spillover.experiments import Record, Results
from spillover.figures import Ratio
from spillover.metrics import Interval
from spillover.report.claims import format_ci
from spillover.report.tables import paired_ratio
from spillover_studies.texts import Texts

OURS, REFERENCE = "switching-sem", "delayed-oracle"
PAPERS = ("ndc-sem", "ndc-sem-tuned", "sem-ucb", "sem-ucb-tuned")  # as printed or published, and tuned for each delay
TEXTS = Texts(__package__)
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
VARIED = tuple(Family(*each) for each in TEXTS.entry("varied"))


def records_of(results: Results, family: Family) -> dict[str, Record]:
    """The records of a family, by policy; those of `spillover_studies.beyond.settings` alone are left out."""
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


PRINTED, TUNED, *_ = PAPERS


class Setting(NamedTuple):
    """A value of the aspect that is varied: its name, and the world and delay of the experiment that have it."""

    name: str
    world: str
    delay: str


class Sweep(NamedTuple):
    """One question: the settings in their order, and the policies that are compared in them."""

    name: str
    title: str
    question: str
    settings: tuple[Setting, ...]
    policies: tuple[str, ...]


FOR_ANOTHER = tuple(f"ndc-sem-for-{delay}" for delay in ("50", "200", "400"))
COMPARED_IN = {  # the policies of sweeps that compare others than ours and the paper's
    "mistuned": (OURS, *FOR_ANOTHER),
    "misdated": (OURS, "switching-sem-misdated", TUNED, "ndc-sem-misdated"),
}
SWEEPS = {
    name: Sweep(
        name,
        about["title"],
        TEXTS(f"sweeps.{name}.question"),
        tuple(Setting(*each) for each in about["settings"]),
        COMPARED_IN.get(name, (OURS, *PAPERS)),
    )
    for name, about in TEXTS.entry("sweeps").items()
}


class Multiple(NamedTuple):
    """A policy in a setting: its record, that of the delayed oracle, and the ratio of their regrets."""

    setting: Setting
    record: Record
    reference: Record
    ratio: Interval


def multiples(results: Results, sweep: Sweep) -> list[Multiple]:
    """Collect what was run of a sweep, setting by setting."""
    found = []
    for setting in sweep.settings:
        records = {r.policy: r for r in results.records(world=setting.world, delay=setting.delay)}
        if REFERENCE in records:
            oracle = records[REFERENCE]
            own = [records[policy] for policy in sweep.policies if policy in records]
            found += [Multiple(setting, record, oracle, paired_ratio(record, oracle)) for record in own]
    return found


def sweep_ratios(found: list[Multiple]) -> list[Ratio]:
    """The points of a figure."""
    return [
        Ratio(one.setting.name, one.record.policy, one.record.label, *(float(v) for v in one.ratio)) for one in found
    ]


def by_policy(found: list[Multiple], policy: str) -> dict[str, Multiple]:
    """The multiples of one policy, by the name of the setting."""
    return {one.setting.name: one for one in found if one.record.policy == policy}


def worlds_of(found: list[Multiple]) -> str:
    """The number of worlds; more where some settings have more."""
    counts = [len(one.record.replications) for one in found]
    if min(counts) == max(counts):
        return f"{counts[0]} fresh worlds"
    more = dict.fromkeys(one.setting.name for one in found if len(one.record.replications) == max(counts))
    return f"{min(counts)} fresh worlds ({max(counts)} with {' and '.join(more)})"
