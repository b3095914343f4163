"""Random lives of a stream: decisions, overrides, cancellations, outcomes late, in parts, twice, corrected and lost."""

from datetime import date, timedelta
from typing import Any

import numpy as np

from spillover.service import Outcome, Receipt, Service
from spillover.service.events import DecisionIssued

ARMS: tuple[tuple[str, ...], ...] = (
    ("radio", "video", "social", "mail"),
    ("arm 10", "arm 2", "Arm 1"),
    ("<script>", "a,b", 'quote"d', "x=1", "Ünï"),
    ("solo",),
)
CONTEXTS: tuple[list[str], ...] = ([], [], [], ["price"], ["price", "event"], ["trend"])
AGES: tuple[int | None, ...] = (None, None, 3)
POLICIES: tuple[tuple[str | None, tuple[str, ...]], ...] = (
    (None, ()),
    ("switching-sem", ()),
    ("ndc-sem", ("discount=0.9", "graph.sparsity=0.01")),
    ("cucb", ()),
    ("discounted-ts", ()),
    ("instrumental-sem", ()),
    ("glr-sem-ucb", ()),
    ("window-cucb", ()),
)


def random_settings(rng: np.random.Generator) -> dict[str, Any]:
    """Settings of a stream, of all kinds."""
    arms = ARMS[int(rng.integers(len(ARMS)))]
    observes = str(rng.choice(["both", "both", "own", "overall", "payoff"]))
    policy, values = POLICIES[int(rng.integers(len(POLICIES))) if observes == "both" else 0]
    context = CONTEXTS[int(rng.integers(len(CONTEXTS)))]
    limited = len(arms) > 2 and rng.random() < 0.3
    amounts = (bool(context) or observes in ("overall", "payoff")) and rng.random() < 0.4
    return {
        "arms": list(arms),
        "budget": int(rng.integers(1, min(len(arms), 3) + 1)),
        "observes": observes,
        "policy": policy if not context else None,
        "set": list(values) if not context else [],
        "reward_range": [0.0, 2.0] if rng.random() < 0.2 and observes == "both" else None,
        "overall_range": None,
        "context": context,
        "minimise": bool(rng.random() < 0.2),
        "limits": [{"kind": "exclusive", "arms": [arms[0], arms[1]], "label": "one of them"}] if limited else [],
        "greedy": bool(rng.random() < 0.1),
        "seed": int(rng.integers(3)),
        "max_age_rounds": AGES[int(rng.integers(3))],
        "doses": amounts,
    }


def outcome(label: str | int, arm: str | None, name: str, value: float) -> Outcome:
    """One value, z or y."""
    return Outcome(round=label, arm=arm, z=value if name == "z" else None, y=value if name == "y" else None)


def labels(rng: np.random.Generator, count: int) -> list[str]:
    """Names of rounds: numbers or dates, some left out."""
    steps = np.cumsum(rng.choice([1, 1, 1, 2], count)).tolist()
    if rng.random() < 0.5:
        return [str(step) for step in steps]
    return [(date(2026, 1, 1) + timedelta(step)).isoformat() for step in steps]


