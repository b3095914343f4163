"""The searches behind the tuned parameters: what they find, beside what synthetic.toml uses, and their section."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from spillover.contracts.hyperparameters import value_of
from spillover.experiments import Results
from spillover.figures import grid_figure, new_panels
from spillover.figures.style import WIDTH
from spillover.formatting import short_exponent
from spillover.report.page import Draw
from spillover.report.tables import html_table
from spillover_studies.synthetic import FOLDER, SEARCHES
from spillover_studies.synthetic.measures import DELAYS, ONCE, PRINTED, SEM_UCB_TUNED, TEXTS, TUNED

SYMBOLS = {"discount": "γ", "exploration": "ξ", "graph.sparsity": "λ"}


class Source(NamedTuple):
    """The search that the parameters of a policy come from."""

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


def tuning(results: Results, draw: Draw) -> str:
    """Describe what was tuned, and whether the file uses what the searches find."""
    note, searches = TEXTS("notes.tuning"), read_searches(results.store.folder)
    if not searches:
        return note + TEXTS("notes.no_searches")
    found = compare(results, searches)
    agreeing = sum(c.agree for c in found)
    rows = [
        {
            "policy": results.experiment.policies[c.policy].label,
            "delay": c.delay,
            "used here": cell_text(c.used),
            "found by the search": cell_text(c.found),
            "its regret there": f"{c.regret:,.0f}",
            "the same": c.agree,
        }
        for c in found
    ]
    table = html_table(pd.DataFrame(rows), text=("policy", "used here", "found by the search"))
    body = note + TEXTS("notes.agreeing", agreeing=agreeing, settings=len(found)) + table
    if "ndc-sem-grid" not in searches:
        return body
    cells = searches["ndc-sem-grid"]
    ranks = "; ".join(f"D = {delay}: {printed_rank(results, cells, delay)}" for delay in DELAYS)
    return body + TEXTS("notes.printed", ranks=ranks) + sensitivity(results, cells, draw)


def printed_rank(results: Results, cells: pd.DataFrame, delay: str) -> str:
    """The place of the paper's cell in the search."""
    policy = results.experiment.policies[PRINTED].policy(delay)
    own = cells[(cells["policy"] == "ndc-sem") & (cells["delay"] == delay)]
    at = (own["discount"] == policy.discount) & (own["exploration"] == policy.exploration)
    regret = own.loc[at, "final_regret"].item()
    better = int((own["final_regret"] < regret).sum())
    return f"place {better + 1} of {len(own)}, {regret - own['final_regret'].min():,.0f} above the best"


def cell_text(values: dict[str, float]) -> str:
    forms = {"discount": ".3f", "exploration": ".1e", "graph.sparsity": ".0e"}
    return ", ".join(
        f"{SYMBOLS[name]} = {short_exponent(format(value, forms[name]))}" for name, value in values.items()
    )


def sensitivity(results: Results, cells: pd.DataFrame, draw: Draw) -> str:
    """Regret over gamma x xi, one panel for each delay, with the paper's cell marked."""
    own = cells[cells["policy"] == "ndc-sem"]
    panels = new_panels(len(DELAYS), 1, size=(WIDTH, 3.6 * len(DELAYS)))
    for ax, delay in zip(panels, DELAYS, strict=True):
        table = own[own["delay"] == delay].pivot_table(
            index="discount", columns="exploration", values="final_regret", aggfunc="min"
        )
        printed = results.experiment.policies[PRINTED].policy(delay)
        grid_figure(
            table.to_numpy(), table.index.to_numpy(), table.columns.to_numpy(), ax=ax, title=f"D = {delay}",
            measure="mean final regret", circled=(float(printed.discount), float(printed.exploration)),
        )  # fmt: skip
    return draw("sensitivity", panels[0], TEXTS("captions.sensitivity"))
