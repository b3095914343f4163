"""The vocabulary: problems, choices, outcomes, feedback and explanations.

Every array has shape `(*batch, n)`. `batch=()` is a single run, `(256,)` many replications at once, `(10, 22, 20)` a
grid of hyperparameters times replications; the same code serves all of them.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from spillover.formatting import view_of
from spillover.validate import shown

Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]
Batch: TypeAlias = tuple[int, ...]
LARGEST = float(np.finfo(float).max)  # what is larger is not finite
State: TypeAlias = Any  # a NamedTuple of arrays, possibly nested: everything that a policy has learned


class Within(NamedTuple):
    """The values that a field of a state can have; never NaN. A state that is read from a file is held against it."""

    low: float = -LARGEST
    high: float = LARGEST
    of_rounds: bool = False  # at most the number of rounds played
    all_rounds: bool = False  # exactly this number
    of_start: bool = False  # as in the state before the first round
    below: tuple[int, ...] = ()  # places in an array: below the product of the lengths of these axes of the field

    def problem(self, value: Any, start: Any, rounds: Any) -> str:
        """What the values should be, or nothing if they are; rounds: played, a number or one for each value."""
        if self.of_start:
            same = start is None or np.array_equal(value, start, equal_nan=value.dtype.kind == "f")
            return "" if same else f"{shown(start)}, as before the first round"
        if self.all_rounds and rounds is not None:
            return "" if bool((value == rounds).all()) else f"{rounds}, the number of rounds played"
        known = self.of_rounds and rounds is not None
        high = np.minimum(self.high, np.maximum(rounds, self.low)) if known else self.high
        if self.below:
            high = int(np.prod([value.shape[axis] for axis in self.below])) - 1
        if bool(((value >= self.low) & (value <= high)).all()):
            return ""
        if np.max(high) < LARGEST:
            return f"from {self.low:g} to {np.max(high):g}"
        return "finite numbers" if self.low == -LARGEST else f"numbers from {self.low:g} on"


T = TypeVar("T")
Constant: TypeAlias = Annotated[T, Within(of_start=True)]  # the same in all rounds
Round: TypeAlias = Annotated[IntArray, Within(0, of_rounds=True)]  # a round that was played, 0 for none
Rounds: TypeAlias = Annotated[IntArray, Within(0, all_rounds=True)]  # the number of rounds played
Finite: TypeAlias = Annotated[Array, Within()]
Amount: TypeAlias = Annotated[Array, Within(0)]  # such as a discounted count
Likelihood: TypeAlias = Annotated[Array, Within(0, np.inf)]
Probability: TypeAlias = Annotated[Array, Within(0, 1 + 1e-9)]  # up to rounding


class Problem(NamedTuple):
    """What a policy knows before the first round.

    >>> Problem(n_arms=3, budget=2, observes="overall")
    Problem(n_arms=3, budget=2, observes='overall')
    >>> problem = Problem(n_arms=6, budget=2)  # choose 2 of 6 arms; z, in [0, 1], and y are observed
    >>> problem.reward_range, problem.observes
    ((0.0, 1.0), 'both')
    >>> sales = Problem(n_arms=6, budget=2, observes="overall", baseline=True)  # no z; outcomes without any choice
    """

    n_arms: int
    budget: int  # s: how many arms may be chosen a round
    acyclic: bool = False  # arms are in an order that makes A strictly upper triangular: causes after effects
    reward_range: Any = (0.0, 1.0)  # of the instantaneous rewards z; (2,) or (*batch, 2)
    overall_range: Any = None  # of the overall rewards y, if it is known; (2,) or (*batch, 2)
    weights: Any = None  # 1'(I-A)^-1 F, for policies that know the graph; (n,) or (*batch, n)
    observes: str = "both"  # "both": z and y; "overall": y only; "payoff": only the sum of y, in y[..., 0]
    context: int = 0  # number of context columns that are known before each decision
    baseline: bool = False  # whether outcomes may differ from 0 where nothing is chosen
    structure: Any = None  # A where its entries are known, NaN where not, for policies that know the structure; (n, n)

    def __repr__(self) -> str:
        """What is not as usual, long arrays without their middle."""
        given = (name for name in self._fields if not self.is_usual(name))
        return f"Problem({', '.join(f'{name}={self.short(name)}' for name in given)})"

    def is_usual(self, name: str) -> bool:
        """Whether a field has its default."""
        known = name in self._field_defaults
        return known and np.array_equal(getattr(self, name), self._field_defaults[name])

    def short(self, name: str) -> str:
        """A field as text, on one line."""
        value = getattr(self, name)
        return shown(value) if np.ndim(value) > 1 else repr(value)

    def in_full(self) -> str:
        """Every field with its whole value: what tells problems apart, such as those of saved learners.

        >>> Problem(n_arms=3, budget=2).in_full()[:57]
        'Problem(n_arms=3, budget=2, acyclic=False, reward_range=('
        """
        told = {name: value for name, value in self._asdict().items() if name != "structure" or value is not None}
        return f"Problem({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def _repr_html_(self) -> str:
        return str(view_of("spillover.views:ProblemView", self).html())


class Choice(NamedTuple):
    """The decision of a policy, and what must come back to it with the outcome.

    >>> Choice(x=np.array([True, False, True])).x.nonzero()[0]  # the arms that it plays
    array([0, 2])
    """

    x: BoolArray  # (*batch, n)
    probability: Any = None  # (*batch, n): of each arm being drawn, for a policy that learns from it; or None
    memo: Any = None  # an array (*batch, ...) that comes back with the feedback; or None


class Outcome(NamedTuple):
    """The result of a round: instantaneous rewards of the played arms, overall rewards of all arms.

    >>> outcome = Outcome(z=np.array([0.5, 0.0]), y=np.array([0.5, 0.2]))  # arm 0 was played, and moved arm 1
    >>> outcome.y.sum().item()  # the payoff
    0.7
    """

    z: Array  # (*batch, n); NaN if the problem does not observe it
    y: Array  # (*batch, n)
    context: Any = None  # (*batch, k): the context of the round, if there is one


class Course(NamedTuple):
    """What some rounds bring whatever is chosen: z are the rewards of the chosen arms, y = total z + added.

    Rewards may be left to be drawn once the decision is known: only those of the chosen arms matter.
    """

    total: Array  # (*batch, n, n): (I - A)^-1 F, the same in all of these rounds
    rewards: Array  # (*batch, rounds, n): of all arms, chosen or not; or their means, (*batch, rounds or 1, n)
    noise: Array  # (*batch, rounds, n): added to y first
    baseline: Array  # (*batch, rounds, n): added to y after that, with the hidden cause
    law: int = 0  # how rewards follow, one of the laws of `kernels/outcomes.py`; 0: they are drawn already
    concentration: float = 0.0  # of the law, if it has one


class Lateness(NamedTuple):
    """When the outcomes of some rounds arrive; the delay may depend on the rewards of the arms played."""

    delays: IntArray  # (*batch, rounds): if these rewards are 1
    slowest: IntArray  # (*batch, rounds): if they are 0; in between the delay is linear in their average
    silent: BoolArray  # (*batch, rounds, n): arms that never report a reward of 0; (*batch, rounds, 0): none
    by_arm: IntArray  # (*batch, rounds, n): of each arm, `delays` being the longest; (*batch, rounds, 0): the same

    @classmethod
    def of_all_arms(cls, delays: IntArray, slowest: IntArray) -> "Lateness":
        """Of rounds whose arms all report together."""
        none = (*delays.shape, 0)
        return cls(delays, slowest, np.zeros(none, np.bool_), np.zeros(none, np.int64))

    @property
    def of_rounds(self) -> tuple[IntArray, IntArray, BoolArray]:
        """What there is to know if a round arrives as a whole, with the last of its arms."""
        return self.delays, self.slowest, self.silent


class Flight(NamedTuple):
    """Rings of rounds: their decisions and outcomes, and which outcomes arrive when; see `stretches.py`.

    A round of play arrives as a whole, or in parts: the arms that report at the same time. In lists of what arrives, a
    part is its round times n plus the first of its arms, and a whole round is its number.
    """

    x: BoolArray  # (*batch, slots, n)
    z: Array  # (*batch, slots, n)
    y: Array  # (*batch, slots, n)
    first: IntArray  # (*batch, slots): the first part of a round of play that arrives in a round; 0: none
    last: IntArray  # (*batch, slots): the last one
    following: IntArray  # (*batch, slots, 1 or n): after each part, the next one that arrives with it; 0: none
    memo: Array  # (*batch, slots, lines, n): of the decisions, if the policy has any (`Policy.memos`)
    arrival: IntArray  # (*batch, slots, n): when the outcome of each arm arrives; (*batch, slots, 0): with its round
    context: Array  # (*batch, slots, k): of the rounds, if the policy uses it

    @property
    def of_rounds(self) -> tuple[BoolArray, Array, Array, IntArray, IntArray, IntArray]:
        """The rings of rounds that arrive as a whole; without memos."""
        return *self[:5], self.following[..., 0]


class Stretch(NamedTuple):
    """Rounds to be played in one go."""

    course: Course
    lateness: Lateness
    horizon: int  # outcomes that would arrive later are lost
    flight: Flight  # rewritten
    recorded: IntArray  # (rounds,): which snapshot to write at the end of a round; -1: none
    snapshots: Array  # (*batch, snapshots, n, n): adjacency matrices, written
    context: Array  # (*batch of the world, rounds, k): of the rounds; (..., 0): none, or none that the policy uses
    observes: str  # what the policy sees of outcomes, as `Problem.observes`


class Scored(NamedTuple):
    """What the decisions of some rounds were worth."""

    regret: Array  # (*batch, rounds): expected payoff of the best decision minus that of the decision
    matches: IntArray  # (*batch, rounds): how many chosen arms belong to an optimal decision
    possible: IntArray  # (*batch of the world, rounds): how many arms the best decision has


ARRIVED = np.array(True)  # of all feedback of one learner
ARRIVED.flags.writeable = False


class Feedback(NamedTuple):
    """The outcome of an earlier round, in each replication in which one has arrived.

    A round whose arms report at different times is delivered several times, each time with everything that is known of
    it so far; `fresh` marks what is new. z and y are NaN where an outcome is not known (yet): only policies with the
    trait `accepts_missing` get such feedback. z is NaN everywhere if the problem does not observe it.

    >>> x, z, y = np.array([True, False]), np.array([0.5, 0.0]), np.array([0.5, 0.2])
    >>> feedback = Feedback(x, z, y, age=np.array(3), arrived=np.array(True))  # the round of three rounds ago
    >>> feedback.age.item()
    3
    """

    x: BoolArray  # (*batch, n): the decision
    z: Array  # (*batch, n)
    y: Array  # (*batch, n)
    age: IntArray  # (*batch,): rounds since it was played; 0 at the end of its own round
    arrived: BoolArray  # (*batch,): False in replications in which nothing has arrived
    probability: Any = None  # of the choice in that round
    memo: Any = None  # of the choice in that round
    context: Any = None  # (*batch, k): of that round; None without context
    fresh: Any = None  # (*batch, n) bool: the outcomes that are new; None: all of them
    complete: Any = None  # (*batch,) bool: nothing more of that round will arrive; None: not known
    dose: Any = None  # (*batch, n): amounts of the chosen arms, relative to each arm's reference dose; None: 1

    @property
    def checked(self) -> bool:
        """Whether `validate.feedback` has accepted it already, for the problem of the policy that gets it."""
        return False


class Checked(Feedback):
    """Feedback that was checked, so that a policy need not do it again."""

    __slots__ = ()

    @property
    def checked(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """The estimates behind a decision.

    Fields from `baseline` on are optional (None: not estimated). They are about the coming round, in the units of y;
    intervals are 95% credible intervals, their last axis (low, high).

    >>> import spillover as sp
    >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), seed=0)
    >>> learner.report(learner.play([1, 0]), z=[0.5, 0], y=[0.5, 0])
    >>> learner.explain().mean  # of each arm; nothing is known of the second
    array([0.5, nan])
    """

    mean: Array  # estimated instantaneous reward; NaN for an arm never observed
    count: Array  # the (discounted) number of observations behind it
    clock: Array  # m: the discounted number of rounds so far
    index: Array  # mean plus exploration bonus
    adjacency: Any  # the estimated graph; (*batch, n, n), zeros for a policy without one; sparse above 2,000 arms
    gain: Array  # direct effect of one unit of each arm's instantaneous reward on the arm itself: the diagonal of F
    weights: Array  # total effect of one unit of each arm's instantaneous reward
    score: Array  # weights times index: what the arms are ranked by
    plan: Any = ""  # (*batch,) of text: why a plan decided instead of the scores; "" where the scores did
    chosen: Any = None  # (*batch, n): the decision, as a mask; `Policy.explain_choice` fills it in
    pending: Any = None  # (*batch, n): the (discounted) number of pulls in flight, if the policy counts them
    could_gain: Any = None  # (*batch,): upper bound on what another feasible set could add; NaN: a plan decided
    baseline: Any = None  # (*batch, n): expected outcome of each arm if nothing is chosen, spill-over included
    context_effect: Any = None  # (*batch, n): the part of `mean` that the context adds
    direct_interval: Any = None  # (*batch, n, 2): of the effect of choosing an arm on its own outcome
    spill_interval: Any = None  # (*batch, n, 2): of its effect on the outcomes of all other arms together
    total_interval: Any = None  # (*batch, n, 2): of its effect on the sum of all outcomes
    total_covariance: Any = None  # (*batch, n, n): of these effects; None: taken to be independent
    effects: Any = None  # (*batch, n, n): effects[i, j] is the effect of choosing arm j on the outcome of arm i
    effects_interval: Any = None  # (*batch, n, n, 2)
    edge_probability: Any = None  # (*batch, n, n): posterior probability that the edge exists
    edge_interval: Any = None  # (*batch, n, n, 2): of the edge's weight

    def completed(self, whole: "Explanation") -> "Explanation":
        """This decision, made from an outline (`Policy.outline`), with what only the whole has."""
        return replace(
            self,
            direct_interval=whole.direct_interval,
            spill_interval=whole.spill_interval,
            total_interval=whole.total_interval,
            effects=whole.effects,
            effects_interval=whole.effects_interval,
            edge_probability=whole.edge_probability,
            edge_interval=whole.edge_interval,
        )

    def to_networkx(self, arms: Any = None, *, threshold: float = 0.0) -> Any:
        """The estimated graph of one learner as a `networkx.DiGraph`; see `spillover.tabular.to_networkx`.

        arms: their names; 0, 1 and so on by default.

        >>> import spillover as sp
        >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1))
        >>> list(learner.explain().to_networkx(["tv", "radio"]))
        ['tv', 'radio']
        """
        from spillover.tabular import to_networkx

        return to_networkx(self.adjacency, arms, threshold=threshold)

    @property
    def planned(self) -> BoolArray:
        """Whether a plan decided instead of the scores, (*batch,)."""
        return np.broadcast_to(np.asarray(self.plan) != "", self.score.shape[:-1])
