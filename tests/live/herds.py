"""A herd of learners beside the single learners that it must equal, and operations that both of them get."""

from typing import Any

import numpy as np

import spillover as sp
from spillover.state import leaves
from tests.live.learners import content, plain

NAN = float("nan")
PROBLEM = sp.Problem(n_arms=4, budget=2, overall_range=(0.0, 20.0))


class Beside:
    """Learners in one batch, and the same learners one by one; every operation is done to both."""

    def __init__(self, policy: Any, problem: sp.Problem, count: int, *, seed: int = 0, **options: Any) -> None:
        seeds = [(7 * k + seed) % 11 for k in range(count)]  # some are equal
        self.herd = sp.Learners(policy, problem, seeds, **options)
        self.singles = [sp.Learner(policy, problem, seed=one, **options) for one in seeds]
        self.problem, self.draws = problem, np.random.default_rng(seed)

    def some(self) -> np.ndarray:
        """Some of the learners, in any order; at times all of them, or neighbours."""
        count = len(self.singles)
        kind = self.draws.integers(4)
        if kind == 0:
            return np.arange(count)
        if kind == 1:
            start = int(self.draws.integers(count))
            return np.arange(start, int(self.draws.integers(start, count)) + 1)
        return self.draws.permutation(count)[: self.draws.integers(1, count + 1)]

    def new_context(self, who: np.ndarray) -> Any:
        columns = self.problem.context
        return self.draws.normal(size=(len(who), columns)) if columns else None

    def choose(self, who: np.ndarray, available: bool) -> None:
        n, context = self.problem.n_arms, self.new_context(who)
        masks = self.draws.uniform(size=(len(who), n)) < 0.8 if available else None
        chosen = self.herd.choose(who, available=masks, context=context)
        for row, k in enumerate(who):
            given = {"available": None if masks is None else masks[row]}
            x = self.singles[k].choose(**given, context=None if context is None else context[row])
            np.testing.assert_array_equal(chosen[row], x)

    def play(self, who: np.ndarray, instead: bool, dosed: bool, told: bool = False) -> None:
        """told: whether the context was given with the choice."""
        shape, context = (len(who), self.problem.n_arms), None if told else self.new_context(who)
        x = self.draws.uniform(size=shape) < 0.5 if instead else None
        dose = self.draws.uniform(0.5, 2.0, size=shape) if dosed else None
        numbers = self.herd.play(who, x, context=context, dose=dose)
        for row, k in enumerate(who):
            given = {"x": x, "context": context, "dose": dose}
            assert numbers[row] == self.singles[k].play(**{a: None if v is None else v[row] for a, v in given.items()})

    def pending(self) -> list[tuple[int, int]]:
        return [(k, played) for k, single in enumerate(self.singles) for played in single.pending]

    def some_pending(self) -> list[tuple[int, int]]:
        """Some pending rounds in any order, also several of one learner."""
        pending = self.pending()
        order = self.draws.permutation(len(pending))
        return [pending[k] for k in order[: self.draws.integers(1, len(pending) + 1)]] if pending else []

    def outcome(self, k: int, played: int, parts: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rewards that spill over; with `parts` some of them, but never one of before with another value."""
        x, n = self.singles[k].waiting[played].x, self.problem.n_arms
        truth = np.random.default_rng([k, played])
        z = np.where(x, truth.uniform(size=n), 0.0)
        y = z + 0.3 * z[-1]
        if parts and self.problem.observes != "payoff":
            seen = self.draws.uniform(size=n) < 0.6
            seen[self.draws.integers(n)] = True
            z, y = np.where(seen, z, NAN), np.where(seen, y, NAN)
        return z, y

    def report(self, which: list[tuple[int, int]], parts: bool) -> None:
        if not which:
            return
        found = [self.outcome(k, played, parts) for k, played in which]
        rewards, y = (np.array(column) for column in zip(*found, strict=True))
        who, rounds = (np.array(column) for column in zip(*which, strict=True))
        z = rewards if self.problem.observes == "both" else [None] * len(which)
        y = y.sum(axis=-1) if self.problem.observes == "payoff" else y
        self.herd.report(who, rounds, rewards if self.problem.observes == "both" else None, y)
        for row, (k, played) in enumerate(which):
            self.singles[k].report(played, z[row], y[row])

    def close(self, which: list[tuple[int, int]]) -> None:
        if which:
            self.herd.close([k for k, _ in which], [played for _, played in which])
            for k, played in which:
                self.singles[k].close(played)

    def step(self, *, doses: bool = False) -> None:
        """An operation at random."""
        kind = self.draws.integers(8)
        if kind == 0:
            self.choose(self.some(), available=bool(self.draws.integers(2)))
        elif kind <= 3:
            who = self.some()
            told = bool(self.draws.integers(2))
            if told:
                self.choose(who, available=False)
            self.play(who, bool(kind == 3), doses and bool(self.draws.integers(2)), told)
        elif kind <= 6:
            self.report(self.some_pending(), parts=bool(self.draws.integers(2)))
        else:
            self.close(self.some_pending()[:1])

    def compare(self) -> None:
        """All that the learners keep is the same, bit for bit."""
        who, rounds = self.herd.pending
        assert list(zip(who.tolist(), rounds.tolist(), strict=True)) == self.pending()
        for k, single in enumerate(self.singles):
            assert content(self.herd.learner(k)) == content(single), f"learner {k}"


def everything(herd: sp.Learners) -> list[Any]:
    """All that the learners keep, as plain values that can be compared."""
    books = herd.books
    arrays = [books.rounds, books.absent, books.context, books.delay_totals, *leaves(herd.state).values()]
    who, rounds, places = books.waiting.everything()
    columns = {name: plain(column[places]) for name, column in books.waiting.columns.items()}
    given = {name: column for name, column in columns.items() if name == "x" or not is_blank(column)}
    return [*map(plain, arrays), plain(who), plain(rounds), given]


def is_blank(column: tuple[str, Any, bytes]) -> bool:
    """Whether a column of the table of pending rounds says nothing."""
    kind, _, content = column
    values = np.frombuffer(content, kind)
    return values.dtype.kind == "f" and bool(np.isnan(values).all())


def small_herd(policy: Any = None, rounds: int = 6, count: int = 3) -> sp.Learners:
    """Learners that have played 7 rounds: some outcomes are reported, some in part, and none of the last round."""
    beside, all_of_them = (
        Beside(sp.SwitchingSEM() if policy is None else policy, PROBLEM, count, seed=1),
        np.arange(count),
    )
    for _ in range(rounds):
        beside.play(all_of_them, instead=False, dosed=False)
        pending = beside.pending()
        beside.report(pending[::4], parts=False)
        beside.report([one for one in pending[1::4] if one in beside.pending()], parts=True)
    beside.play(all_of_them, instead=False, dosed=False)
    return beside.herd
