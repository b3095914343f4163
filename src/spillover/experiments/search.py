"""The description of a search: policies over worlds and delays, and the grid of hyperparameters."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Delay, Environment, as_policy, suited
from spillover.experiments.final_regret import BlockTask
from spillover.experiments.size import Footprint, Part, Size, footprint, size_of
from spillover.experiments.specification import Entry
from spillover.hyperparameters import with_values
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import problem_for
from spillover.types import Array

BATCH_SIZE = 500  # large enough to spread the overhead of a round, small enough for the processor's cache
TUNING_SEED = 1_000_003  # shipped experiments report small seeds


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
        """All combinations; the last hyperparameter varies fastest."""
        return list(itertools.product(*([float(v) for v in values] for values in self.grid.values())))

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The values of each hyperparameter over the cells."""
        return dict(zip(self.grid, np.array(self.cells, float).T, strict=True))

    @property
    def places(self) -> list[Place]:
        return [Place(*names) for names in itertools.product(self.worlds, self.delays, self.policies)]

    def on_grid(self, place: Place, columns: Mapping[str, Any]) -> Any:
        """The policy of a place with the values of some cells."""
        given = self.policies[place.policy]
        policy = given.policy(place.delay) if isinstance(given, Entry) else given
        taken = as_policy(policy).grids
        for name in columns:
            accepted = f"one of {', '.join(taken) or 'none'}, which {place.policy} takes as arrays"
            validate.require(name in taken, "name in grid", name, accepted)
        return with_values(policy, columns)

    def at_cell(self, place: Place, cell: int) -> Any:
        """The policy of a place with the values of one cell; whole numbers stay whole."""
        given = list(itertools.product(*(np.asarray(values).tolist() for values in self.grid.values())))[cell]
        return self.on_grid(place, dict(zip(self.grid, given, strict=True)))

    @property
    def size(self) -> Size:
        """What it takes, before anything is computed."""
        count = min(self.replications, BATCH_SIZE)
        width = BATCH_SIZE // count
        blocks = -(-len(self.cells) // width) * -(-self.replications // count)
        learners = len(self.cells) * self.replications
        return size_of(Part(blocks, learners, count * width, self.footprint(place)) for place in self.places)

    def footprint(self, place: Place) -> Footprint:
        """What one learner takes."""
        rng, delay = Rng(self.seed, [0]), self.delays[place.delay]
        world = self.worlds[place.world].draw(rng.at(Purpose.WORLD), (1,))
        policy = self.on_grid(place, {name: values[:1] for name, values in self.columns.items()})
        player = suited(as_policy(policy).with_world(world), world.problem)
        return footprint(world, delay, player.init(problem_for(player, world), rng.at(Purpose.START), (1,)))

    def task(self, block: Block) -> BlockTask:
        part = slice(block.cells.start, block.cells.stop)
        policy = self.on_grid(block.place, {name: values[part] for name, values in self.columns.items()})
        place = block.place
        return BlockTask(
            self.worlds[place.world], self.delays[place.delay], policy, self.seed, block.first, block.replications
        )

    def blocks(self) -> list[Block]:
        """Blocks of at most BATCH_SIZE cells times replications, with all replications of a cell if they fit."""
        count = min(self.replications, BATCH_SIZE)
        width = BATCH_SIZE // count
        pieces = [range(k, min(k + width, len(self.cells))) for k in range(0, len(self.cells), width)]
        return [
            Block(place, cells, first, min(count, self.replications - first))
            for place in self.places
            for cells in pieces
            for first in range(0, self.replications, count)
        ]
