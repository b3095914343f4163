"""Feedback in any order, twice, wrong and then corrected, or lost: the same state, bit for bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillover.service import Service
from spillover.service.tables import history_of
from tests.properties import COMMON, examples
from tests.service.memory_log import MemoryLog
from tests.service.stories import outcome

ARMS = ("a", "b", "c")
Facts = list[tuple[int, str | None, str, float]]


def facts_of(rng: np.random.Generator, observes: str, rounds: int) -> tuple[dict[int, list[str]], Facts]:
    """What was executed, and what came out of it as far as it is not lost."""
    chosen = {t: [arm for arm in ARMS if rng.random() < 0.6] for t in range(1, rounds + 1)}
    facts: Facts = []
    for t, arms in chosen.items():
        if observes == "payoff":
            facts.append((t, None, "y", float(rng.random())))
            continue
        facts += [(t, arm, "z", float(rng.random())) for arm in arms if observes == "both"]
        facts += [(t, arm, "y", float(rng.random())) for arm in ARMS]
    return chosen, [fact for fact in facts if rng.random() > 0.05]


def told(observes: str, chosen: dict[int, list[str]], facts: Facts, rng: np.random.Generator | None) -> dict[str, Any]:
    """The state after all facts: in order, or as the generator shuffles, repeats and corrects them."""
    service = Service(MemoryLog())
    service.create_stream("s", {"arms": list(ARMS), "budget": 2, "observes": observes})
    rounds = list(chosen)
    if rng is not None:
        rng.shuffle(rounds)
    slips = [] if rng is None else [t for t in rounds if rng.random() < 0.2]
    for t in rounds:
        service.execute("s", t, ["a"] if t in slips else chosen[t])
    for t in slips:
        service.execute("s", t, chosen[t], revision=2)
    if rng is None:
        for t, arm, name, value in facts:
            service.report("s", [outcome(t, arm, name, value)])
    else:
        disorderly(service, facts, rng)
    history = history_of(service.open_streams.ledger_at("s", None))
    decision = service.decide("s", len(chosen) + 1).event.to_dict()
    decision["made_from"] = {name: value for name, value in decision["made_from"].items() if name != "seq"}
    arrays = {name: None if (v := vars(history)[name]) is None else v.tobytes() for name in ("x", "z", "y", "arrived")}
    return {"decision": decision, "answer": service.explain("s", len(chosen) + 1), **arrays}


def disorderly(service: Service, facts: Facts, rng: np.random.Generator) -> None:
    """Report facts shuffled, in batches, some twice, some wrong at first and corrected later."""
    order = [facts[k] for k in rng.permutation(len(facts))]
    wrong: list[tuple[int, str | None, str, float]] = []
    while order:
        count = int(rng.integers(1, 6))
        batch, order = order[:count], order[count:]
        items = []
        for fact in batch:
            t, arm, name, value = fact
            if rng.random() < 0.15:
                wrong.append(fact)
                value = value / 2
            items.append(outcome(t, arm, name, value))
        service.report("s", items)
        if rng.random() < 0.4:
            service.report("s", items)  # again
        if wrong and rng.random() < 0.5:
            correct(service, wrong.pop())
    while wrong:
        correct(service, wrong.pop())


def correct(service: Service, fact: tuple[int, str | None, str, float]) -> None:
    t, arm, name, value = fact
    with service.open_streams.writing("s") as ledger:
        last = int(ledger.revision[ledger.rows[str(t)], ledger.column(arm)])
    service.correct("s", t, arm, {name: value}, revision=last + 1)


def order_does_not_matter(seed: int, observes: str, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    chosen, facts = facts_of(rng, observes, rounds)
    assert told(observes, chosen, facts, None) == told(observes, chosen, facts, rng)


OBSERVES = st.sampled_from(["both", "both", "overall", "payoff"])


@examples(15)
@given(seed=st.integers(0, 2**32 - 1), observes=OBSERVES)
def test_the_order_of_arrival_does_not_matter(seed, observes) -> None:
    order_does_not_matter(seed, observes, 6)


@pytest.mark.long
@settings(COMMON, max_examples=10_000, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), observes=OBSERVES, rounds=st.integers(1, 15))
def test_the_order_of_arrival_does_not_matter_in_ten_thousand_cases(seed, observes, rounds) -> None:
    order_does_not_matter(seed, observes, rounds)
