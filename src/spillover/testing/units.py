"""The contract of units: rewards measured in other units give the same decisions, and estimates in these units."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spillover.contracts import Policy
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds
from spillover.testing.order import disagreement
from spillover.testing.shared import demand, demand_equal, rows_of
from spillover.testing.trial import SCATTERED, Trial, start_trial
from spillover.testing.wrappers import Wrapper
from spillover.types import Batch, BoolArray, Explanation, Feedback, Problem, State

FACTORS = (2.0**10, 2.0**-10)  # powers of two: only exponents change, so rounding cannot break a tie differently
AGREEMENT = 1e-6  # relative tolerance of estimates: the graph is solved to a tolerance of its own
IN_UNITS = (
    *("mean", "index", "score", "baseline", "context_effect", "direct_interval", "spill_interval", "total_interval"),
    *("effects", "effects_interval"),
)
WITHOUT_UNITS = ("count", "clock", "adjacency", "gain", "weights", "edge_probability", "edge_interval")


class InOtherUnits(Wrapper):
    """Gives the policy every reward, and the ranges of rewards, times a factor."""

    def __init__(self, policy: Policy, factor: float = 1.0) -> None:
        super().__init__(policy)
        self.factor = factor

    def around(self, inner: Policy) -> Policy:
        return InOtherUnits(inner, self.factor)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        overall = problem.overall_range
        scaled = problem._replace(
            reward_range=self.factor * np.asarray(problem.reward_range, float),
            overall_range=None if overall is None else self.factor * np.asarray(overall, float),
        )
        return super().init(scaled, rng, batch)

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return super().update(state, feedback._replace(z=self.factor * feedback.z, y=self.factor * feedback.y), rng)


def check_units(policy: Any, trial: Trial) -> None:
    """Rewards and their ranges times a factor give the same decisions, and estimates times that factor."""
    player = start_trial(policy, trial, 0)[0]
    if player.needs_world:  # it knows the rewards in the units of the world
        return
    remedy = "let bonuses, penalties and priors grow with the width of problem.reward_range"
    usual, known = run_in_units(policy, trial, 1.0)
    for factor in FACTORS:
        decisions, estimates = run_in_units(policy, trial, factor)
        broken = f"with rewards and ranges times {factor:g}"
        demand_equal({"x": decisions}, {"x": usual}, f"{broken} it decides differently", remedy)
        found = disagreement(estimates, known)
        demand(found is None, f"{broken} its estimates, divided by that, differ: {found}", remedy)


def run_in_units(policy: Any, trial: Trial, factor: float) -> tuple[BoolArray, dict[str, tuple[Any, float]]]:
    """The decisions of a run, (rounds, *batch, n), and the estimates after it, converted back, with a tolerance."""
    batch = (3,)
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    wrapped = InOtherUnits(player, factor)
    played = [(np.array(round.x), round.state) for round in rounds(wrapped, world, SCATTERED, rng, batch)]
    decisions = np.array([x for x, _ in played])
    if not player.explains:
        return decisions, {}
    found = player.explain(played[-1][1], rng.spread(batch).at(Purpose.CHOICE, len(played) + 1))
    return decisions, dict(estimates_of(found, factor if player.scores_have_units else 1.0))


def estimates_of(found: Explanation, factor: float) -> Iterator[tuple[str, tuple[Any, float]]]:
    """The arrays of an explanation, those in units of the reward divided by the factor."""
    for name in (*IN_UNITS, *WITHOUT_UNITS):
        value = getattr(found, name)
        if value is not None:
            yield name, (np.asarray(value, float) / (factor if name in IN_UNITS else 1.0), AGREEMENT)
