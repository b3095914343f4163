"""Describe experiments and searches: worlds, delays and policies by name, and their combinations."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Delay, Environment, as_policy, suited
from spillover.contracts.hyperparameters import with_values
from spillover.experiments.compute import BlockTask, CellTask, describe, digest, source_digest
from spillover.experiments.forecast import Footprint, Part, Size, footprint, size_of
from spillover.policies import find_policy
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import problem_for
from spillover.types import Array

BATCH_SIZE = 500  # large enough to spread the overhead of a round, small enough for the processor's cache
TUNING_SEED = 1_000_003  # shipped experiments report small seeds


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A policy of an experiment: its kind (a name for `find_policy`) and parameters; `at`: changes at some delays.

    >>> from spillover.experiments import example_results
    >>> entry = example_results().experiment.policies["ndc-sem"]
    >>> entry.label, entry.policy("2").discount
    ('NDC-SEM', 0.985)
    """

    label: str
    kind: str
    parameters: dict[str, Any] = field(default_factory=dict)
    at: dict[str, dict[str, Any]] = field(default_factory=dict)

    def policy(self, delay: str | None = None) -> Any:
        """Make the policy with its parameters at a delay (the delay's name in the file).

        >>> Entry(label="CUCB", kind="discounted-cucb", at={"400": {"discount": 0.99}}).policy("400").discount
        0.99
        """
        return find_policy(self.kind)(**self.parameters | self.at.get(delay or "", {}))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All combinations of some worlds, delays and policies; `replications` overrides that of the world.

    >>> from spillover.experiments import example_results
    >>> example_results().experiment.studies[0].policies
    ('ndc-sem', 'random')
    """

    worlds: tuple[str, ...]
    delays: tuple[str, ...]
    policies: tuple[str, ...]
    replications: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A block of replications of one policy in one world at one delay: the unit of computing and storing.

    >>> from spillover.experiments import example_results
    >>> cell = example_results().experiment.cells()[0]
    >>> cell.policy, cell.delay, cell.count
    ('ndc-sem', '2', 2)
    """

    world: str
    delay: str
    policy: str
    first: int
    count: int
    task: CellTask = field(repr=False)
    parameters: dict[str, Any] = field(repr=False)  # the same for all cells of a world, a delay and a policy
    source: str = field(repr=False)  # the hash of the source code that the results can depend on

    @property
    def description(self) -> dict[str, Any]:
        """Describe all parameters that the results depend on, for JSON, also defaults, but not names in the file."""
        return self.parameters | {"first": self.first, "count": self.count}

    @cached_property
    def id(self) -> str:
        """Hash everything that the results can depend on: the description and the source code."""
        return digest({"cell": self.description, "source": self.source})

    def __str__(self) -> str:
        last = self.first + self.count - 1
        return f"{self.policy} in {self.world} at delay {self.delay}, replications {self.first} to {last}"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The content of an experiment file. `changes`: changes after reading, see `changed`.

    study: the name of the study in `spillover.studies` that the experiment belongs to; None for a user's own file.
    footprints: what a replication of each combination takes, see `size`.

    >>> from spillover.experiments import example_results
    >>> experiment = example_results().experiment
    >>> list(experiment.policies), experiment.changed(replications=5).replications
    (['ndc-sem', 'random'], 5)
    """

    name: str
    title: str
    seed: int = 0
    replications: int = 100
    block: int = 100  # replications a cell
    record: int = 50  # measure at multiples of this round, and at the end
    worlds: dict[str, Environment]
    delays: dict[str, Delay]
    policies: dict[str, Entry]
    studies: tuple[Comparison, ...]
    world_replications: dict[str, int] = field(default_factory=dict)
    text: str = field(default="", repr=False)
    changes: dict[str, Any] = field(default_factory=dict)
    study: str | None = None
    footprints: dict[tuple[str, str, str], Footprint] = field(default_factory=dict, repr=False, compare=False)

    def combinations(self) -> dict[tuple[str, str, str], int]:
        """List every (world, delay, policy) in the file's order, with the most replications of any study."""
        found: dict[tuple[str, str, str], int] = {}
        for study in self.studies:
            for world in study.worlds:
                wanted = study.replications or self.world_replications.get(world, self.replications)
                for key in ((world, delay, policy) for delay in study.delays for policy in study.policies):
                    found[key] = max(wanted, found.get(key, 0))
        return found

    @property
    def size(self) -> Size:
        """Estimate what it takes, before anything is computed."""
        return size_of(
            Part(-(-count // self.block), count, min(count, self.block), self.footprints[key])
            for key, count in self.combinations().items()
        )

    def cells(self) -> list[Cell]:
        """List all cells: blocks of replications, aligned at multiples of `block`."""
        return [cell for key, count in self.combinations().items() for cell in self.blocks(*key, count)]

    def blocks(self, world: str, delay: str, policy: str, replications: int) -> Iterator[Cell]:
        player = self.policies[policy].policy(delay)
        whole = CellTask(self.worlds[world], self.delays[delay], player, self.seed, self.record, 0, replications)
        parameters, source = dict(describe(whole)), source_digest(whole)
        for first in range(0, replications, self.block):
            count = min(self.block, replications - first)
            task = replace(whole, first=first, count=count)
            yield Cell(
                world=world, delay=delay, policy=policy, first=first, count=count,
                task=task, parameters=parameters, source=source,
            )  # fmt: skip

    def changed(
        self,
        *,
        seed: int | None = None,
        replications: int | None = None,
        block: int | None = None,
        record: int | None = None,
        worlds: Sequence[str] | None = None,
        delays: Sequence[str] | None = None,
        policies: Sequence[str] | None = None,
    ) -> "Experiment":
        """Change numbers (`replications`: for all worlds and studies), or take a part of the experiment.

        worlds, delays, policies: only those with these names. A store keeps the changes beside the file's text.
        """
        numbers = {"seed": seed, "replications": replications, "block": block, "record": record}
        given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
        for name, number in given.items():
            validate.whole(name, number, 0 if name == "seed" else 1)
        changed = replace(self, **given, changes=self.changes | given)
        if replications is not None:
            studies = tuple(replace(study, replications=None) for study in self.studies)
            changed = replace(changed, studies=studies, world_replications={})
        for name, kept in (("worlds", worlds), ("delays", delays), ("policies", policies)):
            changed = changed if kept is None else changed.only(name, tuple(kept))
        return changed

    def only(self, name: str, kept: tuple[str, ...]) -> "Experiment":
        """Keep the part of the studies whose worlds, delays or policies (`name`) are among those kept."""
        known = getattr(self, name)
        for one in kept:
            validate.require(one in known, name, one, f"one of {', '.join(known)}")
        validate.require(bool(kept), name, list(kept), "at least one name")
        names = [tuple(one for one in getattr(study, name) if one in kept) for study in self.studies]
        parts: list[dict[str, Any]] = [{name: each} for each in names]
        studies = tuple(replace(s, **part) for s, part in zip(self.studies, parts, strict=True) if part[name])
        validate.require(bool(studies), name, list(kept), "names that some study uses")
        left = list(dict.fromkeys(one for study in studies for one in getattr(study, name)))
        return replace(self, studies=studies, changes=self.changes | {name: left})


class Place(NamedTuple):
    """A combination in which the grid is searched: names in the tuning file."""

    world: str
    delay: str
    policy: str


class Block(NamedTuple):
    """Some cells of the grid and some replications, which one worker plays at once."""

    place: Place
    cells: range  # positions in Search.cells
    first: int
    replications: int

    def __str__(self) -> str:
        world, delay, policy = self.place
        return f"{policy} in {world} at delay {delay}, cells {self.cells.start} to {self.cells.stop - 1} of the grid"


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search over policies, worlds and delays, all with the same grid.

    grid: hyperparameter -> values, for hyperparameters in the policies' `grids`; the cells are all combinations.
    seed: of the tuning runs. reported: the seed of the final results; the two must differ, because a choice looks too
        good on the draws that it was made on.
    """

    name: str
    title: str = ""
    worlds: Mapping[str, Environment]
    delays: Mapping[str, Delay]
    policies: Mapping[str, Any]
    grid: Mapping[str, Sequence[float]]
    replications: int = 20
    seed: int = TUNING_SEED
    reported: int | None = 0

    def __post_init__(self) -> None:
        validate.whole("replications", self.replications, 1)
        validate.whole("seed", self.seed, 0, 2**64 - 1)
        for name in ("worlds", "delays", "policies", "grid"):
            validate.require(len(getattr(self, name)) > 0, name, dict(getattr(self, name)), "at least one")
        other = "different from that of the reported results: a choice looks too good on the draws it was made on"
        validate.require(self.seed != self.reported, "seed", self.seed, f"{other} (reported=None or --force allow it)")
        for name, values in self.grid.items():
            array = np.asarray(values)
            good = array.ndim == 1 and array.size > 0 and array.dtype.kind in "iuf"
            validate.require(good, f"grid.{name}", values, "a list of numbers")
        for place in self.places:
            self.on_grid(place, self.columns)  # checks that the policy accepts the grid

    @cached_property
    def cells(self) -> list[tuple[float, ...]]:
        """List all combinations; the last hyperparameter varies fastest."""
        return list(itertools.product(*([float(v) for v in values] for values in self.grid.values())))

    @cached_property
    def columns(self) -> dict[str, Array]:
        """List the values of each hyperparameter over the cells."""
        return dict(zip(self.grid, np.array(self.cells, float).T, strict=True))

    @property
    def places(self) -> list[Place]:
        return [Place(*names) for names in itertools.product(self.worlds, self.delays, self.policies)]

    def on_grid(self, place: Place, columns: Mapping[str, Any]) -> Any:
        """Make the policy of a place with the values of some cells."""
        given = self.policies[place.policy]
        policy = given.policy(place.delay) if isinstance(given, Entry) else given
        taken = as_policy(policy).grids
        for name in columns:
            accepted = f"one of {', '.join(taken) or 'none'}, which {place.policy} takes as arrays"
            validate.require(name in taken, "name in grid", name, accepted)
        return with_values(policy, columns)

    def at_cell(self, place: Place, cell: int) -> Any:
        """Make the policy of a place with the values of one cell; whole numbers stay whole."""
        given = list(itertools.product(*(np.asarray(values).tolist() for values in self.grid.values())))[cell]
        return self.on_grid(place, dict(zip(self.grid, given, strict=True)))

    @property
    def size(self) -> Size:
        """Estimate what it takes, before anything is computed."""
        count = min(self.replications, BATCH_SIZE)
        width = BATCH_SIZE // count
        blocks = -(-len(self.cells) // width) * -(-self.replications // count)
        learners = len(self.cells) * self.replications
        return size_of(Part(blocks, learners, count * width, self.footprint(place)) for place in self.places)

    def footprint(self, place: Place) -> Footprint:
        """Estimate what one learner takes."""
        rng, delay = Rng(self.seed, [0]), self.delays[place.delay]
        world = self.worlds[place.world].draw(rng.at(Purpose.WORLD), (1,))
        policy = self.on_grid(place, {name: values[:1] for name, values in self.columns.items()})
        player = suited(policy, world.problem, world)
        return footprint(world, delay, player.init(problem_for(player, world), rng.at(Purpose.START), (1,)))

    def task(self, block: Block) -> BlockTask:
        part = slice(block.cells.start, block.cells.stop)
        policy = self.on_grid(block.place, {name: values[part] for name, values in self.columns.items()})
        place = block.place
        return BlockTask(
            self.worlds[place.world], self.delays[place.delay], policy, self.seed, block.first, block.replications
        )

    def blocks(self) -> list[Block]:
        """List blocks of at most BATCH_SIZE cells times replications, with all replications of a cell if they fit."""
        count = min(self.replications, BATCH_SIZE)
        width = BATCH_SIZE // count
        pieces = [range(k, min(k + width, len(self.cells))) for k in range(0, len(self.cells), width)]
        return [
            Block(place, cells, first, min(count, self.replications - first))
            for place in self.places
            for cells in pieces
            for first in range(0, self.replications, count)
        ]
