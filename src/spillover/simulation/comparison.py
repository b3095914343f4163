"""Compare policies on identical draws: replication k has the same world, rewards and delays for each of them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy, Environment, as_policy
from spillover.contracts.hyperparameters import hyperparameters, spread_grid
from spillover.formatting import Shown, clipped, view_of
from spillover.metrics import Interval, RegretCurve, mean_interval
from spillover.policies import find_policy
from spillover.registry import needed_for
from spillover.simulation import Run, simulate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


LEVEL = 0.95
BETTER, WORSE, SAME, OPEN = "better", "worse", "the same", "cannot be told apart"


class Compared(NamedTuple):
    """One policy of a comparison."""

    policy: str
    final_regret: Interval  # mean and 95% interval
    optimality_ratio: Interval
    difference: Interval  # of the final regret, minus that of the reference; all differences hold together, with 95%
    verdict: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PairedComparison(Shown):
    """The runs of several policies on the same draws: `print` it, or see `to_frame` and `plot`.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=50, changes=())
    >>> found = sp.compare([sp.NDCSEM(), sp.Uniform()], world, 5, replications=4)
    >>> found.ranked, found.reference
    (['NDCSEM', 'Uniform'], 'NDCSEM')
    """

    view = "spillover.views:ComparisonView"

    runs: Mapping[str, Run]  # by the name of the policy, in the order given
    baseline: str | None = None  # what the others are compared with; None: the best of them

    @cached_property
    def ranked(self) -> list[str]:
        """The names, the lowest mean final regret first."""
        return sorted(self.runs, key=lambda name: float(self.runs[name].final_regret.mean()))

    @cached_property
    def reference(self) -> str:
        """What the others are compared with: the baseline, or the best policy that is told nothing of the world."""
        if self.baseline is not None:
            return self.baseline
        fair = [name for name in self.ranked if not self.told(name)]
        return (fair or self.ranked)[0]

    def told(self, name: str) -> str:
        """What a policy is told that others must learn: "the world", "the graph", "the structure", or nothing.

        >>> import spillover as sp
        >>> world = sp.SyntheticSEM(horizon=20, changes=())
        >>> found = sp.compare(["oracle", "cts-known-graph", "cts"], world, 5, replications=2)
        >>> [found.told(name) for name in ("Oracle", "CTS(knows_graph=True)", "CTS(knows_graph=False)")]
        ['the world', 'the graph', '']
        """
        of = as_policy(self.runs[name].policy).traits
        levels = ((of.needs_world, "world"), (of.knows_graph, "graph"), (of.knows_structure, "structure"))
        return next((f"the {level}" for known, level in levels if known), "")

    @property
    def pairs(self) -> int:
        """How many differences could be looked at: the best policy is known only after a look at all pairs."""
        count = len(self.runs)
        return count - 1 if self.baseline is not None else count * (count - 1) // 2

    def difference(self, name: str, other: str) -> Interval:
        """The mean of final regret of `name` minus that of `other`, replication by replication.

        The interval is so wide that those of all `pairs` together cover the true differences with 95% (Bonferroni).
        """
        for given in (name, other):
            accepted = f"one of {', '.join(self.runs)}"
            validate.require(given in self.runs, "policy", given, accepted)
        values = self.runs[name].final_regret - self.runs[other].final_regret
        return mean_interval(values, level=1 - (1 - LEVEL) / max(self.pairs, 1))

    @cached_property
    def rows(self) -> list[Compared]:
        """One row for each policy, the best first."""
        return [self.row(name) for name in self.ranked]

    def row(self, name: str) -> Compared:
        run, difference = self.runs[name], self.difference(name, self.reference)
        ratio = mean_interval(run.optimality_ratio.mean(axis=-1))
        if name == self.reference:
            verdict = "best" if self.baseline is None else "baseline"
        else:
            told = self.told(name)
            own = "" if told == "the world" else verdict_of(difference)
            verdict = ", ".join(part for part in (own, told and f"knows {told}") if part)
        return Compared(name, run.interval("final_regret"), ratio, difference, verdict)

    def regret_curves(self) -> list[RegretCurve]:
        """The regret over time of every policy, for `spillover.report.regret_figure`."""
        curves = ((name, run.regret_curves()[0]) for name, run in self.runs.items())
        return [curve._replace(policy=name, label=name) for name, curve in curves]

    def to_frame(self) -> "pd.DataFrame":
        """One row for each policy, the best first; intervals in columns that end in _low and _high.

        >>> import spillover as sp
        >>> world = sp.SyntheticSEM(horizon=100, changes=())
        >>> compare([sp.NDCSEM(), sp.Uniform()], world, 5, replications=3).to_frame()["verdict"].to_dict()
        {'NDCSEM': 'best', 'Uniform': 'worse'}
        """
        with needed_for("a data frame", "research"):
            import pandas as pd

        lines = []
        for row in self.rows:
            line: dict[str, Any] = {"policy": row.policy, "replications": len(self.runs[row.policy].final_regret)}
            for name in ("final_regret", "optimality_ratio", "difference"):
                mean, low, high = (float(value) for value in getattr(row, name))
                line |= {name: mean, f"{name}_low": low, f"{name}_high": high}
            lines.append(line | {"verdict": row.verdict})
        return pd.DataFrame(lines).set_index("policy")

    def plot(self, *, title: str = "") -> "Figure":
        """Regret over time with 95% bands; below it, the paired differences to the reference.

        >>> import spillover as sp
        >>> world = sp.SyntheticSEM(horizon=100, changes=())
        >>> both = compare([sp.NDCSEM(), sp.Uniform()], world, 5, replications=3)
        >>> [ax.get_xlabel() for ax in both.plot().axes]
        ['round', 'final regret minus that of NDCSEM (below 0: less regret)']
        """
        drawn: Figure = view_of(self.view, self).plot(title=title)
        return drawn


def verdict_of(difference: Interval) -> str:
    """What the interval of a difference in regret says.

    >>> verdict_of(Interval(-3.0, -4.0, -2.0))  # mean, low, high
    'better'
    """
    if difference.low == difference.high == 0:
        return SAME
    if difference.high < 0:
        return BETTER
    return WORSE if difference.low > 0 else OPEN


def compare(
    policies: Sequence[str | AnyPolicy] | Mapping[str, str | AnyPolicy],
    environment: Environment,
    delay: Any = 0,
    *,
    baseline: str | None = None,
    replications: int = 20,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = False,
) -> PairedComparison:
    """Play several policies in the same worlds with the same rewards and delays, and compare their final regret.

    policies: policies or their names, such as "switching-sem"; a mapping gives them names of its own. Without it a
    policy is named after its class, and by the hyperparameters that differ where a class occurs more than once.
    baseline: the name of the policy that the others are compared with; by default the one with the least regret
    (policies that are told of the world, such as `Oracle`, are left out). threads, progress: as for `simulate`.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=200, changes=())
    >>> sp.compare([sp.NDCSEM(discount=0.99), sp.NDCSEM(discount=0.5), "random"], world, 5, replications=4)
    3 policies on the same draws, 4 replications x 200 rounds, delay 5
    policy                 verdict          final regret  optimality ratio           difference
    NDCSEM(discount=0.99)  best      57.1 [−13.8, 128.0]             82.6%
    NDCSEM(discount=0.5)   worse    171.8 [129.7, 214.0]             62.0%  114.8 [27.7, 201.9]
    Uniform                worse    402.8 [220.2, 585.4]             40.4%  345.7 [91.7, 599.8]
    """
    players = named_policies(policies)
    accepted = f"one of the policies: {', '.join(players)}"
    validate.require(baseline is None or baseline in players, "baseline", baseline, accepted)
    given: dict[str, Any] = {"replications": replications, "seed": seed, "threads": threads, "progress": progress}
    runs = {name: simulate(policy, environment, delay, **given) for name, policy in players.items()}
    return PairedComparison(runs=runs, baseline=baseline)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparisons:
    """Comparisons in several worlds at several delays: `to_frame` has a row for each policy in each of them.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=50, changes=())
    >>> found = sp.compare_across(["random", "cucb"], {"still": world}, [0, 5], replications=4)
    >>> len(found.to_frame()), found["still", 5].reference
    (4, 'CUCB')
    """

    found: Mapping[tuple[str, str], PairedComparison]  # by the names of the world and the delay

    def __getitem__(self, setting: tuple[str, Any]) -> PairedComparison:
        """The comparison in a world, by its name, at a delay, by its name or the number of rounds."""
        world, delay = setting
        accepted = f"one of {', '.join(map(repr, self.found))}"
        validate.require((world, str(delay)) in self.found, "setting", setting, accepted)
        return self.found[world, str(delay)]

    def __repr__(self) -> str:
        """The winner of each setting, and how many policies cannot be told apart from it."""
        lines = []
        for (world, delay), one in self.found.items():
            ties = sum(row.verdict in (OPEN, SAME) for row in one.rows)
            tied = f", {ties} cannot be told apart from it" if ties else ""
            lines.append(f"{world}, delay {delay}: {one.reference} has the least regret{tied}")
        return "\n".join(lines)

    def to_frame(self) -> "pd.DataFrame":
        """As `PairedComparison.to_frame`, with the columns world and delay in front.

        >>> import spillover as sp
        >>> worlds = {"short": sp.SyntheticSEM(horizon=50, changes=())}
        >>> sp.compare_across(["sem-ucb", "random"], worlds, [0, 5], replications=3).to_frame()["world"].tolist()
        ['short', 'short', 'short', 'short']
        """
        with needed_for("a data frame", "research"):
            import pandas as pd

        parts = []
        for (world, delay), one in self.found.items():
            frame = one.to_frame().reset_index()
            frame.insert(0, "world", world)
            frame.insert(1, "delay", delay)
            parts.append(frame)
        return pd.concat(parts, ignore_index=True)


def compare_across(
    policies: Sequence[str | AnyPolicy] | Mapping[str, str | AnyPolicy],
    environments: Mapping[str, Environment],
    delays: Sequence[Any] | Mapping[str, Any] = (0,),
    **given: Any,
) -> Comparisons:
    """`compare` in several worlds, by name, at several delays: numbers of rounds, or delays by name.

    given: `baseline`, `replications`, `seed`, `threads` and `progress`, as for `compare`. The worlds of a name are the
    same at every delay.

    >>> import spillover as sp
    >>> worlds = {"few edges": sp.SyntheticSEM(horizon=100, changes=(), edge_density=0.02)}
    >>> found = sp.compare_across(["sem-ucb", "random"], worlds, [0, 20], replications=4)
    >>> found["few edges", 20].reference
    'SEMUCB'
    """
    named: Any = environments  # whatever was given
    validate.require(isinstance(named, Mapping) and len(named) > 0, "environments", environments, NAMED)
    whole = isinstance(delays, Mapping) or all(isinstance(each, int | np.integer) for each in delays)
    validate.require(len(delays) > 0 and whole, "delays", delays, "numbers of rounds, or delays by name")
    late = dict(delays) if isinstance(delays, Mapping) else {str(each): each for each in delays}
    return Comparisons(
        found={
            (world, name): compare(policies, environment, delay, **given)
            for world, environment in environments.items()
            for name, delay in late.items()
        }
    )


NAMED = "at least one world by its name, such as {'paper': SyntheticSEM()}"


def named_policies(policies: Any) -> dict[str, Any]:
    """The policies by their names; at least two, and none with a grid."""
    named = isinstance(policies, Mapping)
    listed = list(policies.values()) if named else [] if isinstance(policies, str) else list(policies)
    validate.require(len(listed) > 1, "policies", policies, "a list or a mapping of at least two policies")
    made = [find_policy(each)() if isinstance(each, str) else each for each in listed]
    for policy in made:
        _, grid = spread_grid(as_policy(policy))
        accepted = "policies with single values; `spillover.experiments.tune.tune` searches a grid"
        validate.require(grid == (), f"shape of the grid of {type(policy).__name__}", grid, accepted)
    names = [str(name) for name in policies] if named else names_apart(made)
    return dict(zip(names, made, strict=True))


LONGEST_VALUE = 30  # characters of a hyperparameter in a name


def names_apart(policies: Sequence[Any]) -> list[str]:
    """A name for each policy; equal policies are refused.

    >>> import spillover as sp
    >>> names_apart([sp.NDCSEM(discount=0.9), sp.NDCSEM(), sp.Uniform()])
    ['NDCSEM(discount=0.9)', 'NDCSEM(discount=0.985)', 'Uniform']
    """
    names = [name_among(policy, [each for each in policies if type(each) is type(policy)]) for policy in policies]
    accepted = "policies that differ; a mapping gives them names of your own"
    validate.require(len(set(names)) == len(names), "policies", names, accepted)
    return names


def name_among(policy: Any, alike: Sequence[Any]) -> str:
    """The name of a policy: its class, and the hyperparameters in which policies of the same class differ."""
    own, others = settings(policy), [settings(other) for other in alike]
    return named_with(policy, {key: own[key] for key in own if any(other.get(key) != own[key] for other in others)})


def described(part: Any) -> str:
    """A policy, world or delay with the values that are not its defaults.

    >>> import spillover as sp
    >>> described(sp.SyntheticSEM(horizon=200, changes=())), described(sp.ConstantDelay(5)), described(sp.NDCSEM())
    ('SyntheticSEM(horizon=200, changes=())', 'ConstantDelay(rounds=5)', 'NDCSEM')
    """
    own, usual = settings(part), usual_settings(part)
    return named_with(part, {key: own[key] for key in own if own[key] != usual.get(key)})


def named_with(part: Any, values: dict[str, str]) -> str:
    """The class of a policy with some of its hyperparameters."""
    shown = ", ".join(f"{key}={clipped(value, LONGEST_VALUE)}" for key, value in values.items())
    return f"{type(part).__name__}({shown})" if shown else type(part).__name__


def settings(part: Any, before: str = "") -> dict[str, str]:
    """The hyperparameters of a policy in full, as text, those of its parts with a dot.

    >>> import spillover as sp
    >>> settings(sp.NDCSEM())["graph.sparsity"]
    '0.001'
    """
    found: dict[str, str] = {}
    for field in hyperparameters(type(part)):
        value, name = getattr(part, field.name), f"{before}{field.name}"
        inner = settings(value, f"{name}.") if is_dataclass(value) else {}
        with np.printoptions(threshold=sys.maxsize):
            found[name] = " ".join(str(value).split()) if not is_dataclass(value) else type(value).__name__
        found |= inner
    return found


def usual_settings(part: Any) -> dict[str, str]:
    """The settings of the same class with nothing but what it requires, which is always shown."""
    if not is_dataclass(part):
        return {}
    kind: Any = type(part)
    required = [f.name for f in fields(part) if f.init and f.default is MISSING and f.default_factory is MISSING]
    try:
        usual = settings(kind(**{name: getattr(part, name) for name in required}))
    except (TypeError, ValueError):  # a class whose defaults do not go with what it requires
        return {}
    return {name: value for name, value in usual.items() if name not in required}
