"""Heat maps of a grid search."""

from pathlib import Path

import pandas as pd

from spillover.report.figures import grid_figure, save_figures
from spillover.report.figures.output import file_stem
from spillover.report.figures.style import figure_of

AXES = ("discount", "exploration")
PLACES = ["world", "delay", "policy"]


def draw_grid(frame: pd.DataFrame, folder: str | Path) -> list[Path]:
    """One heat map of mean final regret for each world, delay and policy, as PNG, SVG and PDF; none without both axes.

    frame: `Tuned.to_frame()`. Where several cells share discount and exploration, the best one is shown.
    """
    if any(name not in frame or frame[name].nunique() < 2 for name in AXES):
        return []
    written: list[Path] = []
    for place, rows in frame.groupby(PLACES, sort=False):
        names = [str(name) for name in place]
        table = rows.pivot_table(index="discount", columns="exploration", values="final_regret", aggfunc="min")
        title = "{2} in {0} at delay {1}".format(*names)
        ax = grid_figure(table.to_numpy(), table.index.to_numpy(), table.columns.to_numpy(), title=title)
        name = file_stem("-".join(["grid", *names]))
        written += save_figures(figure_of(ax), Path(folder) / f"{name}.png")
    return written
