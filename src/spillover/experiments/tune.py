"""Tuning: a grid of hyperparameters as a batch axis, scored by final regret on other seeds than those reported.

Every cell of the grid meets the same replications, and equals the single run with its values bit for bit. Blocks of
learners keep memory bounded whatever the size of the grid, run side by side, and are kept: a search that was
interrupted goes on where it stopped.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover.contracts import Environment
from spillover.delays import as_delay
from spillover.experiments.engines import start
from spillover.experiments.final_regret import Task, play
from spillover.experiments.fingerprint import describe, digest, source_digest
from spillover.experiments.run import Failed
from spillover.experiments.search import TUNING_SEED, Block, Place, Search
from spillover.files import write_atomically
from spillover.metrics import mean_interval
from spillover.store import CellStore, Damaged
from spillover.types import Array

if TYPE_CHECKING:
    import pandas as pd


class Order(NamedTuple):
    """What goes to a worker."""

    name: str  # of the block in the store
    label: str  # for people
    task: Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuned:
    """What a search found: final regret of each cell, (cells, replications), wherever it was searched."""

    search: Search
    regret: Mapping[Place, Array]

    def to_frame(self) -> "pd.DataFrame":
        """One row a cell: world, delay, policy, the hyperparameters, mean final regret and its 95% interval."""
        import pandas as pd

        columns: dict[str, Any] = dict(self.search.columns)
        frames = []
        for place, regret in self.regret.items():
            mean, low, high = mean_interval(regret, axis=-1)
            measured = {"replications": regret.shape[-1], "final_regret": mean, "low": low, "high": high}
            frames.append(pd.DataFrame(place._asdict() | columns | measured))
        return pd.concat(frames, ignore_index=True)

    def best(self) -> "pd.DataFrame":
        """The cell with the least mean final regret wherever it was searched; of equal ones the first."""
        frame = self.to_frame()
        rows = frame.groupby(list(Place._fields), sort=False)["final_regret"].idxmin()
        return frame.loc[rows].reset_index(drop=True)

    def save(self, folder: str | Path) -> list[Path]:
        """Write tuning.csv, every cell, and tuning.json, what was searched and the best; each whole or not at all."""
        table, summary = Path(folder) / "tuning.csv", Path(folder) / "tuning.json"
        table.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(table, self.to_frame().to_csv(index=False).encode())
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
    search = Search(
        name="tune",
        worlds={"world": environment},
        delays={"delay": as_delay(delay)},
        policies={"policy": policy},
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
) -> Tuned:
    """Search the grid; engine, jobs and address as for `run_experiment`.

    folder: where finished blocks are kept, so that the same search goes on from there; None keeps nothing.
    """
    store = None if folder is None else CellStore(folder)
    if store is not None:
        store.cells.mkdir(parents=True, exist_ok=True)
    tasks = {identity(task := search.task(block)): (block, task) for block in search.blocks()}
    found = {name: kept for name in tasks if (kept := stored(store, name)) is not None}
    missing = [Order(name, str(block), task) for name, (block, task) in tasks.items() if name not in found]
    if missing:
        with start(engine, jobs, address) as mapping:
            for name, regret in watch(mapping(carry_out, missing), len(missing), progress):
                found[name] = regret
                if store is not None:
                    store.write(name, {"regret": regret}, {})
    blocks = [(block, found[name]) for name, (block, _) in tasks.items()]
    return Tuned(search=search, regret={place: assemble(search, place, blocks) for place in search.places})


def carry_out(order: Order) -> tuple[str, Array]:
    """Play in a worker."""
    try:
        return order.name, play(order.task)
    except Exception as error:
        raise Failed(f"{order.label}: {type(error).__name__}: {error}") from error


def watch(played: Iterator[Any], total: int, progress: bool) -> Iterator[Any]:
    """The same with a progress bar on stderr, unless it is piped."""
    if not progress:
        return played
    from tqdm import tqdm

    return iter(tqdm(played, total=total, unit=" blocks", disable=None, leave=False))


def identity(task: Task) -> str:
    """Changes with anything that the numbers can depend on."""
    return digest({"tuning": describe(task), "source": source_digest(task)})


def stored(store: CellStore | None, name: str) -> Array | None:
    """A block that is there already, and whole."""
    try:
        return None if store is None else np.asarray(store.read(name)[0]["regret"])
    except (FileNotFoundError, Damaged):
        return None


def assemble(search: Search, place: Place, blocks: list[tuple[Block, Array]]) -> Array:
    """(cells, replications) of one place from its blocks."""
    whole = np.empty((len(search.cells), search.replications))
    for block, regret in blocks:
        if block.place == place:
            whole[block.cells.start : block.cells.stop, block.first : block.first + block.replications] = regret
    return whole
