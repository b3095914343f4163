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
    delay: str = "50"


class Sweep(NamedTuple):
    """One question: the settings in their order, and the policies that are compared in them."""

    name: str
    title: str
    question: str
    settings: tuple[Setting, ...]
    policies: tuple[str, ...] = (OURS, *PAPERS)


CONSTANT = tuple(Setting(f"D = {delay}", "all", delay) for delay in ("50", "200", "400"))
FOR_ANOTHER = tuple(f"ndc-sem-for-{delay}" for delay in ("50", "200", "400"))
MISTUNED = Sweep(
    "mistuned",
    "Misspecified delay: parameters tuned for another one",
    "NDC-SEM has no parameter for the delay, but its discount and exploration are tuned for one. Here the parameters "
    "that were tuned for a delay of 50, 200 and 400 rounds are used at each of these delays.",
    CONSTANT,
    (OURS, *FOR_ANOTHER),
)
MISDATED = Sweep(
    "misdated",
    "Misspecified delay: outcomes without a date",
    "NDC-SEM and Switching-SEM count an outcome from the round of its action, so they need its age. Here versions of "
    "both take every outcome to be 50 rounds old, whatever the true delay is.",
    (*CONSTANT, Setting("geometric delays of mean 50", "all", "geometric 50")),
    (OURS, "switching-sem-misdated", TUNED, "ndc-sem-misdated"),
)
DENSITY = Sweep(
    "density",
    "Edge density",
    "The graph has from no edge to all 45 edges of an acyclic graph of ten arms; the paper's has 8 (a density of "
    "0.09).",
    tuple(
        Setting(f"{edges} edges", world)
        for edges, world in (
            *((0, "edges-0"), (4, "edges-4"), (8, "all")),
            *((16, "edges-16"), (32, "edges-32"), (45, "edges-45")),
        )
    ),
)
CHANGED = Sweep(
    "changed",
    "How many arms change",
    "At each of the three changes the means of some of the ten arms are redrawn; in the paper those of all arms are.",
    (
        *(Setting("no arm", "none"), Setting("1 arm", "one"), Setting("3 arms", "three")),
        *(Setting("6 arms", "six"), Setting("all 10 arms", "all")),
    ),
)
UNITS = Sweep(
    "units",
    "The scale of y",
    "All rewards z and y are multiplied by the same number, as if they were measured in other units. The worlds and "
    "draws are the same. Exploration ξ and sparsity λ of NDC-SEM are not rescaled, nor is the bonus of SEM-UCB.",
    tuple(
        Setting(f"times {unit}", world)
        for unit, world in (
            *(("0.01", "unit-0.01"), ("0.1", "unit-0.1"), ("1", "all")),
            *(("10", "unit-10"), ("100", "unit-100")),
        )
    ),
)
ARM_DELAYS = Sweep(
    "arm-delays",
    "Delays that depend on the arm",
    "Each arm reports with its own delay, 50 rounds in the mean of the ten arms. The graph is learned from whole "
    "rounds, so these policies learn a round once its last arm has reported; the delayed oracle knows each arm as of "
    "its own latest report.",
    (
        Setting("50 for every arm", "all"),
        Setting("5 to 95, rising with the arm's number", "all", "rising"),
        Setting("5 to 95, falling", "all", "falling"),
        Setting("one arm 500, the others 0", "all", "straggler"),
    ),
)
SWEEPS = (MISTUNED, MISDATED, DENSITY, CHANGED, UNITS, ARM_DELAYS)


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
