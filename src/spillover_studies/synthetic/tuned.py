"""The searches behind the tuned parameters: what they find, beside what synthetic.toml uses."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from spillover.experiments import Results
from spillover.hyperparameters import value_of
from spillover_studies.synthetic.names import DELAYS, FOLDER, ONCE, SEARCHES, SEM_UCB_TUNED, TUNED

SYMBOLS = {"discount": "γ", "exploration": "ξ", "graph.sparsity": "λ"}


class Source(NamedTuple):
    """Where the parameters of a policy come from."""

    search: str
    policy: str  # its name in the search
    each_delay: bool = True  # or one cell for all delays


SOURCES = {
    TUNED: Source("ndc-sem-grid", "ndc-sem"),
    ONCE: Source("ndc-sem-grid", "ndc-sem", each_delay=False),
    "no-graph-tuned": Source("ndc-sem-grid", "no-graph"),
    SEM_UCB_TUNED: Source("sem-ucb-grid", "sem-ucb"),
}


class Comparison(NamedTuple):
    """One tuned setting: the parameters in the file, and the best cell of the search."""

    policy: str
    delay: str  # "all" if one cell serves all delays
    used: dict[str, float]
    found: dict[str, float]
    regret: float  # of the best cell, on the worlds of the search

    @property
    def agree(self) -> bool:
        return self.used == self.found


def read_searches(folder: Path) -> dict[str, pd.DataFrame]:
    """Every cell of the searches that a folder of results has, by the name of the search."""
    paths = {name: folder / FOLDER / name / "tuning.csv" for name in SEARCHES}
    return {name: pd.read_csv(path, dtype={"delay": str}) for name, path in paths.items() if path.exists()}


def parameters_of(cells: pd.DataFrame) -> list[str]:
    return [name for name in SYMBOLS if name in cells.columns]


def best_cell(cells: pd.DataFrame, policy: str, delays: tuple[str, ...]) -> dict[str, float]:
    """The cell with the least final regret, mean over the delays, with its regret; the first one if there are ties."""
    own = cells[(cells["policy"] == policy) & cells["delay"].isin(delays)]
    means = own.groupby(parameters_of(cells), sort=False, as_index=False)["final_regret"].mean()
    return {str(name): float(value) for name, value in means.loc[means["final_regret"].idxmin()].items()}


def compare(results: Results, searches: dict[str, pd.DataFrame]) -> list[Comparison]:
    """Every tuned setting of the study beside what the searches find."""
    found = []
    for name, source in SOURCES.items():
        if source.search not in searches:
            continue
        cells = searches[source.search]
        for delays in [(delay,) for delay in DELAYS] if source.each_delay else [DELAYS]:
            best = best_cell(cells, source.policy, delays)
            player = results.experiment.policies[name].policy(delays[0])
            used = {key: float(value_of(player, key)) for key in parameters_of(cells)}
            place = delays[0] if source.each_delay else "all"
            found.append(Comparison(name, place, used, {key: best[key] for key in used}, best["final_regret"]))
    return found
