"""Explore-then-commit for network interference: Agarwal, Agarwal, Masoero and Whitehouse (2024), and NETC (2026)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import CorePolicy, Lesson, Turn, choose_top, inner, later, uniform
from spillover.rng import Rng
from spillover.types import Amount, Array, BoolArray, Constant, Finite, IntArray, Problem, Rounds
from spillover_studies.field.rivals.nodewise import RIDGE, backward, first_numbers, forward, take_root, unit_of

MOST_UNITS = 12


@inner
def explore(s: Any, turn: Turn, x: Any) -> None:
    """Each unit with probability 1/2; if these are more than the budget, some of them at random."""
    scores, second = turn.lines[0], later(turn)
    for i in range(x.shape[0]):
        scores[i] = uniform(second, i) + 1e-9 if uniform(turn, i) < 0.5 else 0.0
    choose_top(scores, s.budget, later(second), x)


class SetsState(NamedTuple):
    """What was seen of every set while exploring, and the set that is thought best."""

    rounds: Rounds
    n_arms: Constant[IntArray]
    budget: Constant[IntArray]
    reward_range: Constant[Array]  # (2,)
    unit: Constant[Array]
    near: Constant[BoolArray]  # (n, n): whose decisions an outcome depends on
    counts: Amount  # (2^n,)
    sums: Finite  # (2^n, n): of outcomes in units
    squares: Amount  # (n,): of each outcome, summed over all sets


@dataclass(frozen=True, kw_only=True)
class NetworkETC(CorePolicy):
    """Plays random sets for `explore` rounds, then the set with the highest estimated payoff.

    Outcomes count by the round of their decision: only those of the exploring rounds do, whenever they arrive, and each
    makes the estimate better. It goes on exploring while nothing is known. Knows whose decisions an outcome depends on:
    a regression on all Fourier characters of a unit's neighbours is the mean for each of their joint decisions. A joint
    decision that was not seen counts as the unit's mean.

    explore: rounds; the theory's (T 2^s)^(2/3) is far more than it needs in the worlds here.
    """

    explore: int = 300

    compiled = True
    traits = Traits(needs_rewards=False, knows_structure=True)

    def __post_init__(self) -> None:
        validate.whole("explore", self.explore, 1)

    def start(self, problem: Problem, rng: Rng) -> SetsState:
        n = problem.n_arms
        validate.require(n <= MOST_UNITS, "n_arms", n, f"at most {MOST_UNITS}: all sets are listed")
        near = np.ones((n, n), np.bool_)
        if self.traits.knows_structure:
            validate.require(problem.structure is not None, "structure", problem.structure, "known neighbours, (n, n)")
            near = np.isnan(np.asarray(problem.structure, float)) | np.eye(n, dtype=np.bool_)
        seen = {"near": near, "counts": np.zeros(2**n), "sums": np.zeros((2**n, n)), "squares": np.zeros(n)}
        return SetsState(**first_numbers(problem), unit=unit_of(problem), **seen)

    def prepare(self, s: Any) -> Any:
        size = s.counts.shape[0]
        return np.zeros(size), np.zeros(size), np.zeros(size)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        if lesson.round <= self.explore:
            number = 0
            for i in range(s.n_arms):
                number += int(lesson.x[i]) << i
            s.counts[number] += 1.0
            for i in range(s.n_arms):
                s.sums[number, i] += lesson.y[i] / s.unit
                s.squares[i] += (lesson.y[i] / s.unit) ** 2

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        if s.rounds < self.explore or not s.counts.any():
            explore(s, turn, x)
            return
        payoff, total, count = turn.room
        payoff[:] = 0.0
        for i in range(s.n_arms):
            add_means(s, i, payoff, total, count)
        play_best(payoff, s.budget, x)


@inner
def add_means(s: Any, i: int, payoff: Any, total: Any, count: Any) -> None:
    """Add to every set's payoff the mean outcome of unit i for the decisions about its neighbours."""
    mask, everything, rounds = 0, 0.0, 0.0
    for j in range(s.n_arms):
        mask += int(s.near[i, j]) << j
    total[:], count[:] = 0.0, 0.0
    for number in range(total.shape[0]):
        total[number & mask] += s.sums[number, i]
        count[number & mask] += s.counts[number]
        everything += s.sums[number, i]
        rounds += s.counts[number]
    for number in range(total.shape[0]):
        seen = number & mask
        payoff[number] += total[seen] / count[seen] if count[seen] > 0.0 else everything / rounds


@inner
def play_best(payoff: Any, budget: int, x: Any) -> None:
    """Play the feasible set with the highest payoff, the first of several."""
    best, n = 0, x.shape[0]
    for number in range(1, payoff.shape[0]):
        size = 0
        for i in range(n):
            size += (number >> i) & 1
        if size <= budget and payoff[number] > payoff[best]:
            best = number
    for i in range(n):
        x[i] = (best >> i) & 1 == 1


