"""A decision from what is known of a stream: the answer of `spillover next`, and what is stored of it."""

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from spillover.constraints import Unavailable
from spillover.recommendation.json_types import to_json_types
from spillover.recommendation.question import answer
from spillover.recommendation.result import Recommendation
from spillover.service.canonical import canonical_json, digest
from spillover.service.errors import naming
from spillover.service.events import DecisionIssued
from spillover.service.ledger import Ledger
from spillover.service.table import Coming, history_of

SOURCE = "-"  # the file that `next` reads in `export | next -`


class Decided(NamedTuple):
    """A decision: the event, and the whole answer as JSON."""

    event: DecisionIssued
    answer: str

    @property
    def attachment(self) -> bytes:
        return zlib.compress(self.answer.encode(), 6)


def recommend(ledger: Ledger, coming: Coming) -> Recommendation:
    """What to choose in a round; exactly what `spillover next` answers to the stream's export."""
    limits = (Unavailable(list(coming.unavailable)),) if coming.unavailable else ()
    question = ledger.settings.question
    asked = replace(question, constraints=(*question.constraints, *limits), round=coming.label)
    with naming(), threadpool_limits(1):
        return answer(history_of(ledger, coming), asked, source=SOURCE)


def decided(ledger: Ledger, coming: Coming) -> Decided:
    """Decide, and keep what the decision was made from."""
    assert coming.label is not None
    found = recommend(ledger, coming)
    whole = to_json_types(found.to_dict())
    text = canonical_json(whole)
    chosen = found.chosen
    rest = [arm.score for arm in found.reasons.arms if not arm.chosen]
    gap = min(arm.score for arm in chosen) - max(rest) if chosen and rest else math.nan
    event = DecisionIssued(
        round=coming.label,
        chosen=tuple(found.choose),
        unavailable=coming.unavailable,
        context=dict(coming.context),
        made_from={
            "seq": ledger.head.seq,
            "rounds": len(found.history.rounds),
            "outcomes": int(found.history.arrived.sum()),
            "seed": ledger.settings.seed,
            "settings": ledger.settings.digest,
            "version": version("spillover"),
        },
        scores={
            arm.arm: {
                "direct": finite(arm.direct),
                "spilled_over": finite(arm.spilled_over),
                "exploration": finite(arm.exploration),
                "score": finite(arm.score),
                "total": finite(arm.total),
                "interval": None if arm.total_interval is None else [finite(end) for end in arm.total_interval],
            }
            for arm in found.reasons.arms
        },
        gap=finite(gap),
        predicted=finite(sum(arm.total for arm in chosen) + baseline_of(found)),
        changes=found.changes,
        graph=digest(np.ascontiguousarray(np.nan_to_num(found.reasons.adjacency, nan=-1.0)).tobytes()),
        answer=digest(text),
    )
    return Decided(event, text)


def baseline_of(found: Recommendation) -> float:
    """What is expected in all if nothing is chosen, where that is estimated."""
    return sum(arm.baseline for arm in found.reasons.arms if math.isfinite(arm.baseline))


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def read_answer(attachment: bytes) -> dict[str, Any]:
    """The whole answer as it was given."""
    found: dict[str, Any] = json.loads(zlib.decompress(attachment))
    return found


def same_request(event: DecisionIssued, coming: Coming) -> bool:
    """Whether a decision answers this request."""
    return set(event.unavailable) == set(coming.unavailable) and same_context(event.context, coming.context)


def same_context(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return canonical_json(dict(one)) == canonical_json(dict(other))
