"""The assessment of a table: counts, averages, the reduced form, and findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover.assessment.data import MOST_ARMS, ArmAverages, Data, arm_averages, checked_data
from spillover.assessment.findings import (
    DECISIVE,
    NOTE,
    Finding,
    choice_findings,
    context_findings,
    design_findings,
    outcome_findings,
    outlier_findings,
    size_findings,
    timing_findings,
    total_findings,
)
from spillover.assessment.pooled import Pooled, pooled_effect, pooled_findings
from spillover.assessment.reduced_form import Groups, ReducedForm, context_moves, groups_of, reduced_form, unknown_form
from spillover.types import BoolArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment:
    """The assessment of a table, before any model of it.

    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 5, [[3, 2], [1, 4], [3, 5], [1, 1]] * 5, arms=["web", "shop"])
    >>> [finding.code for finding in found.findings]
    ['enough-rounds', 'separable', 'baseline']
    """

    arms: tuple[str, ...]
    rounds: int
    known: int  # rounds with outcomes
    unknowns: int  # of each outcome: the baseline, what the context adds, and the effect of each arm
    averages: tuple[ArmAverages, ...]
    reduced: ReducedForm  # all NaN with too many arms for it
    groups: Groups
    moved: BoolArray  # (arms,): whether the context moves the arm's effect
    findings: tuple[Finding, ...]
    pooled: Pooled | None = None  # of units that were chosen once or twice; None: arms are no such units

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.warning)

    def decisive(self, *, sees_rewards: bool) -> tuple[Finding, ...]:
        """Findings that a decision or an evaluation must not go without, but for notes on outcomes that never vary.

        sees_rewards: whether the table has own rewards: then few rounds are enough.
        """
        met = {"too-few-rounds"} if sees_rewards else set()
        return tuple(one for one in self.findings if one.code in DECISIVE - met and one.severity != NOTE)

    def find(self, code: str) -> Finding | None:
        """The first finding of that code."""
        return next((finding for finding in self.findings if finding.code == code), None)

    def to_dict(self) -> dict[str, Any]:
        """Lists, dictionaries, texts, numbers and None."""
        return {
            "rounds": self.rounds,
            "rounds_with_outcomes": self.known,
            "unknowns": self.unknowns,
            "arms": [self.arm_dict(j) for j in range(len(self.arms))],
            "pooled": None if self.pooled is None else self.pooled.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def arm_dict(self, j: int) -> dict[str, Any]:
        """The averages and the reduced form of one arm."""
        averages = self.averages[j]
        found: dict[str, Any] = {"arm": self.arms[j], "times_chosen": averages.times}
        found |= {name: value.to_dict() for name, value in (("own", averages.own), ("others", averages.rest))}
        found["total"] = averages.total.to_dict()
        estimates = {"own": (self.reduced.own, self.reduced.own_error)}
        estimates["others"] = self.reduced.spill, self.reduced.spill_error
        estimates["total"] = self.reduced.total, self.reduced.total_error
        found["least_squares"] = {
            name: {"effect": finite(effect[j]), "standard_error": finite(error[j])}
            for name, (effect, error) in estimates.items()
        } | {"identified": bool(self.reduced.identified[j])}
        return found


def finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def assess(
    x: Any,
    y: Any,
    *,
    dose: Any = None,
    context: Any = None,
    arms: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    context_names: Sequence[str] | None = None,
    rounds: Sequence[str] | None = None,
) -> Assessment:
    """Look at past decisions and outcomes, before any model of them.

    x: (rounds, arms), what was chosen. y: (rounds, arms), the outcomes; NaN where one is not known.
    dose: (rounds, arms), amounts of the chosen arms. context: (rounds, k), numbers known before each decision.
    arms: their names. outcomes: names of the columns of y, if they are not those of the arms, such as one total.
    rounds: their labels in order; dates tell the season. Tables (pandas, Polars, Arrow) have named columns: those of x
    are the arms, if no names are given, and those of y and dose are put into their order.

    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 3, [[2, 1], [0, 3], [2, 4], [0, 0]] * 3)
    >>> found.reduced.effects.round(2) + 0.0
    array([[2., 0.],
           [1., 3.]])
    >>> [finding.code for finding in found.findings]
    ['enough-rounds', 'separable', 'no-baseline']
    """
    data = checked_data(
        x,
        y,
        dose=dose,
        context=context,
        arms=arms,
        outcomes=outcomes,
        context_names=context_names,
        rounds=rounds,
    )
    averages = arm_averages(data)
    used = data.latest()
    reduced = reduced_form(used) if len(data.arms) <= MOST_ARMS else unknown_form(used)
    groups = groups_of(used, reduced)
    moved = context_moves(used) if len(data.arms) <= MOST_ARMS else np.zeros(len(data.arms), np.bool_)
    pooled = pooled_effect(used)
    return Assessment(
        arms=data.arms,
        rounds=len(data.x),
        known=int(data.known.sum()),
        unknowns=1 + data.context.shape[1] + len(data.arms),
        averages=averages,
        reduced=reduced,
        groups=groups,
        moved=moved,
        findings=(
            *findings_of(data, used, averages, reduced, groups),
            *context_findings(used, moved),
            *pooled_findings(pooled),
        ),
        pooled=pooled,
    )


def findings_of(
    data: Data, used: Data, averages: tuple[ArmAverages, ...], reduced: ReducedForm, groups: Groups
) -> list[Finding]:
    """All findings; of a table without outcomes only that they are missing."""
    found = [*size_findings(data)]
    if not data.known.any():
        return found
    return [
        *found,
        *choice_findings(used, groups, averages),
        *design_findings(used, groups, reduced),
        *timing_findings(used),
        *outcome_findings(used, reduced),
        *(outlier_findings(used) if len(data.arms) <= MOST_ARMS else ()),
        *total_findings(used),
    ]
