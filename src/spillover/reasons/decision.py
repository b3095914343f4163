"""Why these arms: the parts of each arm's score, how close the decision was, and what a swap would change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, compile_rows
from spillover.contracts import EXPECTED_EFFECT
from spillover.formatting import Interval, Shown, interval_of, view_of
from spillover.reasons import render
from spillover.reasons.health import EFFORT_HINT, Pending, Signal, health, unproved
from spillover.reasons.paths import Network, Ways, all_arms, between, expected_flows, followed_arms, solvable, ways_of
from spillover.types import Array, BoolArray, Explanation, IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SWAPPED = 1_000  # arms on each side that swaps are looked for among
PAIRS = ("effects", "effects_interval", "edge_probability", "edge_interval")  # what is known of pairs of arms


@dataclass(frozen=True, kw_only=True)
class ArmReason:
    """One arm: direct + spilled_over + exploration = score.

    >>> import spillover as sp
    >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), seed=1)
    >>> for z in ([0.6, 0], [0, 0.5]):
    ...     learner.report(learner.play(np.array(z) > 0), z=z, y=z)
    >>> first = learner.reasons(["web", "radio"]).arms[0]
    >>> bool(np.isclose(first.direct + first.spilled_over + first.exploration, first.score))
    True
    """

    arm: str
    position: int
    chosen: bool
    known: bool  # whether the mean rests on any outcome; if not, the whole score is exploration
    mean: float  # NaN for an arm without data
    count: float
    direct: float  # gain times mean: the effect on itself
    spilled_over: float  # (weight - gain) times mean: the effect on others
    exploration: float  # weight times (index - mean): the exploration bonus
    score: float
    exploration_share: float  # |exploration| over the sum of the sizes of the three parts, 0 to 1
    gap: float  # from a chosen arm to the best arm not chosen, from any other arm to the worst chosen one
    ways: Ways
    direct_interval: Interval | None = None  # 95% credible intervals; None where the policy has none
    spill_interval: Interval | None = None
    total_interval: Interval | None = None  # of direct + spilled_over
    baseline: float = np.nan  # expected outcome of the arm if nothing is chosen; NaN: not estimated
    context_effect: float = np.nan  # the part of the mean that the context adds; NaN: not estimated
    own_effect: float = np.nan  # on its own outcome, with what comes back to it around cycles; NaN: not estimated

    @property
    def on_itself(self) -> float:
        """The effect of choosing the arm on its own outcome: what `direct_interval` is about."""
        return self.own_effect if self.known and np.isfinite(self.own_effect) else self.direct

    @property
    def on_others(self) -> float:
        """The effect of choosing the arm on all other outcomes: what `spill_interval` is about."""
        return self.total - self.on_itself

    @property
    def total(self) -> float:
        """The expected effect on the sum of all outcomes, without exploration."""
        return self.direct + self.spilled_over


class Swap(NamedTuple):
    """One chosen arm replaced by one that was not chosen.

    >>> Swap(out="radio", into="posters", change=-0.1, expected_change=0.02).into
    'posters'
    """

    out: str
    into: str
    change: float  # in the sum of the scores
    expected_change: float  # the same without exploration; NaN if one of the two arms has no data


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reasons(Shown):
    """Why one decision was made: `print` it, or see `plot`, `to_frame`, `to_dict` and `to_json`.

    >>> import spillover as sp
    >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2), seed=1)
    >>> for z in ([0.6, 0.4, 0], [0, 0.5, 0.3], [0.7, 0, 0.2]):
    ...     learner.report(learner.play(np.array(z) > 0), z=z, y=z)
    >>> reasons = learner.reasons(["web", "radio", "posters"])
    >>> [arm.arm for arm in reasons.ranked() if arm.chosen]
    ['web', 'radio']
    """

    view = "spillover.views:ReasonsView"

    arms: tuple[ArmReason, ...]  # in the order of their positions
    swaps: tuple[Swap, ...]  # the ones with the largest change, best first
    health: tuple[Signal, ...]
    plan: str  # why a plan (the initialisation, a forced trial) decided; "" where the scores did
    quantity: str  # what a score measures
    budget: int
    # what arm j is expected to pass on to arm i if the chosen arms are played; NaN: not known
    flows: Any  # (n, n), sparse if `adjacency` is
    adjacency: Any  # (n, n); NaN: not known. A `scipy.sparse.csr_array` with more than 2,000 arms
    could_gain: float = np.nan  # how much more another feasible set could score at most; NaN: nothing was searched
    could_gain_share: float = np.nan  # the same as a share of the sum of the chosen arms' finite scores
    constrained: bool = False  # whether there are constraints; if so, the highest scores need not be chosen
    effects: Any = None  # (n, n): [i, j] is the effect of choosing j on the outcome of i; None: not estimated
    effects_interval: Any = None  # (n, n, 2)
    edge_probability: Any = None  # (n, n): posterior probability that an edge exists
    edge_interval: Any = None  # (n, n, 2)

    def to_networkx(self, *, threshold: float = 0.0) -> Any:
        """The estimated graph as a `networkx.DiGraph`, with the names of the arms.

        >>> import spillover as sp
        >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), arms=["tv", "radio"])
        >>> list(learner.reasons().to_networkx())
        ['tv', 'radio']
        """
        from spillover.tabular import to_networkx

        return to_networkx(self.adjacency, [arm.arm for arm in self.arms], threshold=threshold)

    def __str__(self) -> str:
        return render.to_text(self)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(arm.arm for arm in self.arms)

    @property
    def planned(self) -> bool:
        """Whether a plan decided instead of the scores."""
        return self.plan != ""

    @property
    def proved(self) -> bool | None:
        """Whether the set is proved to be optimal under the constraints.

        None without constraints, and where a plan or a random draw decided.
        """
        return None if np.isnan(self.could_gain) else self.could_gain == 0

    def ranked(self) -> list[ArmReason]:
        """The chosen arms, then the others, each by decreasing score."""
        return sorted(self.arms, key=lambda arm: (not arm.chosen, -arm.score, arm.position))

    def plot(self) -> "Figure":
        """The graph with what spills over, and the parts of each arm's score.

        >>> import spillover as sp
        >>> sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2)).reasons().plot().axes[1].get_title()
        'the parts of each score'
        """
        drawn: Figure = view_of(self.view, self).plot()
        return drawn

    def to_frame(self) -> Any:
        """The arms as a pandas table, in the order of `ranked`."""
        return render.to_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, such as a service returns; None where a number is not finite."""
        return render.to_dict(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """The same as strict JSON."""
        return render.to_json(self, indent)


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
    effort_hint: str = EFFORT_HINT,
) -> Reasons:
    """Take the explanation of one learner apart.

    arms: their names. budget: how many may be chosen (default: as many as were). pending: the outcomes to come.
    constraints: only swaps that satisfy them are listed; `feasible(x)` is used instead where it is given.
    signals: what the policy's `signals` returns. quantity: what its scores measure.
    paths, swaps: how many paths to list for each arm, and how many swaps.
    effort_hint: how to search longer, in the sentence that says that the set is not proved to be optimal.

    >>> import spillover as sp
    >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1))
    >>> reasons(learner.explain()).arms[0].known
    False
    """
    n = check_arguments(explanation, paths, swaps)
    names = arm_names(arms, n)
    s = int(explanation.chosen.sum()) if budget is None else budget
    validate.whole("budget", s, 0, n)
    mean, known = known_means(explanation)
    direct, spilled, bonus = split_scores(explanation, mean, known)
    followed = followed_arms(explanation)
    edges = between(explanation.adjacency, followed)
    network = Network(edges) if solvable(edges) else None
    place = {int(j): k for k, j in enumerate(followed)}
    gaps = score_gaps(explanation.score, explanation.chosen)
    arm_reasons = tuple(
        ArmReason(
            arm=names[j],
            position=j,
            chosen=bool(explanation.chosen[j]),
            known=bool(known[j]),
            mean=float(mean[j]) if known[j] else np.nan,
            count=float(explanation.count[j]),
            direct=float(direct[j]),
            spilled_over=float(spilled[j]),
            exploration=float(bonus[j]),
            score=float(explanation.score[j]),
            exploration_share=exploration_share(direct[j], spilled[j], bonus[j]),
            gap=float(gaps[j]),
            ways=all_arms(
                ways_of(network, place.get(j), float(explanation.gain[j]), float(mean[j]), float(spilled[j]), paths),
                followed,
            ),
            **{name: interval_of(getattr(explanation, name), j) for name in render.INTERVALS},
            baseline=value_of(explanation.baseline, j),
            context_effect=value_of(explanation.context_effect, j),
            own_effect=value_of(None if explanation.effects is None else np.diagonal(explanation.effects), j),
        )
        for j in range(n)
    )
    allowed = feasible or feasibility(names, s, constraints)
    more, part = unproved(explanation, signals or {})
    return Reasons(
        arms=arm_reasons,
        swaps=best_swaps(arm_reasons, explanation.chosen, allowed, swaps),
        health=health(explanation, names, s, pending, signals or {}, effort_hint),
        plan=str(np.asarray(explanation.plan)),
        quantity=quantity,
        budget=s,
        flows=expected_flows(explanation, mean),
        adjacency=explanation.adjacency.copy(),
        could_gain=more,
        could_gain_share=part,
        constrained=bool(constraints) or feasible is not None,
        **{name: getattr(explanation, name) for name in PAIRS},
    )


