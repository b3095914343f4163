"""Read the results in an experiment's store, as arrays and as tidy tables."""

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.experiments.experiment import Experiment
from spillover.experiments.parse import parse_experiment
from spillover.experiments.store import CellStore, Damaged
from spillover.files import write_atomically
from spillover.formatting import Shown, view_of
from spillover.metrics import RegretCurve
from spillover.registry import needed_for
from spillover.types import Array, IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIELDS = {"name": str, "text": str, "changes": dict, "cells": list}  # of store.json
FORMULA = "=+-@\t\r"  # a spreadsheet takes text that starts with one of these for a formula
JOINED = ("replications", "regret", "payoff", "optimality_ratio", "graph_error", "blind_regret", "adjacency")


class Record(NamedTuple):
    """All replications of one (world, delay, policy) of an experiment, in order.

    >>> from spillover.experiments import example_results
    >>> record = example_results().record("changing", "2", "ndc-sem")
    >>> record.rounds, record.regret.shape
    (array([10, 20, 30, 40]), (2, 4))
    """

    world: str  # these three: names in the experiment file
    delay: str
    policy: str
    label: str  # what a figure prints
    rounds: IntArray  # (K,): recorded rounds; the last one is the horizon
    regret: Array  # (R, K): cumulative pseudo-regret at the end of those rounds
    payoff: Array  # (R, K): cumulative realised payoff
    optimality_ratio: Array  # (R, periods)
    graph_error: Array  # (R, K): MSE of the adjacency; NaN without a graph
    blind_regret: Array  # (R,): regret of rounds 1 to D + 1; NaN where the delay is not constant
    adjacency: Array  # (R, n, n): the estimate after the last round; NaN without a graph, (R, 0, 0) with many arms
    changes: tuple[int, ...]  # first rounds of the periods after the first one
    horizon: int
    replications: IntArray  # (R,): their numbers
    seconds: float  # computing time, summed over the cells
    arms: tuple[str, ...] = ()  # names of the arms, in the order of `adjacency`

    def regret_curves(self) -> list[RegretCurve]:
        """Draw up the regret over time, for `spillover.report.regret_figure`."""
        return [RegretCurve(self.policy, self.label, self.rounds, self.regret, self.changes)]


class Missing(ValueError):
    """Some results have not been computed."""


