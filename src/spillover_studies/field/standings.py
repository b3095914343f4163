"""Who wins where, and whether a graph helps: from the records of the study."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from spillover.contracts import as_policy
from spillover.experiments import Record, Results
from spillover.metrics import Interval
from spillover.report.claims import format_ci, paired_interval
from spillover.report.tables import paired_ratio

REFERENCES = ("random", "delayed-oracle")  # what the others are measured by
OURS = ("switching-sem", "instrumental-sem")
# what a policy makes of the graph, and of the outcomes of other arms
GRAPH = (
    "switching-sem", "switching-sem-signed", "instrumental-sem", "ndc-sem", "sem-ucb", "ga-lcb", "csl-ucb",
    "piecewise-sem-ucb", "dal-sem-ucb",
)  # fmt: skip
PAYOFF = ("payoff-regression",)  # learns the payoff of each arm from decisions, without a graph
WORLDS = {
    "changes": "ours, all means change",
    "drift": "ours, means drift",
    "hierarchical": "hierarchical, d = 3, L = 3",
    "parallel": "parallel, N = 8",
    "sub-graphs": "sub-graphs change, N = 10",
    "reward-node": "one reward node, edges of both signs",
    "interference": "interference of 4 of 8 units, any table",
    "linear-interference": "interference, linear",
    "nonlinear": "nonlinear model",
}
# in which Switching-SEM's or Instrumental-SEM's assumptions hold: a linear graph of edges >= 0, means that jump
ASSUMED = {"changes": OURS, "hierarchical": OURS, "parallel": OURS}
CLOSE, FAR = 1.05, 1.3


class Setting(NamedTuple):
    """A world at a delay, with the records of all policies that were run there."""

    world: str
    delay: str
    records: dict[str, Record]

    @property
    def title(self) -> str:
        return f"{WORLDS[self.world]}, D = {self.delay}"


class Standing(NamedTuple):
    """Who wins in a setting."""

    setting: Setting
    best: Record  # least mean regret of the policies that are told nothing
    ties: list[Record]  # others of them that cannot be told apart from it
    told: Record | None  # the best of those that are told the structure


def settings_of(results: Results) -> list[Setting]:
    """The settings that were run, with random sets and at least two policies besides."""
    found = []
    for world in WORLDS:
        for delay in results.experiment.delays:
            records = {record.policy: record for record in results.records(world=world, delay=delay)}
            if "random" in records and len(records.keys() - set(REFERENCES)) > 1:
                found.append(Setting(world, delay, records))
    return found


def told_names(results: Results) -> set[str]:
    """The policies that are told the structure."""
    entries = results.experiment.policies.items()
    made = {name: as_policy(entry.policy(next(iter(entry.at), "0"))) for name, entry in entries}
    return {name for name, policy in made.items() if policy.traits.knows_structure}


def final(record: Record) -> float:
    return float(record.regret[:, -1].mean())


def best_of(setting: Setting, names: Iterable[str]) -> Record | None:
    """The least mean final regret among some policies."""
    return min((setting.records[name] for name in names if name in setting.records), key=final, default=None)


def standing(setting: Setting, told: Collection[str]) -> Standing | None:
    fair = [name for name in setting.records if name not in told and name not in REFERENCES]
    best = best_of(setting, fair)
    if best is None:
        return None
    others = (setting.records[name] for name in fair if name != best.policy)
    ties = [record for record in others if not float(paired_interval(record, best).low) > 0]
    return Standing(setting, best, ties, best_of(setting, [name for name in told if name != "delayed-oracle"]))


def standings(results: Results) -> list[Standing]:
    told = told_names(results)
    return [found for setting in settings_of(results) if (found := standing(setting, told)) is not None]


def share_of_random(setting: Setting, record: Record) -> Interval:
    return paired_ratio(record, setting.records["random"])


def ratio_text(ratio: Interval) -> str:
    return format_ci(ratio, 2)


class Goal(NamedTuple):
    """Our best policy in a setting against the best of the others that are told nothing."""

    setting: Setting
    ours: Record
    rival: Record
    ratio: Interval
    assumed: bool

    @property
    def met(self) -> bool:
        """Within 5% of the best where our assumptions hold, below 1.3 times the best elsewhere; by the mean ratio."""
        return float(self.ratio.mean) <= (CLOSE if self.assumed else FAR)


def goals(results: Results, name: str) -> list[Goal]:
    """One of our policies, where it was run, against the best of the others that are told no more."""
    told, found = told_names(results), []
    for setting in settings_of(results):
        rival = best_of(setting, setting.records.keys() - {*told, *REFERENCES, name, f"{name}-signed"})
        if name in setting.records and rival is not None:
            ours = setting.records[name]
            assumed = name in ASSUMED.get(setting.world, ())
            found.append(Goal(setting, ours, rival, paired_ratio(ours, rival), assumed))
    return found


Choice = Callable[[Setting], Record | None]
Ratios = list[tuple[Setting, Record, Record, Interval]]


def compared(results: Results, one: Choice, other: Choice) -> Ratios:
    """The ratio of one policy's regret to another's, in each setting that has both."""
    found = []
    for setting in settings_of(results):
        first, second = one(setting), other(setting)
        if first is not None and second is not None:
            found.append((setting, first, second, paired_ratio(first, second)))
    return found


def graph_against_payoff(results: Results) -> Ratios:
    """The best policy that learns a graph, against the regression of the payoff: above 1, the graph does not help."""
    return compared(results, lambda s: best_of(s, GRAPH), lambda s: best_of(s, PAYOFF))


def structure_against_none(results: Results) -> Ratios:
    """The best policy that is told the structure, against the best that is told nothing."""
    told = told_names(results)
    return compared(results, lambda s: best_of(s, told), lambda s: best_of(s, s.records.keys() - {*told, *REFERENCES}))


def less_with_delay(run: Iterable[Setting]) -> list[tuple[str, Record, Interval]]:
    """Where a policy has clearly more regret without delay than with one of 50 rounds: the world, and the ratio."""
    settings = {(setting.world, setting.delay): setting.records for setting in run}
    found = []
    for world in WORLDS:
        late = settings.get((world, "50"), {})
        for name, record in settings.get((world, "0"), {}).items():
            if name in late and name not in REFERENCES:
                ratio = paired_ratio(record, late[name])
                if float(ratio.low) > 1:
                    found.append((world, record, ratio))
    return found
