"""Numbers of the study for the documents, as Markdown."""

from collections.abc import Callable
from textwrap import fill

from spillover.experiments import Results
from spillover.experiments import open_results as load
from spillover.report.tables import markdown_table
from spillover.studies.synthetic.names import ONCE, PRINTED, TUNED
from spillover.studies.synthetic.summary import regret_table, standing


def readme(results: Results) -> str:
    """Where NDC-SEM stands, with each tuning."""
    text = (
        f"Tuned for each delay on other worlds, NDC-SEM {standing(results, TUNED)}. With the parameters that the paper "
        f"prints it {standing(results, PRINTED)}; with one setting for all delays it {standing(results, ONCE)}."
    )
    return fill(text, 120, break_on_hyphens=False)


def regret(results: Results) -> str:
    """Final regret of every policy at every delay."""
    table = regret_table(results)
    return markdown_table(list(table.columns), table.to_numpy().tolist())


NUMBERS: dict[str, Callable[[Results], str]] = {"readme": readme, "regret": regret}
__all__ = ["NUMBERS", "load"]
