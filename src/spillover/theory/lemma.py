"""Both sides of Lemma 1 (and Corollary 1) on recorded decisions, to check it on runs."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from spillover import validate
from spillover.contracts import Policy
from spillover.delays import as_delay
from spillover.environments.world import SEMWorld
from spillover.rng import Purpose, Rng
from spillover.theory.bound import BETWEEN, ceiling, from_log
from spillover.types import Array, BoolArray, IntArray, State


class PlayedRound(Protocol):
    """The part of a round of `spillover.rounds` that `record_run` uses."""

    @property
    def t(self) -> int: ...
    @property
    def x(self) -> BoolArray: ...
    @property
    def state(self) -> State: ...


class RunRecord(NamedTuple):
    """The quantities of a run that the theory uses.

    >>> record = RunRecord(np.ones((3, 2), bool), np.array([True, False, False]), largest_weight=1.5)
    >>> int(record.suboptimal.sum())  # rounds that were not optimal
    1
    """

    decisions: BoolArray  # (T, n)
    suboptimal: BoolArray  # (T,)
    largest_weight: float  # w_max: over rounds, the largest estimated weight of a chosen arm


def record_run(policy: Policy, world: SEMWorld, played: Iterable[PlayedRound]) -> RunRecord:
    """Record a run without a batch; round t counts with the graph estimated before it, the first with none.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=30, changes=()).draw(sp.Rng(0))
    >>> run = record_run(sp.NDCSEM(), world, sp.rounds(sp.NDCSEM(), world, 5, sp.Rng(0), ()))
    >>> run.decisions.shape
    (30, 10)
    """
    batch = world.levels.shape[:-2]
    validate.require(batch == (), "batch of the world", batch, "(): one replication at a time")
    decisions, suboptimal, largest = [], [], 0.0
    weights = np.ones(world.levels.shape[-1])
    for row in played:
        decisions.append(np.array(row.x))
        suboptimal.append(bool(world.matches(row.t, row.x) < world.best(row.t).sum()))
        largest = max(largest, float(np.max(weights, where=row.x, initial=0.0)))
        weights = policy.explain(row.state, Rng(0)).weights
    return RunRecord(np.array(decisions), np.array(suboptimal), largest)


def realised_delays(delay: Any, rng: Rng, horizon: int) -> IntArray:
    """The delays of a run, (T,), drawn again from the streams of `rng`.

    >>> import spillover as sp
    >>> realised_delays(sp.ConstantDelay(3), sp.Rng(0), horizon=4)
    array([3, 3, 3, 3])
    """
    law = as_delay(delay)
    return np.array([int(law.draw(t, rng.at(Purpose.DELAY, t))) for t in range(1, horizon + 1)], np.int64)


class LemmaSides(NamedTuple):
    """Both sides of Lemma 1 (of Corollary 1, when delays differ).

    >>> LemmaSides(left=np.array([3, 5]), printed=12.0, repaired=15.0).left.max() <= 12
    np.True_
    """

    left: IntArray  # (n,): rounds after N charged to an arm observed less than `level` times
    printed: float  # ceil(T / W) (l gamma^-W + D)
    repaired: float  # ceil(T / W) (l gamma^(2 - ceil(W)) + D + 1)

    @property
    def holds(self) -> bool:
        """Whether the printed lemma holds."""
        return bool((self.left <= self.printed).all())


def observed_counts(decisions: Any, *, discount: float, delay: Any = 0) -> Array:
    """M, (T, n): row t - 1 holds the discounted number of observations of each arm when round t is decided.

    delay: rounds until an outcome arrives; one number, or one for each round.

    >>> observed_counts([[1], [1], [0], [0]], discount=0.5, delay=1).ravel()
    array([0.  , 0.  , 0.5 , 0.75])
    """
    given = np.asarray(decisions)
    validate.require(given.ndim == 2 and given.size > 0, "shape of decisions", given.shape, "(T, n)")
    x = validate.decision("decisions", given, given.shape).astype(float)
    validate.number("discount", discount, BETWEEN, low=0, high=1, open_ends=True)
    late = np.minimum(round_delays(delay, len(x)), len(x))
    arriving: list[list[int]] = [[] for _ in range(len(x))]
    for played, arrival in enumerate(np.arange(len(x)) + late):
        if arrival < len(x):
            arriving[arrival].append(played)
    counts = np.zeros(x.shape)
    for t in range(1, len(x)):  # round t + 1 is decided with what has arrived by the end of round t
        counts[t] = discount * counts[t - 1]
        for played in arriving[t - 1]:
            counts[t] += discount ** (t - 1 - played) * x[played]
    return counts


def round_delays(delay: Any, horizon: int) -> IntArray:
    """The delay of each round."""
    given = np.asarray(delay)
    good = given.dtype.kind in "iu" and given.shape in ((), (horizon,)) and bool((given >= 0).all())
    validate.require(good, "delay", delay, f"a whole number >= 0, or {horizon} of them, one for each round")
    return np.broadcast_to(given, (horizon,)).astype(np.int64)


def charged_arms(decisions: BoolArray, suboptimal: BoolArray, counts: Array) -> BoolArray:
    """I, (T, n): the proof charges each suboptimal round to the least observed arm of the decision.

    >>> decisions = np.array([[True, True, False]])
    >>> charged_arms(decisions, np.array([True]), np.array([[4.0, 2.0, 0.0]]))  # arm 1 was observed less than arm 0
    array([[False,  True, False]])
    """
    least = np.where(decisions, counts, np.inf).argmin(axis=-1)
    charged = np.zeros(decisions.shape, np.bool_)
    charged[np.arange(len(least)), least] = True
    return np.asarray(charged & decisions & suboptimal[:, None])


def counter_lemma(
    decisions: Any,
    suboptimal: Any,
    *,
    discount: float,
    level: float,
    delay: Any = 0,
    window: float | None = None,
) -> LemmaSides:
    """Both sides of Lemma 1 for recorded decisions, (T, n), the first n of them initialisation.

    suboptimal: (T,), which rounds are charged. level: l > 0. window: W >= 1; by default 1 / (1 - gamma), the
    theorem's. delay: one number, or each round's own, of which the largest counts (Corollary 1).

    >>> sides = counter_lemma(np.eye(9)[:, 8:] + np.eye(9)[:, 7:8] + np.eye(9)[:, 6:7], np.ones(9, bool),
    ...                       discount=0.99, level=1, delay=1, window=9)
    >>> sides.left.item(), round(sides.printed, 2), sides.holds  # one arm that the initialisation did not play
    (3, 2.09, False)
    """
    counts = observed_counts(decisions, discount=discount, delay=delay)
    x = np.asarray(decisions).astype(np.bool_)
    wrong = validate.decision("suboptimal", suboptimal, (len(x),))
    validate.number("level", level, "a finite number > 0", low=0, high=np.inf, open_ends=True)
    size = 1 / (1 - discount) if window is None else window
    validate.number("window", size, "a finite number >= 1", low=1, high=np.inf)
    late = int(round_delays(delay, len(x)).max(initial=0))
    charged = charged_arms(x, wrong, counts)
    left = (charged & (counts < level))[x.shape[-1] :].sum(axis=0)
    blocks, fade = ceiling(len(x) / size), math.log(discount)
    printed = blocks * (level * from_log(-size * fade) + late)
    repaired = blocks * (level * from_log((2 - ceiling(size)) * fade) + late + 1)
    return LemmaSides(left, printed, repaired)
