"""Why these arms: what each arm's score is made of, how close the decision was, and what a swap would change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, compile_rows
from spillover.contracts import EXPECTED_EFFECT
from spillover.reasons import words
from spillover.reasons.health import Pending, Signal, health, unproved
from spillover.reasons.paths import Network, Ways, solvable, ways_of
from spillover.types import Array, BoolArray, Explanation


@dataclass(frozen=True, kw_only=True)
class ArmReason:
    """One arm: direct + spilled_over + exploration = score."""

    arm: str
    position: int
    chosen: bool
    known: bool  # whether any outcome is behind the mean; else the whole score is exploration
    mean: float  # NaN while nothing is known
    count: float
    direct: float  # gain times mean: the effect on itself
    spilled_over: float  # (weight - gain) times mean: the effect on others
    exploration: float  # weight times (index - mean): what is added to find out more
    score: float
    exploration_share: float  # of the sizes of the three parts, 0 to 1
    gap: float  # of a chosen arm to the best that was not chosen, of another one to the worst that was
    ways: Ways


class Swap(NamedTuple):
    """One chosen arm given up for one that was not."""

    out: str
    into: str
    change: float  # of the sum of the scores
    expected_change: float  # the same without exploration; NaN where one of the two is not known


@dataclass(frozen=True, kw_only=True, eq=False)
class Reasons:
    """All there is to say about one decision; `print` it, or see `to_frame`, `to_dict` and `to_json`."""

    arms: tuple[ArmReason, ...]  # in the order of their positions
    swaps: tuple[Swap, ...]  # those that would change the sum of the scores for the best
    health: tuple[Signal, ...]
    planned: bool  # a plan (the start, a forced trial) decided, not the scores
    quantity: str  # what a score is
    budget: int
    flows: Array  # (n, n): what arm j is expected to pass on to arm i if the chosen arms are played; NaN: not known
    adjacency: Array  # (n, n); NaN: not known
    could_gain: float = np.nan  # how much more another set within the limits could score, at most; NaN: no question
    could_gain_share: float = np.nan  # the same as a share of the total of the chosen scores that are finite
    limited: bool = False  # whether constraints had a say: then it is not the highest scores that are chosen
    plan: str = ""  # why a plan decided, in the policy's words

    def __str__(self) -> str:
        return words.text(self)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(arm.arm for arm in self.arms)

    @property
    def proved(self) -> bool | None:
        """Whether the set is proved to be the best within the limits; None without limits, or by a plan or a draw."""
        return None if np.isnan(self.could_gain) else self.could_gain == 0

    def ranked(self) -> list[ArmReason]:
        """The chosen arms, then the others, each from the highest score down."""
        return sorted(self.arms, key=lambda arm: (not arm.chosen, -arm.score, arm.position))

    def to_frame(self) -> Any:
        """The arms as a pandas table, in the order of `ranked`."""
        return words.frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a service; None where a number is not finite."""
        return words.plain(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """The same as strict JSON."""
        return words.json_text(self, indent)


def reasons(
    explanation: Explanation,
    *,
    arms: Sequence[str] | None = None,
    budget: int | None = None,
    pending: Pending | None = None,
    constraints: Sequence[Constraint] = (),
    feasible: Callable[[BoolArray], bool] | None = None,
    signals: Mapping[str, Any] | None = None,
    quantity: str = EXPECTED_EFFECT,
    paths: int = 3,
    swaps: int = 5,
) -> Reasons:
    """Take one learner's explanation apart.

    arms: their names. budget: how many may be chosen (default: as many as were). pending: what is under way.
    constraints: only swaps that keep them are shown; `feasible(x)` says so where they are not given.
    signals: what the policy's `signals` says. quantity: what its scores are.
    paths, swaps: how many to name, of each arm and of the decision.

    >>> import spillover as sp
    >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1))
    >>> reasons(learner.explain()).arms[0].known
    False
    """
    n = check(explanation, paths, swaps)
    names = arm_names(arms, n)
    s = int(explanation.chosen.sum()) if budget is None else budget
    validate.whole("budget", s, 0, n)
    mean, known = known_means(explanation)
    direct, spilled, beyond = split(explanation, mean, known)
    network = Network(explanation.adjacency) if solvable(explanation.adjacency) else None
    gaps = distances(explanation.score, explanation.chosen)
    told = tuple(
        ArmReason(
            arm=names[j],
            position=j,
            chosen=bool(explanation.chosen[j]),
            known=bool(known[j]),
            mean=float(mean[j]) if known[j] else np.nan,
            count=float(explanation.count[j]),
            direct=float(direct[j]),
            spilled_over=float(spilled[j]),
            exploration=float(beyond[j]),
            score=float(explanation.score[j]),
            exploration_share=share(direct[j], spilled[j], beyond[j]),
            gap=float(gaps[j]),
            ways=ways_of(network, j, float(explanation.gain[j]), float(mean[j]), float(spilled[j]), paths),
        )
        for j in range(n)
    )
    allowed = feasible or feasibility(names, s, constraints)
    more, part = unproved(explanation, signals or {})
    return Reasons(
        arms=told,
        swaps=best_swaps(told, explanation.chosen, allowed, swaps),
        health=health(explanation, names, s, pending, signals or {}),
        planned=bool(explanation.planned),
        quantity=quantity,
        budget=s,
        flows=flows(explanation, mean),
        adjacency=np.array(explanation.adjacency),
        could_gain=more,
        could_gain_share=part,
        limited=bool(constraints) or feasible is not None,
        plan=str(np.asarray(explanation.plan)),
    )


def check(explanation: Explanation, paths: int, swaps: int) -> int:
    """The number of arms of one learner's explanation."""
    shape = np.shape(explanation.score)
    accepted = "(n,): one learner's; of a batch take one with spillover.state.take_replication before it explains"
    validate.require(len(shape) == 1, "shape of explanation.score", shape, accepted)
    validate.whole("paths", paths, 0)
    validate.whole("swaps", swaps, 0)
    return int(shape[0])


def arm_names(arms: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The names given, or "arm 1" and so on."""
    if arms is None:
        return tuple(f"arm {j + 1}" for j in range(n))
    names = () if isinstance(arms, str) else tuple(str(name) for name in arms)
    validate.require(len(names) == n and len(set(names)) == n, "arms", arms, f"{n} different names, one for each arm")
    return names


def known_means(explanation: Explanation) -> tuple[Array, BoolArray]:
    """The means, 0 for the arms of which nothing is known, and which arms are known."""
    known = np.isfinite(explanation.mean) & (explanation.count > 0)
    return np.where(known, explanation.mean, 0.0), known


def split(explanation: Explanation, mean: Array, known: BoolArray) -> tuple[Array, Array, Array]:
    """Direct, spilled over and exploration; of an arm of which nothing is known the whole score is exploration."""
    direct = explanation.gain * mean
    spilled = (explanation.weights - explanation.gain) * mean
    beyond = explanation.weights * (np.where(known, explanation.index, 0.0) - mean)
    return direct, spilled, np.where(known, beyond, explanation.score)


def share(direct: float, spilled: float, exploration: float) -> float:
    """How much of the sizes of the parts is exploration."""
    if not np.isfinite(exploration):
        return 1.0
    whole = abs(direct) + abs(spilled) + abs(exploration)
    return float(abs(exploration) / whole) if whole > 0 else 0.0


def distances(score: Array, chosen: BoolArray) -> Array:
    """From each chosen arm to the runner-up, from each other arm to the worst chosen; NaN where there is none."""
    best_left = np.max(score, where=~chosen, initial=-np.inf) if (~chosen).any() else np.nan
    worst_taken = np.min(score, where=chosen, initial=np.inf) if chosen.any() else np.nan
    other = np.where(chosen, best_left, worst_taken)
    return np.subtract(score, other, out=np.zeros_like(score), where=score != other)  # inf - inf is a tie


def flows(explanation: Explanation, mean: Array) -> Array:
    """A[i, j] times the level that arm j is expected to reach when the chosen arms are played."""
    if not solvable(explanation.adjacency):
        return np.full(explanation.adjacency.shape, np.nan)
    pushed = np.where(explanation.chosen, explanation.gain * mean, 0.0)
    level = np.linalg.solve(np.eye(len(mean)) - explanation.adjacency, pushed)
    return np.asarray(explanation.adjacency * level)


def feasibility(names: Sequence[str], budget: int, constraints: Sequence[Constraint]) -> Callable[[BoolArray], bool]:
    """Whether a decision keeps the constraints."""
    if not constraints:
        return lambda x: True
    rows = compile_rows(tuple(constraints), len(names), budget, tuple(names))
    return lambda x: bool(rows.holds(x))


def best_swaps(
    arms: Sequence[ArmReason], chosen: BoolArray, allowed: Callable[[BoolArray], bool], most: int
) -> tuple[Swap, ...]:
    """The feasible swaps that change the sum of the scores for the best, best first."""
    inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    score = np.array([arm.score for arm in arms])
    gains, losses = np.meshgrid(score[outside], score[inside])
    change = np.subtract(gains, losses, out=np.zeros_like(gains), where=gains != losses)
    found: list[Swap] = []
    for place in np.argsort(-change, axis=None, kind="stable"):
        if len(found) == most:
            break
        k, m = np.unravel_index(place, change.shape)
        out, into = arms[int(inside[k])], arms[int(outside[m])]
        x = chosen.copy()
        x[out.position], x[into.position] = False, True
        if allowed(x):
            known = into.known and out.known
            expected = into.direct + into.spilled_over - out.direct - out.spilled_over if known else np.nan
            found.append(Swap(out.arm, into.arm, float(change[k, m]), expected))
    return tuple(found)
