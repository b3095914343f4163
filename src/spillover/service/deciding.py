"""A decision from what is known of a stream: the choice of `spillover next`, what is stored of it, and its reasons."""

import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from spillover.constraints import Unavailable
from spillover.history import History
from spillover.reasons.decision import known_means, split_scores
from spillover.recommendation.choose import Chosen, chosen, learned
from spillover.recommendation.decide import answer, changes_seen
from spillover.recommendation.question import Question, to_json_types
from spillover.service.canonical import canonical_json, digest
from spillover.service.errors import naming
from spillover.service.events import DecisionIssued
from spillover.service.histories import history_of, with_calendar
from spillover.service.learning import Learning, can_prepare
from spillover.service.ledger import Issued, Ledger
from spillover.service.one_thread import one_thread
from spillover.service.settings import Settings
from spillover.service.table import Coming, is_plain
from spillover.types import Explanation

SOURCE = "-"  # the file that `next` reads in `export | next -`
VERSION = version("spillover")


def question_of(settings: Settings, coming: Coming) -> Question:
    """What is asked for a round."""
    limits = (Unavailable(list(coming.unavailable)),) if coming.unavailable else ()
    question = settings.question
    return replace(question, constraints=(*question.constraints, *limits), round=coming.label)


def whole_answer(ledger: Ledger, coming: Coming) -> dict[str, Any]:
    """What `spillover next --json` answers to the stream's export: the choice with all reasons."""
    with naming(), one_thread():
        return answer_from(history_of(ledger, coming), question_of(ledger.settings, coming))


def answer_from(history: History, asked: Question, known: Chosen | None = None) -> dict[str, Any]:
    with naming(), one_thread():
        found = answer(history, asked, source=SOURCE, known=known)
    plain: dict[str, Any] = to_json_types(found.to_dict())
    return plain


class Made(NamedTuple):
    """A decision, and what it was made from."""

    history: History
    question: Question
    chosen: Chosen
    plain: bool  # whether the history has no calendar yet

    def answer(self) -> dict[str, Any]:
        """The same as `whole_answer`, without learning again."""
        history = with_calendar(self.history) if self.plain else self.history
        return answer_from(history, self.question, completed(self.chosen))


def made(ledger: Ledger, coming: Coming, learning: Learning) -> Made:
    """Decide as `whole_answer` does, but without what only people need."""
    asked = question_of(ledger.settings, coming)
    with naming(), one_thread():
        if can_prepare(ledger):
            current = learning.prepared if learning.is_current(ledger) else None
            ready = current or learning.prepare(learning.material(ledger))
            plain = is_plain(ledger.settings) and bool(ready.history.rounds)
            return Made(ready.history, asked, chosen(ready.learned, ready.history, asked, ready.explanation), plain)
        history = history_of(ledger, coming)
        learnt = learned(history, asked)
        return Made(history, asked, chosen(learnt, history, asked, learnt.learner.outline()), plain=False)


def completed(found: Chosen) -> Chosen:
    """The same choice with the intervals, which an outline leaves out; a regression has them already."""
    if found.by_regression:
        return found
    with one_thread():
        whole = found.learner.explain()
    return found._replace(decision=found.decision.completed(whole), alone=found.alone.completed(whole))


def issued(ledger: Ledger, coming: Coming, made: Made) -> DecisionIssued:
    """What is stored of a decision."""
    assert coming.label is not None
    history, found = made.history, made.chosen
    explanation, arms = found.decision, history.arms
    mean, known = known_means(explanation)
    direct, spilled, exploration = (part.tolist() for part in split_scores(explanation, mean, known))
    score, total = explanation.score.tolist(), [one + other for one, other in zip(direct, spilled, strict=True)]
    taken = sorted(np.flatnonzero(explanation.chosen).tolist(), key=lambda k: (-score[k], k))
    rest = [score[k] for k in np.flatnonzero(~explanation.chosen).tolist()]
    parts = {"direct": direct, "spilled_over": spilled, "exploration": exploration, "score": score, "total": total}
    return DecisionIssued(
        round=coming.label,
        chosen=tuple(arms[k] for k in taken),
        unavailable=coming.unavailable,
        context=dict(coming.context),
        made_from={
            "seq": ledger.head.seq,
            "rounds": len(history.rounds),
            "outcomes": int(history.arrived.sum()),
            "seed": ledger.settings.seed,
            "settings": ledger.settings.digest,
            "version": VERSION,
        },
        policy=found.policy,
        scores={arm: {name: finite(part[k]) for name, part in parts.items()} for k, arm in enumerate(arms)},
        gap=finite(score[taken[-1]] - max(rest)) if taken and rest else None,
        predicted=finite(sum(total[k] for k in taken) + baseline_of(explanation)),
        changes=changes_seen(found.learner),
        graph=digest(np.ascontiguousarray(np.nan_to_num(explanation.adjacency, nan=-1.0)).tobytes()),
    )


class Kept(NamedTuple):
    """What is kept of a whole answer."""

    attachment: bytes
    intervals: dict[str, Any]


def kept(answer: Callable[[], dict[str, Any]]) -> Kept:
    whole = answer()
    return Kept(packed(whole), intervals_of(whole))


def intervals_of(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The 95% interval of every arm's total effect, from a whole answer; None where there is none."""
    return {arm["arm"]: arm["total_interval"] for arm in whole["reasons"]["arms"]}


def baseline_of(explanation: Explanation) -> float:
    """What is expected in all if nothing is chosen, where that is estimated."""
    values: list[float] = [] if explanation.baseline is None else explanation.baseline.tolist()
    return sum(value for value in values if math.isfinite(value))


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def packed(whole: Mapping[str, Any]) -> bytes:
    """An answer as it is kept."""
    return zlib.compress(canonical_json(whole).encode(), 6)


def unpacked(attachment: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(attachment))
    return found


def same_request(issued: Issued, coming: Coming) -> bool:
    """Whether a decision answers this request."""
    same_context = canonical_json(issued.context) == canonical_json(dict(coming.context))
    return set(issued.unavailable) == set(coming.unavailable) and same_context
