"""The plan of the Covid-19 study: shifts, seeds, policies, scales, and the paper's grids."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.graph import (
    HELD_OUT_EVERY,
    HELD_OUT_PHASE,
    ROW_BOUND,
    GraphLearner,
    PaperTunedGraph,
    SelfTunedGraph,
)
from spillover.policies.ndcsem import NDCSEM, SEMUCB
from spillover.policies.reference import DelayedOracle, Uniform
from spillover.types import IntArray

# The paper's grids (Appendix, hyperparameter tuning)
DISCOUNTS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
EXPLORATIONS = (
    1e-8, 3e-8, 7e-8, 1e-7, 3e-7, 7e-7, 1e-6, 3e-6, 7e-6, 1e-5, 3e-5, 7e-5,
    1e-4, 3e-4, 7e-4, 1e-3, 3e-3, 7e-3, 1e-2, 7e-2, 1e-1, 7e-1,
)  # fmt: skip
UNIT = 1.0  # the paper's bonus and sparsity do not scale with the data, which are cases or shares of the largest count
LITERAL, SEMI = "literal", "semi-synthetic"
# how graphs are learned: as in the paper, and with one condition changed
PAPER_RULE, BOUNDED_RULE, SQUARED_RULE = "paper", "bounded", "squared"
RULES: dict[str, GraphLearner] = {
    PAPER_RULE: PaperTunedGraph(row_bound=None),
    BOUNDED_RULE: PaperTunedGraph(row_bound=ROW_BOUND),
    SQUARED_RULE: SelfTunedGraph(row_bound=None),
}
RULE_LABELS = {
    PAPER_RULE: "as in the paper: λ with the lowest mean absolute error, no bound",
    BOUNDED_RULE: f"effects on a region sum to at most {ROW_BOUND:g}",
    SQUARED_RULE: "largest λ within 1% of the lowest squared error",
}
SEED_ROOM = 1000  # data sets of a shift: more seeds do not change the first ones
OTHER_SEED, SPARSITY_SEED = 500, 501  # for tuning, never reported
PICTURE_SEED = 2023  # draws the shift of the single run in figures


class Variant(NamedTuple):
    """A policy on one of the two scales."""

    name: str
    label: str
    unit: bool  # whether data are divided by the largest smoothed count, to be on [0, 1]


VARIANTS = (
    Variant("ndc-sem", "NDC-SEM", False),
    Variant("sem-ucb", "SEM-UCB", False),
    Variant("ndc-sem-unit", "NDC-SEM on [0, 1]", True),
    Variant("sem-ucb-unit", "SEM-UCB on [0, 1]", True),
)
REFERENCES = (
    Variant("delayed-oracle", "delayed oracle", False),
    Variant("random", "random", False),
)
NO_GRAPH = Variant("ndc-sem-no-graph", "NDC-SEM without a graph", False)
LABELS = {variant.name: variant.label for variant in (*VARIANTS, *REFERENCES, NO_GRAPH)}


class Run(NamedTuple):
    """A policy played through all data sets."""

    variant: Variant
    mode: str
    rule: str = PAPER_RULE  # how the policy learns its graph
    star: str = PAPER_RULE  # how the true graph A* is learned, which matters in the semi-synthetic mode

    @property
    def name(self) -> str:
        return run_name(self.mode, self.variant.name, self.rule, self.star)


def run_name(mode: str, policy: str, rule: str, star: str) -> str:
    """The name of the results of a run."""
    return f"{mode}-{policy}-{rule}-{star}"


def planned_runs() -> Iterator[Run]:
    """Every policy in both modes with graphs by all rules; A* alone by the squared error; and the references."""
    for rule in RULES:
        for mode in (LITERAL, SEMI):
            yield from (Run(variant, mode, rule, rule) for variant in VARIANTS)
        yield from (Run(variant, SEMI, rule, rule) for variant in REFERENCES)
    yield from (Run(variant, SEMI, PAPER_RULE, SQUARED_RULE) for variant in VARIANTS)
    yield from (Run(NO_GRAPH, mode) for mode in (LITERAL, SEMI))


@dataclass(frozen=True, kw_only=True)
class CovidPlan:
    """The settings of the study; the defaults are the paper's, over all shifts with 10 seeds each.

    Every (shift, seed) is its own data set, drawn from seed 1000 k + s: with the same draws at each shift, the shifts
    would not be independent, and an interval clustered by shift would be too narrow.

    >>> CovidPlan(shifts=(3, 4), seeds=2).data_seeds().tolist()
    [[3000, 3001], [4000, 4001]]
    """

    shifts: tuple[int, ...] = tuple(range(1, 21))
    seeds: int = 10
    seed: int = 0
    discount: float = 0.85
    exploration: float = 0.1
    delay: int = 3
    discounts: tuple[float, ...] = DISCOUNTS
    explorations: tuple[float, ...] = EXPLORATIONS

    def __post_init__(self) -> None:
        validate.whole("seeds", self.seeds, 1, OTHER_SEED)
        validate.whole("seed", self.seed, 0, 10**9)
        good = len(self.shifts) > 0 and len(set(self.shifts)) == len(self.shifts)
        validate.require(good, "shifts", self.shifts, "at least one, each once")
        for shift in self.shifts:
            validate.whole("shift", shift, 1, 20)

    def data_seeds(self, which: Iterable[int] | None = None) -> IntArray:
        """Seeds of the data sets, (shifts, seeds): the reported ones, or others by their number."""
        seeds = np.arange(self.seeds) if which is None else np.array(list(which))
        room = 100 * SEED_ROOM  # for the shifts of one base seed
        return np.asarray(np.add.outer(self.seed * room + SEED_ROOM * np.array(self.shifts), seeds), np.int64)

    def policy(self, name: str, rule: str = PAPER_RULE) -> Any:
        """The policy of a variant, with the paper's parameters and its graph learned by a rule."""
        own: dict[str, Any] = {"discount": self.discount, "exploration": self.exploration, "unit": UNIT}
        makers: dict[str, Callable[[], Any]] = {
            "ndc-sem": lambda: NDCSEM(graph=RULES[rule], **own),
            "ndc-sem-no-graph": lambda: NDCSEM(graph="none", **own),
            "sem-ucb": lambda: SEMUCB(graph=RULES[rule], unit=UNIT),
            "delayed-oracle": DelayedOracle,
            "random": Uniform,
        }
        return makers[name.removesuffix("-unit")]()

    @property
    def picture(self) -> int:
        """Position of the shift that figures show: drawn from PICTURE_SEED, not picked."""
        return int(np.random.default_rng(PICTURE_SEED).integers(len(self.shifts)))


def validation_days(horizon: int = 80) -> IntArray:
    """The days held out when the graph is fitted: one in ten.

    >>> validation_days()
    array([ 5, 15, 25, 35, 45, 55, 65, 75])
    """
    days = np.arange(1, horizon + 1)
    return np.asarray(days[days % HELD_OUT_EVERY == HELD_OUT_PHASE], np.int64)
