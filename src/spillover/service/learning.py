"""What a decision is made from: the learner that has learned a stream, kept so that the next decision need not wait."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from spillover.history import History
from spillover.history.replay import Checkpoints
from spillover.recommendation.choose import Learned, learned
from spillover.recommendation.question import Question
from spillover.service.histories import history_of, plain_history
from spillover.service.ledger import Ledger
from spillover.service.one_thread import one_thread
from spillover.service.shared_rows import SharedRows
from spillover.service.table import is_plain, learned_rounds
from spillover.types import Explanation

NOTICEABLE = 0.01  # seconds
PYTHON = 100_000  # bytes of a learner and its explanation besides the history


@dataclass(frozen=True, kw_only=True)
class Material:
    """What is to be learned: a copy, so that the stream may go on meanwhile."""

    version: int  # of the ledger
    history: History
    question: Question
    first_changed: int  # the first round that has changed since the copy before


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What was learned, ready to choose from."""

    version: int
    history: History
    learned: Learned
    explanation: Explanation  # of the next decision, without limits; an outline


@dataclass
class Learning:
    """What one stream has learned. It only saves time: without it, everything is learned again."""

    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    memory: SharedRows = field(default_factory=SharedRows)  # of the histories
    prepared: Prepared | None = None
    seconds: float = 0.0  # that the last preparation took
    keeps_checkpoints: bool = False  # where all is learned in no time, none are kept

    @property
    def worth_preparing(self) -> bool:
        """Whether the next decision would wait noticeably."""
        return self.seconds > NOTICEABLE

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        if self.prepared is None:
            return self.checkpoints.bytes
        return self.checkpoints.bytes + PYTHON + 2 * bytes_of(self.prepared.history)

    @property
    def known(self) -> History | None:
        """What was learned last."""
        return None if self.prepared is None else self.prepared.history

    def is_current(self, ledger: Ledger) -> bool:
        return self.prepared is not None and self.prepared.version == ledger.version

    def material(self, ledger: Ledger) -> Material:
        """What there is to learn of a stream."""
        labels = learned_rounds(ledger)
        unchanged = unchanged_rounds(ledger, labels)
        plain = is_plain(ledger.settings) and bool(labels)
        history = plain_history(ledger, labels, self.known, unchanged, self.memory) if plain else history_of(ledger)
        ledger.take_changed()  # only now that nothing can fail
        question = ledger.settings.question
        return Material(version=ledger.version, history=history, question=question, first_changed=unchanged)

    def prepare(self, material: Material) -> Prepared:
        """Learn what is new."""
        started = time.perf_counter()
        self.prepared = None
        self.checkpoints.forget(material.first_changed)
        with one_thread():
            way = self.checkpoints if self.keeps_checkpoints else None
            found = learned(material.history, material.question, checkpoints=way)
            explanation = found.learner.outline()
        self.prepared = Prepared(
            version=material.version, history=material.history, learned=found, explanation=explanation
        )
        self.seconds = time.perf_counter() - started
        self.keeps_checkpoints |= self.worth_preparing  # for good: to go on from one takes no time
        return self.prepared


def bytes_of(history: History) -> int:
    """About how much memory a history takes."""
    return sum(0 if part is None else part.nbytes for part in (history.x, history.z, history.y))


def can_prepare(ledger: Ledger) -> bool:
    """Whether a stream can be learned before the round to decide is known: not if that has context."""
    return not ledger.settings.context


def unchanged_rounds(ledger: Ledger, labels: Sequence[str]) -> int:
    """How many of the first rounds are as they were when `take_changed` was last called."""
    if ledger.changed is None:
        return len(labels)
    return bisect_left(labels, ledger.changed, key=lambda label: ledger.keys[ledger.rows[label]].value)
