"""Heat maps of a grid search."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from spillover.figures import grid_figure, save_figures
from spillover.figures.grid import grid_height
from spillover.figures.output import file_stem
from spillover.figures.style import WIDTH, figure_of, new_panels

AXES = ("discount", "exploration")
PLACES = ["world", "delay", "policy"]


def draw_grid(frame: pd.DataFrame, folder: str | Path) -> list[Path]:
    """One heat map of mean final regret for each world, delay and policy, as PNG, SVG and PDF; none without both axes.

    frame: `Tuned.to_frame()`. Where several cells share discount and exploration, the best one is shown.
    """
    written: list[Path] = []
    for names, table in grid_tables(frame).items():
        name = file_stem("-".join(["grid", *names]))
        written += save_figures(figure_of(draw_table(names, table)), Path(folder) / f"{name}.png")
    return written


def grid_panels(frame: pd.DataFrame) -> list[Axes]:
    """The heat maps of `draw_grid` in one figure, one below the other; none without both axes."""
    tables = grid_tables(frame)
    if not tables:
        return []
    heights = [grid_height(table.shape[1]) for table in tables.values()]
    panels = new_panels(len(tables), 1, size=(WIDTH, sum(heights)), gridspec_kw={"height_ratios": heights})
    return [draw_table(*item, ax=ax) for item, ax in zip(tables.items(), panels, strict=True)]


def grid_tables(frame: pd.DataFrame) -> dict[tuple[str, ...], pd.DataFrame]:
    """Mean final regret by discount and exploration, for each world, delay and policy."""
    if any(name not in frame or frame[name].nunique() < 2 for name in AXES):
        return {}
    return {
        tuple(map(str, place)): rows.pivot_table(
            index="discount", columns="exploration", values="final_regret", aggfunc="min"
        )
        for place, rows in frame.groupby(PLACES, sort=False)
    }


def draw_table(names: tuple[str, ...], table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    title = "{2} in {0} at delay {1}".format(*names)
    return grid_figure(table.to_numpy(), table.index.to_numpy(), table.columns.to_numpy(), title=title, ax=ax)