class Results(Shown):
    """The results of an experiment in a store. Files are read on demand; nothing is computed.

    >>> from spillover.experiments import example_results
    >>> results = example_results()
    >>> results.final()[["delay", "policy", "replication"]].head(2)
      delay   policy  replication
    0     2  ndc-sem            0
    1     2  ndc-sem            1
    """

    view = "spillover.views:ResultsView"

    def __init__(self, experiment: Experiment, store: CellStore, cells: list[dict[str, Any]]) -> None:
        self.experiment = experiment
        self.store = store
        self.cell_ids: dict[tuple[str, str, str], list[str]] = {}  # ids of the cells of a record
        for cell in cells:
            self.cell_ids.setdefault((cell["world"], cell["delay"], cell["policy"]), []).append(cell["id"])
        self.loaded: dict[tuple[str, str, str], Record] = {}

    def record(self, world: str, delay: str, policy: str) -> Record:
        """Read all stored replications of one policy in one world at one delay."""
        key = (world, delay, policy)
        if key not in self.cell_ids:
            known = ", ".join(" / ".join(names) for names in self.cell_ids)
            raise KeyError(f"world, delay, policy = {' / '.join(key)}: must be one of {known}")
        if key not in self.loaded:
            self.loaded[key] = self.load(key)
        return self.loaded[key]

    def load(self, key: tuple[str, str, str]) -> Record:
        parts = [part for cell in self.cell_ids[key] if (part := self.read_cell(cell)) is not None]
        if not parts:
            raise Missing(f"{self.store.folder}: no results for {' / '.join(key)}: run the experiment again to resume")
        arrays, about = parts[0]
        joined: dict[str, Any] = {name: np.concatenate([arrays[name] for arrays, _ in parts]) for name in JOINED}
        return Record(
            *key,
            label=self.experiment.policies[key[2]].label,
            rounds=arrays["rounds"],
            **joined,
            changes=tuple(about["changes"]),
            horizon=about["horizon"],
            seconds=sum(about["seconds"] for _, about in parts),
            arms=tuple(about["arms"]),
        )

    def read_cell(self, cell: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Read a cell; None if it is missing or damaged."""
        try:
            return self.store.read(cell)
        except (FileNotFoundError, Damaged):
            return None

    def missing(self) -> list[str]:
        """List the ids of the cells that are missing or damaged."""
        return [cell for cells in self.cell_ids.values() for cell in cells if self.read_cell(cell) is None]

    def records(self, *, world: str | None = None, delay: str | None = None, policy: str | None = None) -> list[Record]:
        """Read all records, or those with the given names, in the experiment's order."""
        wanted = (world, delay, policy)
        return [
            self.record(*key)
            for key in self.cell_ids
            if all(want is None or want == name for want, name in zip(wanted, key, strict=True))
        ]

    def to_frame(self, every: int = 1) -> "pd.DataFrame":
        """Tabulate one row for each replication and recorded round (of those divisible by `every`, and the last one).

        Columns: world, delay, policy, label, replication, round, period, regret and payoff (both cumulative),
        graph_error.
        """
        validate.whole("every", every, 1)
        return self.table(lambda record: curves(record, every))

    def final(self) -> "pd.DataFrame":
        """Tabulate the final values, a row for each replication; the optimality ratio is the mean over the periods."""
        return self.table(ends)

    def graphs(self) -> "pd.DataFrame":
        """Tabulate a row for each replication and pair of arms: the learned effect of `cause` on `effect`, by name."""
        return self.table(edges)

    def table(self, columns: Callable[[Record], dict[str, Any]]) -> "pd.DataFrame":
        with needed_for("a data frame", "research"):
            import pandas as pd

        parts = []
        for record in self.records():
            names = {name: getattr(record, name) for name in ("world", "delay", "policy", "label")}
            parts.append(pd.DataFrame(names | columns(record)))
        return pd.concat(parts, ignore_index=True)

    def export(self, path: str | Path, table: str = "rounds") -> None:
        """Write a table as .csv or .parquet, by the suffix: "rounds" (to_frame), "final" or "graphs"."""
        tables = {"rounds": self.to_frame, "final": self.final, "graphs": self.graphs}
        validate.require(table in tables, "table", table, f"one of {', '.join(tables)}")
        ending = Path(path).suffix
        validate.require(ending in (".csv", ".parquet"), "path", str(path), "a name that ends in .csv or .parquet")
        if ending == ".csv":
            write_atomically(path, csv_bytes(tables[table]()))
            return
        content = io.BytesIO()
        tables[table]().to_parquet(content, index=False, engine="pyarrow")
        write_atomically(path, content.getvalue())

    def plot(self, world: str | None = None) -> "Figure":
        """Draw regret over time in a world (default: the first one), a panel for each delay.

        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from spillover.experiments import parse_experiment, run_experiment
        >>> text = '''
        ... name = "small"
        ... replications = 2
        ... [worlds.small]
        ... kind = "synthetic"
        ... horizon = 60
        ... changes = []
        ... [delays.late]
        ... kind = "constant"
        ... rounds = 5
        ... [policies.ndc-sem]
        ... kind = "ndc-sem"
        ... '''
        >>> results = run_experiment(parse_experiment(text, "small"), Path(mkdtemp()), progress=False)
        >>> [ax.get_title() for ax in results.plot().axes]
        ['D = late']
        """
        drawn: Figure = view_of(self.view, self).plot(world)
        return drawn

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())


