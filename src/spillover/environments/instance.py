"""The same drawn world for all replications: a figure needs an instance, not a family."""

from dataclasses import dataclass, field

from spillover.environments.synthetic import SyntheticSEM
from spillover.environments.world import SEMWorld
from spillover.rng import Purpose, Rng
from spillover.types import Batch


@dataclass(frozen=True, kw_only=True)
class Instance:
    """The world of replication 0 of a seed, for every replication: only rewards and delays differ.

    >>> world = Instance(seed=7).draw(Rng(0, [0, 1]), (2,))
    >>> bool((world.means(1)[0] == world.means(1)[1]).all())
    True
    """

    seed: int = 0
    of: SyntheticSEM = field(default_factory=SyntheticSEM)

    def draw(self, rng: Rng, batch: Batch = ()) -> SEMWorld:
        one = self.of.draw(Rng(self.seed).at(Purpose.WORLD))
        return one.repeated(batch)
