"""Figures, tables and pages from stored results; nothing is simulated here."""

from spillover.registry import needed_for

with needed_for("a report", "research"):
    from spillover.figures import (
        Difference,
        Ratio,
        delay_figure,
        forest_figure,
        graph_error_figure,
        graph_figure,
        graph_pair,
        grid_figure,
        html_image,
        html_svg,
        means_figure,
        ratio_figure,
        ratio_panels,
        ratios_figure,
        regret_figure,
        regret_panels,
        save_figure,
        save_figures,
        styles_for,
    )
    from spillover.report.page import write_report
    from spillover.report.tables import (
        difference_table,
        final_table,
        html_table,
        paired_difference,
        parameter_table,
        show_final,
    )

__all__ = [
    "Difference",
    "Ratio",
    "delay_figure",
    "difference_table",
    "final_table",
    "forest_figure",
    "graph_error_figure",
    "graph_figure",
    "graph_pair",
    "grid_figure",
    "html_image",
    "html_svg",
    "html_table",
    "means_figure",
    "paired_difference",
    "parameter_table",
    "ratio_figure",
    "ratio_panels",
    "ratios_figure",
    "regret_figure",
    "regret_panels",
    "save_figure",
    "save_figures",
    "show_final",
    "styles_for",
    "write_report",
]