@dataclass(frozen=True, kw_only=True)
class SparseNetworkETC(NetworkETC):
    """The same without knowing the neighbours: a sparse regression on the Fourier characters of all sets.

    Characters are orthonormal under a design that takes each unit with probability 1/2, and the Lasso is then a
    threshold on each coefficient, which is how it is solved here; with a budget below n that is an approximation.

    threshold: in multiples of what the largest of all coefficients reaches by chance, sqrt(2 log 2^n) standard errors.
    """

    threshold: float = 1.0

    traits = Traits(needs_rewards=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.number("threshold", self.threshold, "a finite number >= 0", low=0, high=math.inf)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        if s.rounds < self.explore or not s.counts.any():
            explore(s, turn, x)
            return
        payoff, found = turn.room[0], turn.room[1]
        payoff[:], rounds = 0.0, s.counts.sum()
        least = self.threshold * math.sqrt(2.0 * math.log(found.shape[0]))
        for i in range(s.n_arms):
            mean = s.sums[:, i].sum() / rounds
            error = math.sqrt(max(s.squares[i] / rounds - mean**2, 0.0) / rounds)
            for number in range(found.shape[0]):
                found[number] = s.sums[number, i] / rounds
            transform(found)
            for k in range(1, found.shape[0]):
                size = abs(found[k]) - least * error
                found[k] = math.copysign(size, found[k]) if size > 0.0 else 0.0
            transform(found)
            for number in range(found.shape[0]):
                payoff[number] += found[number]
        play_best(payoff, s.budget, x)


@inner
def transform(values: Any) -> None:
    """The sum of values times each Fourier character (Walsh and Hadamard), in place."""
    step = 1
    while step < values.shape[0]:
        for first in range(0, values.shape[0], 2 * step):
            for k in range(first, first + step):
                one, other = values[k], values[k + step]
                values[k], values[k + step] = one + other, one - other
        step *= 2


class NETCState(NamedTuple):
    """Sums for a regression of all outcomes on the decision, and a constant."""

    rounds: Rounds
    n_arms: Constant[IntArray]
    budget: Constant[IntArray]
    reward_range: Constant[Array]  # (2,)
    unit: Constant[Array]
    gram: Finite  # (n + 1, n + 1)
    cross: Finite  # (n, n + 1): of each outcome, in units


@dataclass(frozen=True, kw_only=True)
class NETC(CorePolicy):
    """Explores by random sets, then plays the arms with the highest sums of effects that are not near 0.

    Wang, Bastani, Bastani and Ren (2026, arXiv:2605.27794): each outcome is linear in the decisions about few units.
    Their algorithm for an unknown structure, as far as its abstract tells: a ridge regression of each outcome whose
    coefficients count only above a threshold. Outcomes count as in `NetworkETC`.

    explore: rounds. threshold: in standard errors for outcomes with a deviation of one unit.
    """

    explore: int = 150
    threshold: float = 0.5

    compiled = True
    traits = Traits(needs_rewards=False)

    def __post_init__(self) -> None:
        validate.whole("explore", self.explore, 1)
        validate.number("threshold", self.threshold, "a finite number >= 0", low=0, high=math.inf)

    def start(self, problem: Problem, rng: Rng) -> NETCState:
        m, unit = problem.n_arms + 1, unit_of(problem)
        return NETCState(**first_numbers(problem), unit=unit, gram=np.zeros((m, m)), cross=np.zeros((m - 1, m)))

    def prepare(self, s: Any) -> Any:
        return np.zeros((s.n_arms + 1, s.n_arms + 1)), np.zeros(s.n_arms + 1)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        n = s.n_arms
        if lesson.round > self.explore:
            return
        for j in range(n + 1):
            if j == n or lesson.x[j]:
                for k in range(n + 1):
                    s.gram[j, k] += 1.0 if k == n or lesson.x[k] else 0.0
                for i in range(n):
                    s.cross[i, j] += lesson.y[i] / s.unit

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        n, scores = s.n_arms, turn.lines[0]
        if s.rounds < self.explore or s.gram[n, n] == 0.0:
            explore(s, turn, x)
            return
        root, found = turn.room
        take_root(s.gram, root)
        for j in range(n):
            scores[j] = 0.0
        for i in range(n):
            found[:] = s.cross[i]
            forward(root, found)
            backward(root, found)
            for j in range(n):
                if abs(found[j]) > self.threshold / math.sqrt(s.gram[j, j] + RIDGE):
                    scores[j] += found[j]
        choose_top(scores, s.budget, turn, x)