def curves(record: Record, every: int) -> dict[str, Any]:
    kept = np.flatnonzero((record.rounds % every == 0) | (record.rounds == record.horizon))
    rounds, replications = record.rounds[kept], len(record.replications)
    return {
        "replication": np.repeat(record.replications, len(rounds)),
        "round": np.tile(rounds, replications),
        "period": np.tile(np.searchsorted(record.changes, rounds, side="right") + 1, replications),
        "regret": record.regret[:, kept].ravel(),
        "payoff": record.payoff[:, kept].ravel(),
        "graph_error": record.graph_error[:, kept].ravel(),
    }


def ends(record: Record) -> dict[str, Any]:
    return {
        "replication": record.replications,
        "final_regret": record.regret[:, -1],
        "blind_regret": record.blind_regret,
        "payoff": record.payoff[:, -1],
        "graph_error": record.graph_error[:, -1],
        "optimality_ratio": record.optimality_ratio.mean(axis=-1),
    }


def edges(record: Record) -> dict[str, Any]:
    n, replications = record.adjacency.shape[-1], len(record.replications)
    names = np.array(record.arms[:n], object)
    return {
        "replication": np.repeat(record.replications, n * n),
        "effect": np.tile(np.repeat(names, n), replications),
        "cause": np.tile(names, replications * n),
        "weight": record.adjacency.ravel(),
    }


def csv_bytes(frame: "pd.DataFrame") -> bytes:
    """Write a table as CSV; names that would be formulas get an apostrophe before them.

    >>> import pandas as pd
    >>> csv_bytes(pd.DataFrame({"policy": ["=1+1", "cucb"], "regret": [-1.5, 2.0]}))
    b"policy,regret\\n'=1+1,-1.5\\ncucb,2.0\\n"
    """
    texts = frame.select_dtypes(["object", "string"]).columns
    safe = frame.assign(**{name: frame[name].map(as_text) for name in texts})
    return safe.to_csv(index=False).encode()


def as_text(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(tuple(FORMULA)) else cell


def about_experiment(store: CellStore) -> dict[str, Any] | None:
    """Read what the store says of its experiment; None if it is new, a ValueError if something is missing."""
    about = store.about()
    if about is None:
        return None
    lacking = [name for name, kind in FIELDS.items() if not isinstance(about.get(name), kind)]
    if not lacking and not all(is_entry(cell) for cell in about["cells"]):
        lacking = ["complete list of cells"]
    if lacking:
        path = store.folder / "store.json"
        raise ValueError(f"{path}: has no {lacking[0]}: must be a complete file written by run_experiment")
    return about


def is_entry(cell: Any) -> bool:
    """Whether this is a cell as `store.json` lists it."""
    names = ("world", "delay", "policy", "id")
    return isinstance(cell, dict) and all(isinstance(cell.get(name), str) for name in names) and cell["id"].isalnum()


def open_results(folder: str | Path, *, partial: bool = False) -> Results:
    """Open the results in a folder. Raises `Missing` if the experiment is not finished, unless `partial`.

    >>> import tempfile
    >>> from spillover.experiments import example_results, run_experiment
    >>> quick = example_results().experiment.changed(replications=1, delays=["2"], policies=["random"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     computed = run_experiment(quick, folder, progress=False)
    ...     open_results(folder).final()["policy"].tolist()
    ['random']
    """
    store = CellStore(folder)
    about = about_experiment(store)
    if about is None:
        raise FileNotFoundError(f"{folder}: must be a folder that run_experiment wrote (it has no store.json)")
    read = parse_experiment(about["text"], f"{folder}/experiment.toml", any_size=True).changed(**about["changes"])
    experiment = replace(read, study=about.get("study"))
    results = Results(experiment, store, about["cells"])
    if not partial and (missing := results.missing()):
        total = sum(len(cells) for cells in results.cell_ids.values())
        raise Missing(
            f"{folder}: {len(missing)} of {total} cells are missing or damaged: run the experiment again to resume, "
            "or ask for partial results"
        )
    return results
