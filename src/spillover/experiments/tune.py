"""Tune: score a grid of hyperparameters by final regret, as a batch axis, on other seeds than the reported ones.

Every cell of the grid meets the same replications, and equals the single run with its values bit for bit. The grid is
split into blocks, which bound the memory, run in parallel, and are stored: an interrupted search continues where it
stopped.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover import validate
from spillover.contracts import Environment
from spillover.delays import as_delay
from spillover.experiments.compute import BlockTask, Job, describe, digest, source_digest
from spillover.experiments.engines import start_engine
from spillover.experiments.experiment import TUNING_SEED, Block, Place, Search
from spillover.experiments.results import csv_bytes
from spillover.experiments.run import computed, do_nothing
from spillover.experiments.store import CellStore, Damaged
from spillover.files import write_atomically
from spillover.formatting import Shown, view_of
from spillover.metrics import mean_interval
from spillover.registry import needed_for
from spillover.simulation.replications import with_progress
from spillover.types import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tuned(Shown):
    """The result of a search: final regret of each cell, (cells, replications), in each place."""

    view = "spillover.views:TunedView"

    search: Search
    regret: Mapping[Place, Array]

    def to_frame(self) -> "pd.DataFrame":
        """Tabulate a row for each cell: world, delay, policy, hyperparameters, mean final regret, 95% interval."""
        with needed_for("a data frame", "research"):
            import pandas as pd

        columns: dict[str, Any] = dict(self.search.columns)
        frames = []
        for place, regret in self.regret.items():
            mean, low, high = mean_interval(regret, axis=-1)
            measured = {"replications": regret.shape[-1], "final_regret": mean, "low": low, "high": high}
            frames.append(pd.DataFrame(place._asdict() | columns | measured))
        return pd.concat(frames, ignore_index=True)

    def best(self) -> "pd.DataFrame":
        """Find the cell with the least mean final regret in each place; the first one if there are ties."""
        frame = self.to_frame()
        rows = frame.groupby(list(Place._fields), sort=False)["final_regret"].idxmin()
        return frame.loc[rows].reset_index(drop=True)

    @property
    def policies(self) -> dict[Place, Any]:
        """Make the policy of each place with the values of its best cell."""
        best = {place: int(regret.mean(axis=-1).argmin()) for place, regret in self.regret.items()}
        return {place: self.search.at_cell(place, cell) for place, cell in best.items()}

    @property
    def policy(self) -> Any:
        """Make the tuned policy, ready to use, if the search is of one policy in one world at one delay.

        >>> import spillover as sp
        >>> world = sp.SyntheticSEM(horizon=200, changes=())
        >>> tune(sp.NDCSEM(), world, 5, grid={"discount": [0.1, 0.99]}, replications=4).policy.discount
        0.99
        """
        found = list(self.policies.values())
        accepted = "a single place; `policies` has the policy of each"
        validate.require(len(found) == 1, "places", [" / ".join(place) for place in self.regret], accepted)
        return found[0]

    def plot(self) -> "Figure":
        """Draw mean final regret over discount and exploration, a heat map for each place.

        >>> import spillover as sp
        >>> world, grid = sp.SyntheticSEM(horizon=50, changes=()), {"discount": [0.5, 0.9], "exploration": [1e-3, 0.1]}
        >>> tune(sp.NDCSEM(), world, 5, grid=grid, replications=2).plot().axes[0].get_xlabel()
        'discount γ'
        """
        drawn: Figure = view_of(self.view, self).plot()
        return drawn

    def save(self, folder: str | Path) -> list[Path]:
        """Write tuning.csv (every cell) and tuning.json (the search and the best cells), each atomically."""
        table, summary = Path(folder) / "tuning.csv", Path(folder) / "tuning.json"
        table.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(table, csv_bytes(self.to_frame()))
        content = {"search": describe(self.search), "best": describe(self.best().to_dict("records"))}
        write_atomically(summary, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
        return [table, summary]


def tune(
    policy: Any,
    environment: Environment,
    delay: Any = 0,
    *,
    grid: Mapping[str, Sequence[float]],
    replications: int = 20,
    seed: int = TUNING_SEED,
    reported: int | None = 0,
    folder: str | Path | None = None,
    **engine: Any,
) -> Tuned:
    """Search one grid for one policy in one environment at one delay; see `Search` and `run_search`.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=200, changes=())
    >>> found = tune(sp.NDCSEM(), world, 5, grid={"discount": [0.5, 0.9], "exploration": [1e-3, 0.1]}, replications=2)
    >>> found.to_frame().shape, len(found.best())
    ((4, 9), 1)
    """
    late = as_delay(delay)
    search = Search(
        name="tune",
        worlds={type(environment).__name__: environment},
        delays={type(late).__name__ if late.constant is None else f"{late.constant}": late},
        policies={type(policy).__name__: policy},
        grid=grid,
        replications=replications,
        seed=seed,
        reported=reported,
    )
    return run_search(search, folder, **engine)


def run_search(
    search: Search,
    folder: str | Path | None = None,
    *,
    engine: str = "serial",
    jobs: int | None = None,
    address: str | None = None,
    progress: bool = False,
    begin: Callable[[Sequence[Any]], None] = do_nothing,
) -> Tuned:
    """Search the grid; engine, jobs, address and begin as for `run_experiment`.

    folder: where finished blocks are stored, so that an interrupted search can continue; None: nowhere.
    """
    store = None if folder is None else CellStore(folder)
    if store is not None:
        store.cells.mkdir(parents=True, exist_ok=True)
    tasks = {identity(task := search.task(block)): (block, task) for block in search.blocks()}
    found = {name: kept for name in tasks if (kept := read_block(store, name)) is not None}
    missing = [
        Job(name, str(block), task, source_digest(task)) for name, (block, task) in tasks.items() if name not in found
    ]
    if missing:
        with start_engine(engine, jobs, address) as pool:
            begin([job.task for job in missing])
            with closing(computed(pool, missing)) as played:
                for job, (arrays, about) in with_progress(played, len(missing), progress, " blocks"):
                    found[job.name] = arrays["regret"]
                    if store is not None:
                        store.write(job.name, arrays, about)
    blocks = [(block, found[name]) for name, (block, _) in tasks.items()]
    return Tuned(search=search, regret={place: assemble(search, place, blocks) for place in search.places})


def identity(task: BlockTask) -> str:
    """Hash everything that the results can depend on."""
    return digest({"tuning": describe(task), "source": source_digest(task)})


def read_block(store: CellStore | None, name: str) -> Array | None:
    """Read a stored block; None if it is missing or damaged."""
    try:
        return None if store is None else np.asarray(store.read(name)[0]["regret"])
    except (FileNotFoundError, Damaged):
        return None


def assemble(search: Search, place: Place, blocks: list[tuple[Block, Array]]) -> Array:
    """Join the blocks of one place, (cells, replications)."""
    joined = np.empty((len(search.cells), search.replications))
    for block, regret in blocks:
        if block.place == place:
            joined[block.cells.start : block.cells.stop, block.first : block.first + block.replications] = regret
    return joined
