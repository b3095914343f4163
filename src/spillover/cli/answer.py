"""The next decision as it is told: to people, in full, to programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from spillover.history import History
from spillover.types import Explanation


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What to choose next, and all that there is to say about it."""

    file: Path
    policy: str
    budget: int
    history: History
    explanation: Explanation

    @property
    def chosen(self) -> list[str]:
        return [self.history.arms[k] for k in np.flatnonzero(self.explanation.chosen)]

    @property
    def notes(self) -> list[str]:
        """What somebody should know who gave this file."""
        sizes = self.history.x.sum(axis=1)
        over = np.flatnonzero(sizes > self.budget)
        if not len(over):
            return list(self.history.notes)
        first = self.history.rounds[over[0]]
        many = f"{len(over):,} rounds chose" if len(over) > 1 else "one round chose"
        text = f"{many} more than {self.budget} arms (first {first}, with {sizes[over[0]]}): learned from all the same"
        return [*self.history.notes, text]

    def content(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "file": self.file,
            "policy": self.policy,
            "budget": self.budget,
            "round": self.history.following,
            "choose": self.chosen,
            "rounds": len(self.history.rounds),
            "arms": len(self.history.arms),
            "pending": self.history.pending,
            "notes": self.notes,
        }


def print_answer(answer: Answer) -> None:
    click.echo(f"choose {', '.join(answer.chosen)}")
    for note in answer.notes:
        click.echo(f"note: {note}")


def print_in_full(answer: Answer) -> None:
    print_answer(answer)
