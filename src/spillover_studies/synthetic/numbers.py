"""Numbers of the study for the documents, as Markdown."""

from collections.abc import Callable
from textwrap import fill

from spillover.experiments import Results
from spillover.experiments import open_results as load
from spillover.report.tables import markdown_table
from spillover_studies.synthetic.summary import regret_table, tunings


def readme(results: Results) -> str:
    """Where NDC-SEM stands, with each tuning."""
    return fill(" ".join(tunings(results)), 120, break_on_hyphens=False)


def regret(results: Results) -> str:
    """Final regret of every policy at every delay."""
    table = regret_table(results)
    return markdown_table(list(table.columns), table.to_numpy().tolist())


NUMBERS: dict[str, Callable[[Results], str]] = {"readme": readme, "regret": regret}
__all__ = ["NUMBERS", "load"]
