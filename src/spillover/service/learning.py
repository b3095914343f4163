"""What a decision is made from: the learner that has learned a stream, kept so that the next decision need not wait."""

import time
from bisect import bisect_left
from dataclasses import dataclass, field

from threadpoolctl import threadpool_limits

from spillover.history import History
from spillover.history.baseline import shows_baseline
from spillover.history.check import outcomes
from spillover.history.checkpoints import Checkpoints
from spillover.recommendation.choose import Chosen, Learned
from spillover.recommendation.question import Question, chosen, learned
from spillover.service.ledger import Ledger
from spillover.service.table import Coming, history_of, learned_rounds
from spillover.types import Explanation

NOTICEABLE = 0.01  # seconds


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
    explanation: Explanation  # of the next decision, without limits


@dataclass
class Learning:
    """What one stream has learned. It only saves time: without it, everything is learned again."""

    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    prepared: Prepared | None = None
    seconds: float = 0.0  # that the last preparation took

    @property
    def worth_preparing(self) -> bool:
        """Whether the next decision would wait noticeably."""
        return self.seconds > NOTICEABLE

    def prepare(self, material: Material) -> Prepared:
        """Learn what is new."""
        self.checkpoints.forget(material.first_changed)
        if self.prepared is None or self.prepared.version != material.version:
            started = time.perf_counter()
            self.prepared = None
            with threadpool_limits(1):
                found = learned(material.history, material.question, self.checkpoints)
                explanation = found.learner.explain()
            self.prepared = Prepared(
                version=material.version, history=material.history, learned=found, explanation=explanation
            )
            self.seconds = time.perf_counter() - started
        return self.prepared


def can_prepare(ledger: Ledger) -> bool:
    """Whether a stream can be learned before the round to decide is known: not if that has context."""
    return not ledger.settings.context


def material_of(ledger: Ledger) -> Material:
    """What there is to learn of a stream."""
    plain = ledger.settings.sees_own
    labels = learned_rounds(ledger)
    changed = ledger.take_changed()
    values = [ledger.keys[ledger.rows[label]].value for label in labels]
    return Material(
        version=ledger.version,
        history=plain_history(ledger, labels) if plain and labels else history_of(ledger),
        question=ledger.settings.question,
        first_changed=len(labels) if changed is None else bisect_left(values, changed),
    )


def plain_history(ledger: Ledger, labels: list[str]) -> History:
    """The history of a stream with own rewards as far as a policy learns from it, without notes for people.

    The cells become a history by the functions that read them from a file.
    """
    settings, rows = ledger.settings, [ledger.rows[label] for label in labels]
    x = ledger.x[rows]
    found = outcomes(x, ledger.z[rows], ledger.y[rows] if settings.sees_overall else None, labels)
    sign = -1.0 if settings.minimise else 1.0
    has_overall = settings.sees_overall
    return History(
        arms=settings.arms,
        rounds=tuple(labels),
        x=x,
        z=sign * found.z,
        y=sign * found.y,
        arrived=found.arrived,
        has_overall=has_overall,
        following=None,
        notes=(),
        minimise=settings.minimise,
        has_baseline=has_overall and shows_baseline(x, found.z, found.y, found.arrived),
    )


def choose_now(prepared: Prepared, question: Question) -> Chosen:
    """The choice from what was prepared."""
    with threadpool_limits(1):
        return chosen(prepared.learned, prepared.history, question, prepared.explanation)


def choose_with_context(ledger: Ledger, coming: Coming, question: Question) -> tuple[Chosen, History]:
    """The choice for a round whose context is part of what is learned."""
    history = history_of(ledger, coming)
    with threadpool_limits(1):
        return chosen(learned(history, question), history, question), history