class Story:
    """A stream that lives through random events."""

    def __init__(self, service: Service, name: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.service, self.name = service, name
        self.settings = random_settings(self.rng)
        service.create_stream(name, self.settings)
        self.arms: list[str] = self.settings["arms"]
        self.waiting: list[tuple[str, str | None, str, float]] = []  # outcomes that are to be reported
        self.reported: list[tuple[str, str | None, str, int]] = []
        self.decided: list[str] = []

    def live(self, rounds: int) -> None:
        for label in labels(self.rng, rounds):
            self.decide(label)
            self.execute(label)
            for _ in range(int(self.rng.integers(0, 3))):
                self.report()
            if self.rng.random() < 0.2:
                self.correct()
            if self.rng.random() < 0.15:
                self.correct_execution()
            if self.rng.random() < 0.1:
                self.expire(label)
            if self.rng.random() < 0.05:
                self.service.change_settings(self.name, {"seed": int(self.rng.integers(5))})

    def context(self) -> dict[str, Any]:
        known = {
            "price": round(float(self.rng.normal(2, 0.5)), 2),
            "event": str(self.rng.choice(["none", "fair", "NA"])),
        }
        return {name: known[name] for name in self.settings["context"] if name in known}

    def decide(self, label: str) -> DecisionIssued:
        most = len(self.arms) - 1
        absent = [arm for arm in self.arms if self.rng.random() < 0.15][:most]
        decision = self.service.decide(self.name, label, unavailable=absent, context=self.context())
        self.decided.append(label)
        return decision.event

    def execute(self, label: str) -> None:
        turn = self.rng.random()
        if turn < 0.1:
            self.service.execute(self.name, label, cancelled=True)
            return
        if turn < 0.2:
            return  # nobody says what was done
        own = [arm for arm in self.arms if self.rng.random() < 0.5] if turn < 0.4 else None
        done = self.executed_with_amounts if self.settings["doses"] else self.executed
        self.expect(label, list(done(label, own).entry.content["event"]["chosen"]))

    def correct_execution(self) -> None:
        """Something else was done in an earlier round than was said, or nothing, or it did take place after all."""
        with self.service.open_streams.writing(self.name) as ledger:
            known = {label: len(seqs) for label, seqs in ledger.executions.items()}
        if not known:
            return
        label = str(self.rng.choice(list(known)))
        again: dict[str, Any] = {"revision": known[label] + 1, "reason": "a slip"}
        if self.rng.random() < 0.2:
            self.service.execute(self.name, label, cancelled=True, **again)
            self.waiting = [fact for fact in self.waiting if fact[0] != label]
            return
        own = [arm for arm in self.arms if self.rng.random() < 0.5]
        done = self.executed_with_amounts if self.settings["doses"] else self.executed
        self.expect(label, list(done(label, own, **again).entry.content["event"]["chosen"]))

    def executed(self, label: str, own: list[str] | None, **again: Any) -> Receipt:
        return self.service.execute(self.name, label, own, **again)

    def executed_with_amounts(self, label: str, own: list[str] | None, **again: Any) -> Receipt:
        arms = self.service.decision(self.name, label).event.chosen if own is None else own
        amounts = {arm: round(float(self.rng.uniform(1, 300)), 2) for arm in arms}
        return self.service.execute(self.name, label, amounts=amounts, **again)

    def expect(self, label: str, chosen: list[str]) -> None:
        """The outcomes of a round, of which some will never be reported."""
        strengths = {arm: 0.3 + 0.1 * k for k, arm in enumerate(self.arms)}
        own = {arm: float(np.clip(self.rng.normal(strengths[arm], 0.1), 0, 1)) for arm in chosen}
        total = sum(own.values())
        found: list[tuple[str, str | None, str, float]] = []
        if self.settings["observes"] == "payoff":
            found.append((label, None, "y", total + float(self.rng.normal(0, 0.1))))
        else:
            found += [(label, arm, "z", value) for arm, value in own.items()] if self.sees("own") else []
            if self.sees("overall"):
                found += [(label, arm, "y", own.get(arm, 0.0) + 0.2 * total) for arm in self.arms]
        self.waiting = [fact for fact in self.waiting if fact[0] != label]  # what was corrected may say otherwise
        self.waiting += [fact for fact in found if fact[:3] not in self.known(label) and self.rng.random() > 0.02]

    def known(self, label: str) -> set[tuple[str, str | None, str]]:
        """Values of a round that were reported."""
        return {(label, arm, name) for where, arm, name, _ in self.reported if where == label}

    def sees(self, what: str) -> bool:
        return self.settings["observes"] in ("both", what)

    def report(self) -> None:
        """Some of the outcomes that wait, in any order, some of them twice."""
        count = int(self.rng.integers(1, 3 * len(self.arms) + 1))
        self.rng.shuffle(self.waiting)
        now, self.waiting = self.waiting[:count], self.waiting[count:]
        if not now:
            return
        items = [outcome(label, arm, name, value) for label, arm, name, value in now]
        report = self.service.report(self.name, [*items, items[0]])
        assert report.statuses[-1].status in ("duplicate", "late")
        for (label, arm, name, _), status in zip(now, report.statuses, strict=False):
            assert status.status in ("recorded", "late"), status
            self.reported.append((label, arm, name, 1))

    def correct(self) -> None:
        with self.service.open_streams.writing(self.name) as ledger:
            played = {label: ledger.x[ledger.rows[label]] for label in ledger.order}
            there = [fact for fact in self.reported if fact[0] in played]
            there = [fact for fact in there if fact[2] == "y" or played[fact[0]][ledger.column(fact[1])]]
        if there:
            label, arm, name, _ = there[self.rng.integers(len(there))]
            with self.service.open_streams.writing(self.name) as ledger:
                last = int(ledger.revision[ledger.rows[label], ledger.column(arm)])
            value = round(float(self.rng.uniform(0, 1)), 3) if self.rng.random() < 0.9 else None
            self.service.correct(self.name, label, arm, {name: value}, revision=last + 1)

    def expire(self, label: str) -> None:
        with self.service.open_streams.writing(self.name) as ledger:
            there = ledger.took_place(label)
        if there:
            self.service.expire(self.name, label)