def value_of(values: Array | None, j: int) -> float:
    """One value of an optional field; NaN where there is none."""
    return np.nan if values is None else float(values[j])


def check_arguments(explanation: Explanation, paths: int, swaps: int) -> int:
    """Check the arguments of `reasons`; returns the number of arms."""
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
    """The means, with 0 for arms without data, and which arms have data."""
    known = np.isfinite(explanation.mean) & (explanation.count > 0)
    return np.where(known, explanation.mean, 0.0), known


def split_scores(explanation: Explanation, mean: Array, known: BoolArray) -> tuple[Array, Array, Array]:
    """Direct effect, spill-over and exploration; for an arm without data the whole score is exploration."""
    direct = explanation.gain * mean
    spilled = (explanation.weights - explanation.gain) * mean
    bonus = explanation.weights * (np.where(known, explanation.index, 0.0) - mean)
    return direct, spilled, np.where(known, bonus, explanation.score)


def exploration_share(direct: float, spilled: float, exploration: float) -> float:
    """|exploration| over the sum of the sizes of the three parts."""
    if not np.isfinite(exploration):
        return 1.0
    total = abs(direct) + abs(spilled) + abs(exploration)
    return float(abs(exploration) / total) if total > 0 else 0.0


def score_gaps(score: Array, chosen: BoolArray) -> Array:
    """From each chosen arm to the runner-up, from each other arm to the worst chosen; NaN where there is none."""
    best_left = np.max(score, where=~chosen, initial=-np.inf) if (~chosen).any() else np.nan
    worst_taken = np.min(score, where=chosen, initial=np.inf) if chosen.any() else np.nan
    other = np.where(chosen, best_left, worst_taken)
    return np.subtract(score, other, out=np.zeros_like(score), where=score != other)  # inf - inf is a tie


def feasibility(names: Sequence[str], budget: int, constraints: Sequence[Constraint]) -> Callable[[BoolArray], bool]:
    """A function that says whether a decision satisfies the constraints."""
    if not constraints:
        return lambda x: True
    rows = compile_rows(tuple(constraints), len(names), budget, tuple(names))
    return lambda x: bool(rows.holds(x))


def best_swaps(
    arms: Sequence[ArmReason], chosen: BoolArray, allowed: Callable[[BoolArray], bool], most: int
) -> tuple[Swap, ...]:
    """The feasible swaps with the largest change in the sum of the scores, best first."""
    score = np.array([arm.score for arm in arms])
    inside, outside = lowest(np.flatnonzero(chosen), score), lowest(np.flatnonzero(~chosen), -score)
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


def lowest(some: IntArray, values: Array) -> IntArray:
    """The arms with the lowest values, if there are very many; in order of their positions."""
    if len(some) <= MOST_SWAPPED:
        return some
    return np.sort(some[np.argsort(values[some], kind="stable")[:MOST_SWAPPED]])
