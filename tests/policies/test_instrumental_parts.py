"""Arms that report at different times: nothing is lost compared with waiting for the last one."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

import spillover as sp
from spillover.delays import ArmDelays

WORLD = sp.SyntheticSEM(
    n_arms=5, budget=2, edge_density=0.2, horizon=400, changes=(200,), baseline=True, noise=0.1, observes="overall"
)
LATE = ArmDelays((2, 5, 10, 20, 80))


@dataclass(frozen=True, kw_only=True)
class Waiting(sp.InstrumentalSEM):
    """Gets a round when its last arm has reported."""

    traits = sp.InstrumentalSEM.traits._replace(accepts_missing=False)


@pytest.mark.long
def test_learning_outcomes_as_they_arrive_loses_nothing_compared_with_waiting_for_the_last():
    given: dict[str, Any] = {"replications": 40, "seed": 0, "record": [WORLD.horizon]}
    in_parts, waiting = (sp.simulate(policy, WORLD, LATE, **given) for policy in (sp.InstrumentalSEM(), Waiting()))
    assert in_parts.final_regret.mean() < waiting.final_regret.mean()


def test_a_closed_round_leaves_no_pull_in_flight():
    """Arms that did not report never will; until the round is closed, they are still expected."""
    learner = sp.Learner(sp.InstrumentalSEM(), sp.Problem(3, 2, observes="overall", baseline=True), seed=1)
    learner.play([1, 1, 0])
    learner.report(1, y=[1.0, math.nan, 0.5])
    assert learner.explain().pending.tolist() == [0.0, 1.0, 0.0]
    learner.close(1)
    assert learner.explain().pending.tolist() == [0.0, 0.0, 0.0]
