"""Heat maps of tuning grids."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse, Rectangle
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from spillover import validate
from spillover.figures.style import WIDTH, figure_of, file_stem, new_axes, new_panels, save_figures
from spillover.types import Array

ROOM = 45  # characters beside each other in the cells, that can be read
MOST_TICKS = 4  # of the colour bar: numbers of six digits stay apart
SMALL = 8.0  # points: of labels that are close to each other


def grid_figure(
    values: Array,
    discounts: Any,
    explorations: Any,
    *,
    ax: Axes | None = None,
    title: str = "",
    measure: str = "mean final expected regret",
    smaller_is_better: bool = True,
    circled: tuple[float, float] | None = None,
) -> Axes:
    """A measure over discount x exploration; the best cell is framed and starred.

    circled: the discount and exploration of another cell of interest, such as the paper's; left out if the grid does
    not have it.

    values: (discounts, explorations); NaN cells (settings that were not run) stay empty. The discounts are in columns,
    as there are fewer of them: so the values fit into their cells, unless there are very many.

    >>> ax = grid_figure(np.array([[3.0, 2.0], [4.0, 5.0]]), [0.97, 0.99], [0.01, 1.0], title="regret")
    >>> ax.get_title()
    'regret'
    """
    values = np.asarray(values, float)
    rows, columns = np.size(discounts), np.size(explorations)
    validate.require(values.shape == (rows, columns), "shape of values", values.shape, f"{(rows, columns)}")
    validate.require(bool(np.isfinite(values).any()), "values", values, "a finite number in at least one cell")
    target = ax or new_axes(WIDTH, grid_height(columns))
    colors = "cividis_r" if smaller_is_better else "cividis"  # monotone in lightness: grey and colour-blind alike
    image = target.imshow(np.ma.masked_invalid(values.T), cmap=colors, aspect="auto", origin="lower")
    best = np.nanargmin(values) if smaller_is_better else np.nanargmax(values)
    column, row = (int(k) for k in np.unravel_index(best, values.shape))
    mark_best(target, row, column)
    if circled is not None:
        circle(target, position(explorations, circled[1]), position(discounts, circled[0]))
    texts = cell_texts(values.T)
    if rows * max(map(len, texts.ravel())) <= ROOM:
        write_cells(target, values.T, texts, image)
    target.set_xticks(np.arange(rows), [f"{v:.6g}" for v in np.ravel(discounts)])
    target.set_yticks(np.arange(columns), [power_label(v) for v in np.ravel(explorations)])
    fit_labels(target, rows, columns)
    target.set(xlabel="discount γ", ylabel="exploration ξ", title=title)
    target.spines[:].set_visible(False)
    bar = figure_of(target).colorbar(image, ax=target, label=f"{measure} (★ best)", location="bottom", aspect=40)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(MOST_TICKS)
    bar.formatter = StrMethodFormatter("{x:,.10g}")
    bar.update_ticks()
    return target


def grid_height(explorations: int) -> float:
    """The height of the figure of a grid, in inches."""
    return max(3.4, 1.8 + 0.24 * explorations)


def mark_best(ax: Axes, row: int, column: int) -> None:
    """A frame that is visible on dark and light cells, with a star in its corner."""
    corner = (column - 0.5, row - 0.5)
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="white", linewidth=4.0, zorder=4))
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="black", linewidth=2.0, zorder=5, label="best"))
    ax.plot(
        column + 0.4, row + 0.32, marker="*", markersize=8, color="white", markeredgecolor="black", zorder=6,
        label="_best", clip_on=False,
    )  # fmt: skip


def position(values: Any, wanted: float) -> int | None:
    """Find a value in a grid; None if it is not there."""
    found = np.flatnonzero(np.isclose(np.ravel(values), wanted, rtol=1e-9, atol=0))
    return int(found[0]) if len(found) else None


def circle(ax: Axes, row: int | None, column: int | None) -> None:
    """A ring around a cell, wide enough for the number in it."""
    if row is not None and column is not None:
        ring = Ellipse((column, row), 1.1, 1.3, fill=False, edgecolor="#D55E00", linewidth=2.2, zorder=7)
        ring.set(label="_circled", clip_on=False)
        ax.add_patch(ring)


def cell_texts(values: Array) -> Any:
    """Every value as text, with three digits of the largest; nothing where there is none."""
    largest = float(np.nanmax(np.abs(values)))
    decimals = int(np.clip(2 - np.floor(np.log10(max(largest, 1e-9))), 0, 4))
    return np.array([[f"{v:.{decimals}f}" if np.isfinite(v) else "" for v in row] for row in values])


def write_cells(ax: Axes, values: Array, texts: Any, image: Any) -> None:
    """Each value in its cell, white on dark."""
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            ax.text(
                column, row, texts[row, column], ha="center", va="center", fontsize=7.0,
                color="white" if dark else "black",
            )  # fmt: skip


def power_label(value: float) -> str:
    """Powers of 10 as such, other numbers below 1 as a multiple of one, so that all are of one kind.

    >>> power_label(1e-10), power_label(0.07), power_label(2.0), power_label(0.0)
    ('$10^{-10}$', '$7\\\\cdot10^{-2}$', '2', '0')
    """
    if value <= 0:
        return f"{value:g}"
    digits, _, exponent = f"{value:.1e}".partition("e")
    factor, power = f"{float(digits):g}", int(exponent)
    if factor == "1":
        return "1" if power == 0 else f"$10^{{{power}}}$"
    return f"{value:.2g}" if power >= 0 else rf"${factor}\cdot10^{{{power}}}$"


def fit_labels(ax: Axes, columns: int, rows: int) -> None:
    """Small letters where cells are small; labels that would still touch each other are left out evenly."""
    extent, dpi = ax.get_window_extent(), figure_of(ax).dpi
    for labels, inches, count, needed in (
        (ax.get_xticklabels(), extent.width / dpi, columns, 0.34),
        (ax.get_yticklabels(), extent.height / dpi, rows, 0.16),
    ):
        step = int(np.ceil(count * needed / inches))
        for k, label in enumerate(labels):
            label.set_visible(k % step == 0)
            if count * 1.5 * needed > inches:
                label.set_fontsize(SMALL)


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
