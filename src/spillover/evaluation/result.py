"""The evaluation of a log: what was earned, what others would have earned, and whether the log can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spillover.evaluation.counterfactual import Counterfactual, interval_of
from spillover.evaluation.log import Log
from spillover.evaluation.propensity import Estimate, Weighed
from spillover.formatting import Shown, view_of
from spillover.history import History
from spillover.registry import needed_for
from spillover.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BETTER, WORSE, SAME, UNCLEAR = "better", "worse", "the same", "cannot tell"
MOST_UNTRIED = 0.1  # share of choices that the log knows nothing about, above which it cannot tell
POINTS = 200  # of a course, at most


class Course(NamedTuple):
    """The expected payoff up to some rounds, with its 95% interval."""

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What decisions would have brought in all rounds, in expectation, with 95% intervals; in the sign of the table.

    >>> import spillover as sp
    >>> table = {"week": range(12), "promo_a": [1, 0, 1, 0] * 3, "promo_b": [0, 1, 0, 1] * 3}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5] * 2, "sales_b": [3, 4, 3, 5, 3, 4] * 2}
    >>> answer = sp.evaluate(table, always=[["a"]], draws=50).answers[0]
    >>> answer.interval[0] < answer.payoff < answer.interval[1]
    True
    """

    name: str
    payoff: float
    interval: tuple[float, float]
    difference: float  # to the decisions of the log
    difference_interval: tuple[float, float]
    gain: tuple[float, float]  # the same interval in the sign that is maximised
    arms: tuple[str, ...]  # that it chose in at least one of a hundred choices, the most frequent first
    untried: tuple[str, ...]  # those of them that the log never chose
    untried_share: float  # of its choices
    course: Course
    weighed: Weighed | None = None  # by propensities, of all rounds together

    @property
    def verdict(self) -> str:
        """Whether it would have done better than the log, worse, the same for sure, or nobody can tell."""
        if self.gain == (0.0, 0.0):
            return SAME
        if self.untried_share > MOST_UNTRIED:
            return UNCLEAR
        return BETTER if self.gain[0] > 0 else WORSE if self.gain[1] < 0 else UNCLEAR

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "payoff": self.payoff,
            "interval": list(self.interval),
            "difference": self.difference,
            "difference_interval": list(self.difference_interval),
            "verdict": self.verdict,
            "arms": list(self.arms),
            "untried": list(self.untried),
            "untried_share": self.untried_share,
        }
        return found if self.weighed is None else {**found, "by_propensity": weighed_dict(self.weighed)}


def weighed_dict(found: Weighed) -> dict[str, Any]:
    estimates = {"ips": found.ips, "snips": found.snips, "doubly_robust": found.dr}
    values: dict[str, Any] = {
        name: None if one is None else {"payoff": one.value, "interval": [one.low, one.high]}
        for name, one in estimates.items()
    }
    return {**values, "effective_rounds": found.effective, "matching_rounds": found.matching, "enough": found.enough}


def answer_of(name: str, found: Counterfactual, logged: Counterfactual, log: Log, sign: float) -> Answer:
    """An answer from draws."""
    gap, count = np.clip(found.payoff - logged.payoff, *log.possible_gain), len(log.x)
    gain, (least, most) = interval_of(gap, log.possible_gain), log.possible
    tried = np.asarray(log.x.any(axis=0))
    order = [int(j) for j in np.argsort(-found.shares, kind="stable") if found.shares[j] >= 0.01]
    kept = course_rounds(len(log.x))
    ends = np.array([interval_of(found.course[:, t], ((t + 1) * least, (t + 1) * most)) for t in kept]).T
    low, high = np.sort(sign * ends, axis=0)
    return Answer(
        name=name,
        payoff=sign * float(found.payoff.mean()),
        interval=ordered(interval_of(found.payoff, (count * least, count * most)), sign),
        difference=sign * float(gap.mean()),
        difference_interval=ordered(gain, sign),
        gain=gain,
        arms=tuple(log.arms[j] for j in order),
        untried=tuple(log.arms[j] for j in order if not tried[j]),
        untried_share=float(found.shares[~tried].sum()),
        course=Course(sign * found.course[:, kept].mean(axis=0), low, high),
    )


