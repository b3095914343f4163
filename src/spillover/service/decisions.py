"""A decision from what is known of a stream: the choice of `spillover next`, what is stored of it, and its reasons."""

import json
import math
import random
import threading
import time
import zlib
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from spillover.constraints import Unavailable
from spillover.core.ahead import compile_apart, is_missing
from spillover.history import History
from spillover.history.replay import Checkpoints
from spillover.policies import InstrumentalSEM, PayoffRegression, SwitchingSEM
from spillover.reasons.decision import known_means, split_scores
from spillover.recommendation.decide import (
    Chosen,
    Learned,
    Question,
    answer,
    changes_seen,
    chosen,
    learned,
    to_json_types,
)
from spillover.service.errors import naming
from spillover.service.events import DecisionIssued, RoundsImported, StreamCreated, canonical_json, digest
from spillover.service.ledger import Issued, Ledger
from spillover.service.settings import Settings
from spillover.service.tables import Coming, history_of, learned_rounds, plain_history, with_calendar
from spillover.types import Explanation

SOURCE = "-"  # the file that `next` reads in `export | next -`
VERSION = version("spillover")
NOTICEABLE = 0.01  # seconds
PYTHON = 100_000  # bytes of a learner and its explanation besides the history


# --- learning --------------------------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """What was learned, ready to choose from."""

    version: int  # of the ledger
    history: History
    learned: Learned
    explanation: Explanation  # of the next decision, without limits


@dataclass
class Learning:
    """What one stream has learned. It only saves time: without it, everything is learned again."""

    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    prepared: Prepared | None = None
    keeps_checkpoints: bool = False  # where all is learned in no time, none are kept

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        history = None if self.prepared is None else self.prepared.history
        parts = () if history is None else (history.x, history.z, history.y)
        size = sum(part.nbytes for part in parts if part is not None)
        return self.checkpoints.bytes + (PYTHON + 2 * size if parts else 0)

    def current(self, ledger: Ledger) -> Prepared:
        """What there is to learn of a stream, learned."""
        if self.prepared is None or self.prepared.version != ledger.version:
            self.prepared = self.prepare(ledger, self.prepared)
        return self.prepared

    def prepare(self, ledger: Ledger, before: Prepared | None) -> Prepared:
        started = time.perf_counter()
        self.prepared = None
        labels, question = learned_rounds(ledger), ledger.settings.question
        unchanged = unchanged_rounds(ledger, labels)
        if ledger.settings.plain and labels:
            known = None if before is None else before.history
            history = plain_history(ledger, labels, known, unchanged)
        else:
            history = history_of(ledger)
        ledger.take_changed()  # only now that nothing can fail
        self.checkpoints.forget(unchanged)
        way = self.checkpoints if self.keeps_checkpoints else None
        found = learned(history, question, checkpoints=way)
        prepared = Prepared(ledger.version, history, found, found.learner.explain())
        # for good: to go on from one takes no time
        self.keeps_checkpoints |= time.perf_counter() - started > NOTICEABLE
        return prepared


def can_prepare(ledger: Ledger) -> bool:
    """Whether a stream can be learned before the round to decide is known: not if that has context."""
    return not ledger.settings.context


def unchanged_rounds(ledger: Ledger, labels: list[str]) -> int:
    """How many of the first rounds are as they were when `take_changed` was last called."""
    if ledger.changed is None:
        return len(labels)
    return bisect_left(labels, ledger.changed, key=lambda label: ledger.keys[ledger.rows[label]].value)


# --- deciding --------------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """A decision, and what it was made from."""

    history: History
    question: Question
    chosen: Chosen
    plain: bool  # whether the history has no calendar yet

    def answer(self) -> dict[str, Any]:
        """The same as `whole_answer`, without learning again."""
        history = with_calendar(self.history) if self.plain else self.history
        return answer_from(history, self.question, self.chosen)


def made(ledger: Ledger, coming: Coming, learning: Learning) -> Made:
    """Decide as `whole_answer` does, but without what only people need."""
    asked = question_of(ledger.settings, coming)
    with naming():
        if can_prepare(ledger):
            ready = learning.current(ledger)
            plain = ledger.settings.plain and bool(ready.history.rounds)
            return Made(ready.history, asked, chosen(ready.learned, ready.history, asked, ready.explanation), plain)
        history = history_of(ledger, coming)
        found = learned(history, asked)
        return Made(history, asked, chosen(found, history, asked, found.learner.explain()), plain=False)


def question_of(settings: Settings, coming: Coming) -> Question:
    """What is asked for a round."""
    limits = (Unavailable(list(coming.unavailable)),) if coming.unavailable else ()
    question = settings.question
    return replace(question, constraints=(*question.constraints, *limits), round=coming.label)


def whole_answer(ledger: Ledger, coming: Coming) -> dict[str, Any]:
    """What `spillover next --json` answers to the stream's export: the choice with all reasons."""
    with naming():
        return answer_from(history_of(ledger, coming), question_of(ledger.settings, coming))


def answer_from(history: History, asked: Question, known: Chosen | None = None) -> dict[str, Any]:
    with naming():
        found = answer(history, asked, source=SOURCE, known=known)
    plain: dict[str, Any] = to_json_types(found.to_dict())
    return plain


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
    known_ends = explanation.total_interval is not None
    intervals = explanation.total_interval.tolist() if known_ends else [(math.nan, math.nan)] * len(arms)
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
        scores={
            arm: {name: finite(part[k]) for name, part in parts.items()}
            | {"interval": intervals[k] if all(map(math.isfinite, intervals[k])) else None}
            for k, arm in enumerate(arms)
        },
        gap=finite(score[taken[-1]] - max(rest)) if taken and rest else None,
        predicted=finite(sum(total[k] for k in taken) + baseline_of(explanation)),
        changes=changes_seen(found.learner),
        graph=digest(known_edges(explanation.adjacency).tobytes()),
    )


def known_edges(adjacency: Any) -> Any:
    """An estimated graph with -1 for edges of which nothing is known."""
    return np.ascontiguousarray(adjacency if np.isfinite(adjacency).all() else np.nan_to_num(adjacency, nan=-1.0))


def baseline_of(explanation: Explanation) -> float:
    """What is expected in all if nothing is chosen, where that is estimated."""
    values: list[float] = [] if explanation.baseline is None else explanation.baseline.tolist()
    return sum(value for value in values if math.isfinite(value))


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def packed(whole: Mapping[str, Any]) -> bytes:
    """An answer as it is kept."""
    return zlib.compress(canonical_json(whole).encode(), 6)


def unpacked(content: bytes) -> dict[str, Any] | None:
    """The answer that was kept; None if it is damaged."""
    try:
        found: dict[str, Any] = json.loads(zlib.decompress(content))
    except (zlib.error, ValueError):
        return None
    return found


def same_request(issued: Issued, coming: Coming) -> bool:
    """Whether a decision answers this request."""
    same_context = canonical_json(issued.context) == canonical_json(dict(coming.context))
    return set(issued.unavailable) == set(coming.unavailable) and same_context


# --- how it is computed ----------------------------------------------------------------------------------------------


class OneThread:
    """Linear algebra on one thread, as in `spillover next`: the same bits on every machine.

    Matrices are small: with two threads a decision among 100 arms takes six times as much of the processor. The limit
    holds for the whole process, from the first service that is opened to the last one that is closed.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limit: Any = None

    def enter(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = controller().limit(limits=1)
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.restore_original_limits()


ONE_THREAD = OneThread()


@cache
def controller() -> Any:
    """Knows the libraries that are loaded; to look for them takes longer than a decision."""
    import scipy.linalg  # so that its library is among them  # noqa: F401

    return ThreadpoolController()


POLICIES = (SwitchingSEM, InstrumentalSEM, PayoffRegression)  # those of streams that name none
ARMS = ("a", "b", "c", "d")
ROUNDS = 40


def warm_up(stopped: threading.Event, say: Callable[[str], None] = lambda words: None) -> None:
    """Compile and load what decisions need: what is not in the cache in other processes; then decide in small streams.

    stopped: set to end it early. say: is told what takes long.
    """
    policies = [policy() for policy in POLICIES if is_missing(policy())]
    if policies:
        say("compiling what decisions need, about a minute, once only: until then decisions wait for it")
    for policy in policies:
        compile_apart(policy, stopped)
    for observes in ("both", "overall", "payoff"):
        if not stopped.is_set():
            decide_in(Settings.stored({"arms": ARMS, "budget": 2, "observes": observes}))


def decide_in(settings: Settings) -> None:
    """Decide in a stream without rounds, and with some; without limits, and with one; with all reasons."""
    ledger, learning, coming = Ledger("warm-up"), Learning(), Coming(str(ROUNDS + 1), {})
    ledger.take(StreamCreated(settings=settings.to_dict()), 1)
    rounds = tuple(rounds_of(settings))
    for seq, known in enumerate(((), rounds[:1], rounds[1:]), 2):  # one round alone is learned in another way than many
        ledger.take(RoundsImported(source="", rounds=known), seq)
        ledger.version = seq
        made(ledger, coming, learning)
    for unavailable in ((), ARMS[:1]):
        found = made(ledger, coming._replace(unavailable=unavailable), learning)
        issued(ledger, coming, found)
        found.answer()


def rounds_of(settings: Settings) -> list[dict[str, object]]:
    """Rounds with noise in their outcomes, the first one with a part of them."""
    draw = random.Random(0)
    found: list[dict[str, object]] = []
    for number in range(1, ROUNDS + 1):
        chosen = draw.sample(ARMS, settings.budget)
        z = [draw.random() if arm in chosen else None for arm in ARMS] if settings.sees_own else None
        y: list[float | None] = [draw.random() for _ in (ARMS if settings.sees_overall else ARMS[:1])]
        if number == 1:
            y[0] = None
        found.append({"round": str(number), "chosen": chosen, "context": {}, "z": z, "y": y})
    return found
