"""What is in a table, what can be learned from it and what not: before any decision."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover.assessment.findings import FINE, NOTE, WARNING
from spillover.formatting import count_of, join_lines, printable
from spillover.history import History
from spillover.history.read import name_of
from spillover.recommendation.facts import Facts, facts_of
from spillover.recommendation.text import SHOWN, data_lines

LISTED_COLUMNS = 60
LONGEST_OPTION = 1_000  # characters that are worth pasting
HEADINGS = {FINE: "Can be learned:", NOTE: "Good to know:", WARNING: "Cannot be learned, or misleads:"}
SIGNS = {FINE: "+", NOTE: "-", WARNING: "!"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Overview:
    """The check of a table: `print` it, or see `to_dict`."""

    source: str
    history: History
    facts: Facts
    options: str = ""  # that the table was read with, for the next command

    def __str__(self) -> str:
        history, assessment = self.history, self.facts.assessment
        lines = [f"{name_of(self.source)}: {self.size()}.", *column_lines(history), ""]
        lines += data_lines(assessment, self.most_varied_first(), per_arm=self.facts.per_arm)
        for severity, heading in HEADINGS.items():
            found = [finding for finding in assessment.findings if finding.severity == severity]
            if found:
                lines += ["", heading, *(f"  {SIGNS[severity]} {finding.sentence}" for finding in found)]
        lines += ["", *(f"Note: {note}." for note in history.notes), self.next_step()]
        return join_lines(lines)

    def size(self) -> str:
        """How many rounds, arms and outcomes there are."""
        history, assessment = self.history, self.facts.assessment
        rounds = count_of(assessment.rounds, "round")
        span = f" ({history.rounds[0]} to {history.rounds[-1]})" if len(history.rounds) > 1 else ""
        arms = count_of(len(history.arms), "arm")
        each = "" if self.facts.per_arm else ", with one outcome for all of them"
        return f"{rounds}{span}, {arms}{each}; {count_of(assessment.known, 'round')} with outcomes"

    def next_step(self) -> str:
        """The command to run next, with the usual number of arms as the budget."""
        sizes = self.history.x.sum(axis=1)
        usual = max(int(sorted(sizes)[len(sizes) // 2]), 1) if len(sizes) else 1
        options = f" {self.options}" if self.options else ""
        return f"Next: spillover next {shlex.quote(self.source)} --budget {usual}{options}"

    def most_varied_first(self) -> list[int]:
        """Arms in their order; where there are too many to show all, those that were chosen and left out most often."""
        times = self.history.x.sum(axis=0)
        varied = np.minimum(times, len(self.history.x) - times)
        order = np.argsort(-varied, kind="stable") if len(times) > SHOWN else np.arange(len(times))
        return [int(j) for j in order]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "file": self.source,
            "columns": columns_of(self.history),
            "columns_option": self.history.columns_option,
            "minimise": self.history.minimise,
            "context": list(self.history.context_names),
            "first_round": self.history.rounds[0] if self.history.rounds else None,
            "last_round": self.history.rounds[-1] if self.history.rounds else None,
            "pending": list(self.history.pending),
            "notes": list(self.history.notes),
        } | self.facts.assessment.to_dict()


def overview(history: History, source: str, options: str = "") -> Overview:
    """The check of a history that was read from `source` with some options of the command."""
    return Overview(source=source, history=history, facts=facts_of(history), options=options)


def column_lines(history: History) -> list[str]:
    """What each column was taken for, and the option to paste."""
    if not history.taken:
        return []
    rows = [[taken.column, taken.meaning, taken.reason] for taken in history.taken[:LISTED_COLUMNS]]
    lines = ["", "Columns:", *(f"  {line}" for line in align_left(rows))]
    if len(history.taken) > LISTED_COLUMNS:
        lines.append(f"  and {len(history.taken) - LISTED_COLUMNS:,} more: see --json")
    if not history.columns_option:
        return lines
    short = len(history.columns_option) <= LONGEST_OPTION
    return [*lines, f"The same reading: {history.columns_option if short else 'see columns_option of --json'}"]


def align_left(rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in shown) for k in range(len(shown[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in shown]


def columns_of(history: History) -> list[dict[str, str]]:
    return [{"column": taken.column, "meaning": taken.meaning, "reason": taken.reason} for taken in history.taken]
