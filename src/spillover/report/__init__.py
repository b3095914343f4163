"""Figures and tables: they read results, and never simulate."""

from spillover.report.figures import regret_figure, save_figure

__all__ = ["regret_figure", "save_figure"]