def ordered(interval: tuple[float, float], sign: float) -> tuple[float, float]:
    """An interval in the sign of the table."""
    return interval if sign > 0 else (-interval[1], -interval[0])


def course_rounds(count: int) -> list[int]:
    """Places of the rounds of a course, the last one included."""
    return [int(t) for t in np.unique(np.linspace(0, count - 1, min(count, POINTS)).astype(int))]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(Shown):
    """How good past decisions were: `print` it, or see `answers`, `plot`, `to_frame` and `to_dict`.

    >>> import spillover as sp
    >>> table = {"week": range(12), "promo_a": [1, 0, 1, 0] * 3, "promo_b": [0, 1, 0, 1] * 3}
    >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5] * 2, "sales_b": [3, 4, 3, 5, 3, 4] * 2}
    >>> sp.evaluate(table, always=[["a"], ["b"]], draws=50).to_frame().index.to_list()
    ['as it was', 'always a', 'always b', 'best fixed set', 'upper bound']
    """

    view = "spillover.views.answers:EvaluationView"

    source: str  # the name of the file; "" for a table in memory
    history: History
    log: Log
    delay: int
    draws: int
    earned: float  # what the rounds brought, as the table says
    earned_course: Array  # up to each round of a course
    logged: Answer  # the decisions of the log, in expectation
    answers: tuple[Answer, ...]  # policies, and sets that are always chosen
    fixed: Answer  # the fixed set that looks best in hindsight
    bound: Answer  # the best set of every round, known in advance: an upper bound
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        from spillover.evaluation.text import evaluation_text

        return evaluation_text(self)

    @property
    def rows(self) -> tuple[Answer, ...]:
        """All answers, those of the log first."""
        return (self.logged, *self.answers, self.fixed, self.bound)

    def find(self, name: str) -> Answer:
        """The answer of that name."""
        for answer in self.rows:
            if answer.name == name:
                return answer
        raise KeyError(name)

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the rounds of a course."""
        return [self.log.rounds[t] for t in course_rounds(len(self.log.x))]

    def to_frame(self) -> Any:
        """All answers as a pandas table."""
        with needed_for("a data frame", "research"):
            import pandas as pd

        rows = [
            {
                "name": answer.name,
                "payoff": answer.payoff,
                "low": answer.interval[0],
                "high": answer.interval[1],
                "difference": answer.difference,
                "difference_low": answer.difference_interval[0],
                "difference_high": answer.difference_interval[1],
                "verdict": "" if answer is self.logged else answer.verdict,
            }
            for answer in self.rows
        ]
        return pd.DataFrame(rows).set_index("name")

    def plot(self) -> "Figure":
        """Payoff up to each round: what was earned, and what each policy would have earned.

        >>> import spillover as sp
        >>> table = {"week": range(12), "promo_a": [1, 0, 1, 0] * 3, "promo_b": [0, 1, 0, 1] * 3}
        >>> table |= {"sales_a": [9, 5, 9, 5, 8, 5] * 2, "sales_b": [3, 4, 3, 5, 3, 4] * 2}
        >>> sp.evaluate(table, always=[["a"]], draws=50).plot().axes[0].get_ylabel()
        'payoff up to the round'
        """
        drawn: Figure = view_of(self.view, self).plot()
        return drawn

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values; the same as `spillover evaluate --json`."""
        return {
            "file": self.source,
            "rounds": len(self.log.x),
            "budget": self.log.problem.budget,
            "delay": self.delay,
            "draws": self.draws,
            "earned": self.earned,
            "logged": {name: value for name, value in self.logged.to_dict().items() if name in KEPT},
            "answers": [answer.to_dict() for answer in self.answers],
            "best_fixed_set": self.fixed.to_dict(),
            "upper_bound": {name: value for name, value in self.bound.to_dict().items() if name != "verdict"},
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


KEPT = ("name", "payoff", "interval", "arms")  # of the log's own answer


def in_sign(found: Weighed, count: int, sign: float) -> Weighed:
    """Averages of a round as sums of all rounds, in the sign of the table."""

    def total(one: Estimate) -> Estimate:
        return one.times(sign * count)

    return found._replace(
        ips=total(found.ips), snips=total(found.snips), dr=None if found.dr is None else total(found.dr)
    )
