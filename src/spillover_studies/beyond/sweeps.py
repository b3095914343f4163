"""Questions that the paper leaves open, one figure each: one aspect of its setting takes several values.

Regrets are multiples of the delayed oracle's in the same worlds, so settings with larger payoffs can be compared.
"""

from typing import NamedTuple

from spillover.experiments import Record, Results
from spillover.figures import Ratio
from spillover.metrics import Interval
from spillover.report.tables import paired_ratio
from spillover_studies.beyond.families import OURS, PAPERS, REFERENCE

TUNED = PAPERS[1]


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
    """What was run of a sweep, setting by setting."""
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
