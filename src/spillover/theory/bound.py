"""Theorem 1: the regret bound of NDC-SEM, its terms and constants, as printed and corrected."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.delays import NEVER, as_delay
from spillover.environments.world import SEMWorld
from spillover.types import Array, IntArray


class Gaps(NamedTuple):
    """The smallest and the largest shortfall of a suboptimal decision.

    >>> Gaps(smallest=np.array(0.1), largest=np.array(1.5)).smallest.item()
    0.1
    """

    smallest: Array  # Delta_min of each row; inf where every decision is optimal
    largest: Array  # Delta_max of each row; 0 there


class WorldConstants(NamedTuple):
    """The constants of a world that Theorem 1 uses.

    >>> constants = WorldConstants(10, 4, 5000, 3, 3, 2.5, 0.05, 3.0)
    >>> constants.horizon, constants.changes
    (5000, 3)
    """

    n_arms: int  # N
    budget: int  # s
    horizon: int  # T
    changes: int  # Upsilon_T: rounds at which a mean changes
    longest_path: int  # p: edges on the longest path of the graph
    largest_weight: float  # w_max
    smallest_gap: float  # Delta_min
    largest_gap: float  # Delta_max


def decision_gaps(scores: Any, budget: int) -> Gaps:
    """Smallest and largest shortfall of a decision of at most `budget` arms, exactly, for each row of `scores`.

    scores: (..., n), >= 0: w_i beta_i, what arm i adds to the payoff. No sets are enumerated: relative to the best
    arms, a decision exchanges some of them for others, or for nothing, which is an arm worth 0. Its shortfall is the
    sum of the shortfalls of these exchanges, none of them negative, and each exchange alone is a decision too. So the
    smallest positive shortfall is that of a single exchange, also if there are ties; the largest is that of the empty
    decision.

    >>> smallest, largest = decision_gaps([3.0, 2.0, 2.0, 0.5], budget=2)
    >>> smallest.item(), largest.item()  # 3 for 2, not the tie of 2 and 2; 3 + 2 for nothing
    (1.0, 5.0)
    """
    values = np.asarray(scores, float)
    good = values.ndim > 0 and values.size > 0 and bool((np.isfinite(values) & (values >= 0)).all())
    validate.require(good, "scores", scores, "finite numbers >= 0, one for each arm")
    validate.whole("budget", budget, 1, values.shape[-1])
    ordered = -np.sort(-values, axis=-1)
    inside = ordered[..., :budget]
    outside = np.concatenate([ordered[..., budget:], np.zeros((*values.shape[:-1], 1))], axis=-1)
    border, rival = inside[..., -1], outside[..., 0]
    above = np.min(inside, axis=-1, where=inside > rival[..., None], initial=np.inf)
    below = np.max(outside, axis=-1, where=outside < border[..., None], initial=-np.inf)
    return Gaps(np.minimum(above - rival, border - below), inside.sum(axis=-1))


def longest_path(adjacency: Any) -> int:
    """p: the number of edges on the longest path of an acyclic graph; A^p is the last power that is not 0.

    >>> longest_path([[0, 0.5, 0], [0, 0, 0.5], [0, 0, 0]])
    2
    """
    edges = np.asarray(adjacency) != 0
    square = edges.ndim == 2 and edges.shape[0] == edges.shape[1] and edges.size > 0
    validate.require(square, "shape of adjacency", edges.shape, "(n, n)")
    length = np.zeros(len(edges), np.int64)  # of the longest path found so far from each arm
    for _ in range(len(edges)):
        longer = np.max(np.where(edges, length[:, None] + 1, 0), axis=0)
        if (longer == length).all():
            return int(length.max())
        length = longer
    raise ValueError("adjacency = a graph with a cycle: must be acyclic, or paths have no largest length")


def world_constants(world: SEMWorld, replication: int | tuple[int, ...] | None = None) -> WorldConstants:
    """The constants of a drawn world; `replication` selects one world of a batch.

    Gaps are over all decisions and all rounds. The weight is the largest one of the true graph, over all arms: an upper
    bound on w_max once the graph is known, as in the proof; `record_run` measures w_max from the estimates of a run.

    >>> import spillover as sp
    >>> world_constants(sp.SyntheticSEM().draw(sp.Rng(0))).longest_path
    4
    """
    if not isinstance(world, SEMWorld):
        raise TypeError(f"world = {world!r}: must be a drawn world, such as SyntheticSEM().draw(Rng(0))")
    one = one_world(world, replication)
    check_assumptions(one)
    means = np.stack([one.means(t) for t in distinct_rounds(one)])
    scores = means * one.weights(1)
    gaps = decision_gaps(scores, one.budget)
    smallest = float(gaps.smallest.min())
    validate.require(
        smallest < np.inf,
        "scores of the world",
        scores[0],
        "above 0 for some arm in some round: every decision is optimal, so Delta_min is undefined and no regret arises",
    )
    return WorldConstants(
        n_arms=scores.shape[-1],
        budget=one.budget,
        horizon=one.horizon,
        changes=int((np.diff(means, axis=0) != 0).any(axis=-1).sum()),
        longest_path=longest_path(one.adjacency(1)),
        largest_weight=float(one.weights(1).max()),
        smallest_gap=smallest,
        largest_gap=float(gaps.largest.max()),
    )


def one_world(world: SEMWorld, replication: int | tuple[int, ...] | None) -> SEMWorld:
    """The world of one replication."""
    batch = world.levels.shape[:-2]
    place = () if replication is None else replication if isinstance(replication, tuple) else (replication,)
    inside = len(place) == len(batch) and all(0 <= k < size for k, size in zip(place, batch, strict=True))
    accepted = "None, for a world without a batch" if batch == () else f"a place in the batch {batch} of the world"
    validate.require(inside, "replication", replication, accepted)
    return replace(world, graphs=world.graphs[place], gain=world.gain[place], levels=world.levels[place], cache={})


def check_assumptions(world: SEMWorld) -> None:
    """Check the assumptions of the proof about the graph."""
    fixed = "(): Theorem 1 assumes one graph for all rounds"
    validate.require(world.graph_changes == (), "graph_changes of the world", world.graph_changes, fixed)
    exact = "0: Theorem 1 assumes that the graph is known exactly once every arm has been observed"
    validate.require(world.noise == 0, "noise of the world", world.noise, exact)
    unit = (
        "all 1: NDC-SEM weights arms by 1'(I - A)^-1, without F, and Theorem 1 assumes that these are the true weights"
    )
    validate.require(bool((world.gain == 1).all()), "gain of the world", world.gain, unit)


def distinct_rounds(world: SEMWorld) -> list[int]:
    """Rounds that cover all values of the means: the first of each period, or every round if means are smooth."""
    return list(range(1, world.horizon + 1)) if world.smooth else [1, *world.changes]


def largest_delay(delay: Any) -> int:
    """D_max (Corollary 1) of a bounded delay: a number of rounds, recorded delays, or a Delay.

    >>> import spillover as sp
    >>> largest_delay(50), largest_delay([3, 8, 5]), largest_delay(sp.UniformDelay(20, 80))
    (50, 8, 80)
    """
    bound = as_delay(delay).largest
    most = NEVER if bound is None else int(bound)
    bounded = "bounded: Corollary 1 needs a largest delay (a record of the delays that occurred has one)"
    validate.require(most < NEVER, "delay", delay, bounded)
    return most


@dataclass(frozen=True, kw_only=True)
class RegretBound:
    """Theorem 1 term by term. Terms are rounds charged to one arm; times `scale` they are regret.

    Three versions differ only in the tail. printed: as in the paper. corrected: the powers of a known A all fail in
    the same s events, so their probabilities are not multiplied (p = 1). lean: corrected, and without the sum over the
    counts, which the inequality behind it does not need; it is not in the paper.

    >>> constants = WorldConstants(10, 4, 5000, 3, 3, 3.0, 0.05, 4.0)
    >>> bound = regret_bound(constants, discount=0.985, exploration=0.11, delay=50)
    >>> bound.delay_term  # rounds charged to the delay: 75 windows of 50
    3750.0
    """

    constants: WorldConstants
    discount: float  # gamma
    exploration: float  # xi
    delay: int  # D, or D_max
    forgetting: float  # J(gamma)
    windows: int  # ceil(T (1 - gamma))
    level: float  # l
    change_term: float  # J(gamma) Upsilon_T
    exploration_term: float  # ceil(T (1 - gamma)) l gamma^(-1 / (1 - gamma))
    delay_term: float  # ceil(T (1 - gamma)) D
    tail_printed: float
    tail_corrected: float
    tail_lean: float

    @property
    def scale(self) -> float:
        """N Delta_max: from rounds charged to one arm to regret."""
        return self.constants.n_arms * self.constants.largest_gap

    @property
    def head(self) -> float:
        """The terms before the tail; the 1 is the first round of each arm."""
        return 1 + self.change_term + self.exploration_term + self.delay_term

    @property
    def printed(self) -> float:
        return self.scale * (self.head + self.tail_printed)

    @property
    def corrected(self) -> float:
        return self.scale * (self.head + self.tail_corrected)

    @property
    def lean(self) -> float:
        return self.scale * (self.head + self.tail_lean)

    @property
    def trivial(self) -> float:
        """T Delta_max: the largest possible regret of any policy."""
        return self.constants.horizon * self.constants.largest_gap

    @property
    def vacuous(self) -> bool:
        """Whether the corrected bound is vacuous: not below the largest possible regret."""
        return self.corrected >= self.trivial

    @property
    def largest_count(self) -> float:
        """The largest possible delayed, discounted count: gamma^D m_T, below 1 / (1 - gamma)."""
        log_rounds = log_discounted_rounds(self.discount, self.constants.horizon)
        return math.exp(log_rounds + self.delay * math.log(self.discount))

    @property
    def reachable(self) -> bool:
        """Whether an arm can ever be observed `level` times; if not, the proof covers no round at all."""
        return self.level <= self.largest_count

    @property
    def dominant(self) -> str:
        """The largest term of the corrected bound."""
        terms = {
            "changes": self.change_term,
            "exploration": self.exploration_term,
            "delay": self.delay_term,
            "tail": self.tail_corrected,
        }
        return max(terms, key=lambda name: terms[name])

    def __str__(self) -> str:
        c, top = self.constants, self.trivial
        head = f"N = {c.n_arms}, s = {c.budget}, T = {c.horizon}, D = {self.delay}"
        reach = "" if self.reachable else f", out of reach: counts stay below {self.largest_count:.3g}"
        rows: list[tuple[str, float | str, str]] = [
            ("rounds charged to one arm", "", ""),
            ("  initialisation", 1.0, ""),
            ("  changes", self.change_term, f"J = {self.forgetting:.1f} after each of {c.changes}"),
            ("  exploration", self.exploration_term, f"{self.windows} windows, level {self.level:.3g}{reach}"),
            ("  delay", self.delay_term, f"{self.windows} windows x {self.delay}"),
            ("  tail, printed", self.tail_printed, f"p = {c.longest_path}"),
            ("  tail, corrected", self.tail_corrected, "p = 1"),
            ("  tail, lean", self.tail_lean, "p = 1, no sum over counts"),
            ("regret", "", f"times N Delta_max = {self.scale:.4g}"),
            ("  printed", self.printed, verdict(self.printed, top)),
            ("  corrected", self.corrected, verdict(self.corrected, top)),
            ("  lean", self.lean, verdict(self.lean, top)),
            ("  T Delta_max", top, "what no policy can exceed"),
        ]
        title = f"Theorem 1: {head}, gamma = {self.discount:g}, xi = {self.exploration:g}"
        return "\n".join([title, *(table_row(*row) for row in rows)])


def table_row(name: str, value: float | str, note: str) -> str:
    shown = value if isinstance(value, str) else f"{value:.4g}"
    return f"{name:<26}{shown:>12}  {note}".rstrip()


def verdict(bound: float, trivial: float) -> str:
    ratio = bound / trivial
    return f"says nothing: {ratio:.3g} times T Delta_max" if ratio >= 1 else f"{ratio:.3g} of T Delta_max"


def regret_bound(
    setting: SEMWorld | WorldConstants, *, discount: float, exploration: float, delay: Any = 0
) -> RegretBound:
    """Theorem 1 for a drawn world, or for its constants; a random delay counts with its largest value (Corollary 1).

    discount: gamma, in (0, 1). exploration: xi, above 1 / (2 (s + 1)).

    >>> constants = WorldConstants(10, 4, 5000, 3, 3, 3.0, 0.05, 4.0)
    >>> bound = regret_bound(constants, discount=0.985, exploration=0.11, delay=50)
    >>> bound.vacuous, bound.dominant, bound.windows, bound.level
    (True, 'tail', 75, 2128747.0)
    >>> regret_bound(constants, discount=0.985, exploration=1e-10, delay=50)
    Traceback (most recent call last):
    ValueError: exploration = 1e-10: must be a number above 1 / (2 (s + 1)) = 0.1 (s = 4), where the proof of Theorem
    1 begins
    """
    given = setting if isinstance(setting, WorldConstants) else world_constants(setting)
    check_hyperparameters(discount, exploration, given.budget, given.n_arms)
    check_constants(given)
    late = largest_delay(delay)
    windows = ceiling(given.horizon * (1 - discount))
    level = observation_level(given, discount, exploration)
    forgetting = forgetting_time(discount=discount, exploration=exploration, budget=given.budget, n_arms=given.n_arms)

    def tail(path: int, over_counts: bool) -> float:
        return tail_term(given, discount, exploration, path, over_counts=over_counts)

    return RegretBound(
        constants=given,
        discount=discount,
        exploration=exploration,
        delay=late,
        forgetting=forgetting,
        windows=windows,
        level=level,
        change_term=forgetting * given.changes,
        exploration_term=windows * level * from_log(-math.log(discount) / (1 - discount)),
        delay_term=float(windows * late),
        tail_printed=tail(given.longest_path, True),
        tail_corrected=tail(1, True),
        tail_lean=tail(1, False),
    )


BETWEEN = "a number strictly between 0 and 1"


def log_discounted_rounds(discount: float, rounds: int) -> float:
    """log m_t, m_t = 1 + gamma + ... + gamma^(t-1); accurate for every gamma in (0, 1)."""
    return math.log1p(discount * -math.expm1((rounds - 1) * math.log(discount)) / (1 - discount))


def forgetting_time(*, discount: float, exploration: float, budget: int, n_arms: int) -> float:
    """J(gamma): rounds after a change until the bonus covers the error from the old means.

    >>> round(forgetting_time(discount=0.985, exploration=0.11, budget=4, n_arms=10), 1)
    264.2
    """
    check_hyperparameters(discount, exploration, budget, n_arms)
    inner = (1 - discount) * exploration * (budget + 1) * log_discounted_rounds(discount, n_arms)
    return math.log(inner) / math.log(discount)


def settled_rounds(
    world: SEMWorld, *, discount: float, exploration: float, replication: int | tuple[int, ...] | None = None
) -> IntArray:
    """Gamma(gamma): the rounds after the initialisation in which the means have not changed for J(gamma) rounds.

    The others, at most J(gamma) for each change, are what J(gamma) Upsilon_T counts in the bound. replication: one
    world of a batch.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM().draw(sp.Rng(0))  # changes at 1000, 2500 and 4000; J(gamma) = 264.2
    >>> rounds = settled_rounds(world, discount=0.985, exploration=0.11)
    >>> len(rounds), rounds[[0, 988, 989]]
    (4198, array([  11,  999, 1264]))
    """
    one = one_world(world, replication)
    n_arms, horizon = one.levels.shape[-1], one.horizon
    wait = forgetting_time(discount=discount, exploration=exploration, budget=one.budget, n_arms=n_arms)
    means = np.stack([one.means(t) for t in range(1, horizon + 1)])
    rounds = np.arange(1, horizon + 1)
    changed = np.append(False, (np.diff(means, axis=0) != 0).any(axis=-1))
    since = np.maximum.accumulate(np.where(changed, rounds, 1))  # the first round with the means of this one
    settled = (since == 1) | (since - 1 <= rounds - wait)  # round since - 1 had other means
    return np.asarray(rounds[settled & (rounds > n_arms)])


def check_hyperparameters(discount: float, exploration: float, budget: int, n_arms: int) -> None:
    """Check that gamma and xi are in the domain of Theorem 1, which has a xi for every gamma."""
    validate.whole("n_arms", n_arms, 2)
    validate.whole("budget", budget, 1, n_arms)
    validate.require(np.ndim(discount) == 0, "discount", discount, BETWEEN)
    validate.number("discount", discount, BETWEEN, low=0, high=1, open_ends=True)
    low = 1 / (2 * (budget + 1))
    above = f"a number above 1 / (2 (s + 1)) = {low:g} (s = {budget}), where the proof of Theorem 1 begins"
    validate.require(np.ndim(exploration) == 0, "exploration", exploration, above)
    validate.number("exploration", exploration, above, low=low, high=np.inf, open_ends=True)
    validate.require(2 * exploration * (budget + 1) > 1, "exploration", exploration, above)
    high = 1 / ((1 - discount) * (budget + 1) * log_discounted_rounds(discount, n_arms))
    below = f"below {high:g}: J(gamma) needs 0 < (1 - gamma) xi (s + 1) log m_N < 1 (gamma = {discount:g})"
    validate.require(exploration < high, "exploration", exploration, below)


def check_constants(given: WorldConstants) -> None:
    """Check that constants are possible for a world."""
    validate.whole("horizon", given.horizon, given.n_arms)
    validate.whole("changes", given.changes, 0, given.horizon - 1)
    validate.whole("longest_path", given.longest_path, 0, given.n_arms - 1)
    for name in ("largest_weight", "smallest_gap", "largest_gap"):
        accepted = "a finite number > 0"
        validate.number(name, getattr(given, name), accepted, low=0, high=np.inf, open_ends=True, largest=np.inf)
    ordered = given.smallest_gap <= given.largest_gap
    validate.require(ordered, "smallest_gap", given.smallest_gap, f"at most the largest gap, {given.largest_gap:g}")


def observation_level(given: WorldConstants, discount: float, exploration: float) -> float:
    """l: the (discounted) number of observations of an arm from which on the proof rules out a mistake due to it."""
    ratio = given.budget * given.largest_weight / given.smallest_gap
    log_rounds = log_discounted_rounds(discount, given.horizon)
    return float(np.ceil(16 * exploration * (given.budget + 1) * log_rounds * (ratio * ratio)))


def tail_term(given: WorldConstants, discount: float, exploration: float, path: int, *, over_counts: bool) -> float:
    """Rounds in which an arm's mean is outside its confidence bounds; computed in logarithms, inf above 1e308.

    path: the power to which the proof raises the probability. over_counts: include the proof's sum over all values of
    the 2 s counts, which are whole numbers only without a discount.
    """
    s, spare = given.budget, 1 - discount
    eta = 4 * math.sqrt(1 - 1 / (2 * exploration * (s + 1)))
    pieces = math.ceil(-math.log1p(-discount) / math.log1p(eta))
    rate = math.log(pieces * spare) - math.log(-math.expm1(math.log(discount) / spare))
    inner = np.logaddexp(-math.log(spare), math.log(given.horizon) + path * rate)
    union = 2 * s * math.log(ceiling(1 / spare)) if over_counts else 0.0
    return from_log(math.log(2) + path * math.log(s) + union + float(inner))


def ceiling(value: float) -> int:
    """Round up, ignoring the rounding error of 1 - gamma: 5000 (1 - 0.985) is 75, not 76."""
    return math.ceil(value * (1 - 1e-12))


def from_log(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf
