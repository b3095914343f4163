"""The main numbers and sentences of the study, as Markdown for the documents."""

from collections.abc import Callable
from textwrap import fill

from spillover.experiments import Results
from spillover.experiments import open_results as load
from spillover.report.tables import markdown_table
from spillover_studies.field.sentences import (
    delay_sentence,
    goal_sentence,
    graph_sentence,
    structure_sentence,
    winner_sentence,
)
from spillover_studies.field.standings import ratio_text, share_of_random, standings


def winners(results: Results) -> str:
    """The best policies of each setting, with their shares of the regret of random sets."""
    rows = []
    for one in standings(results):
        told = f"{one.told.label} {ratio_text(share_of_random(one.setting, one.told))}" if one.told else "–"
        own = f"{one.best.label} {ratio_text(share_of_random(one.setting, one.best))}"
        rows.append([one.setting.title, own, ", ".join(record.label for record in one.ties) or "–", told])
    header = ["setting", "best that is told nothing", "cannot be told apart from it", "best that is told the edges"]
    return markdown_table(header, rows)


def conclusions(results: Results) -> str:
    sentences = (winner_sentence, goal_sentence, graph_sentence, structure_sentence, delay_sentence)
    points = (f"- {sentence(results)}" for sentence in sentences)
    return "\n".join(fill(point, 120, subsequent_indent="  ", break_on_hyphens=False) for point in points)


NUMBERS: dict[str, Callable[[Results], str]] = {"winners": winners, "conclusions": conclusions}
__all__ = ["NUMBERS", "load"]
