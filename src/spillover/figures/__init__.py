"""Figures that are readable in grey and by the colour-blind; each takes `ax=` (or creates one) and returns it."""

from spillover.registry import needed_for

with needed_for("a figure", "plot"):
    from spillover.figures.comparisons import Difference, Ratio, forest_figure, ratios_figure
    from spillover.figures.decision import decision_figure
    from spillover.figures.graph import edges_of, graph_figure, graph_pair
    from spillover.figures.grid import grid_figure
    from spillover.figures.over_time import (
        course_figure,
        delay_figure,
        graph_error_figure,
        means_figure,
        ratio_figure,
        ratio_panels,
        regret_figure,
        regret_panels,
    )
    from spillover.figures.style import (
        Style,
        figure_bytes,
        figure_legend,
        figure_of,
        html_image,
        html_svg,
        new_axes,
        new_panels,
        png_data,
        save_figure,
        save_figures,
        styles_for,
    )

__all__ = [
    "Difference",
    "Ratio",
    "Style",
    "course_figure",
    "decision_figure",
    "delay_figure",
    "edges_of",
    "figure_bytes",
    "figure_legend",
    "figure_of",
    "forest_figure",
    "graph_error_figure",
    "graph_figure",
    "graph_pair",
    "grid_figure",
    "html_image",
    "html_svg",
    "means_figure",
    "new_axes",
    "new_panels",
    "png_data",
    "ratio_figure",
    "ratio_panels",
    "ratios_figure",
    "regret_figure",
    "regret_panels",
    "save_figure",
    "save_figures",
    "styles_for",
]
