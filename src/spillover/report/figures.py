"""Figures, readable in grey and by the colour-blind: each takes `ax=` and returns it."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover.state import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spillover.simulation import Run

# Okabe and Ito's colours, each with a line style of its own
STYLES: list[dict[str, Any]] = [
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#D55E00", "linestyle": "--"},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#000000", "linestyle": ":"},
    {"color": "#CC79A7", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#E69F00", "linestyle": (0, (3, 1))},
    {"color": "#56B4E9", "linestyle": (0, (1, 1))},
    {"color": "#999999", "linestyle": (0, (8, 2))},
]


def regret_figure(runs: Mapping[str, "Run"], *, ax: "Axes | None" = None, title: str = "") -> "Axes":
    """Cumulative expected regret with 95% bands; vertical lines at the changes (fig:Reg-Synthetic)."""
    ax = ax or new_axes()
    for (label, run), style in zip(runs.items(), STYLES, strict=False):
        mean, low, high = run.interval("regret")
        t = np.arange(1, len(mean) + 1)
        ax.plot(t, mean, label=label, linewidth=1.8, **style)
        ax.fill_between(t, low, high, color=style["color"], alpha=0.18, linewidth=0)
    for change in next(iter(runs.values())).changes:
        ax.axvline(change, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
    ax.set(xlabel="round", ylabel="cumulative expected regret", title=title)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def new_axes() -> "Axes":
    """Axes on a figure of their own, without the global state of pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure, whole or not at all; the format is the ending of the path."""
    content = io.BytesIO()
    figure.savefig(content, format=Path(path).suffix.lstrip("."), dpi=150)
    write_whole(path, content.getvalue())
