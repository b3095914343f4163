"""DAL, a change detector around any stationary policy (Gerogiannis, Huang, Bose and Veeravalli, arXiv:2501.19401)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Policy, Traits, as_policy, setting_of
from spillover.policies import find_policy
from spillover.policies.restarts import Detector, check_rates, empty_history
from spillover.policy_wrapper import PolicyWrapper
from spillover.rng import Rng
from spillover.state import leaves, unflatten
from spillover.types import Array, Batch, BoolArray, Choice, Constant, Feedback, IntArray, Problem, State
from spillover_studies.field.rivals.psemucb import tested


class DALState(NamedTuple):
    """The state of the policy inside, as it is and as it was at the start, and the detector's."""

    inner: State
    start: Constant[State]
    detector: Detector
    unit: Constant[Array]  # (*batch,): the largest payoff of an arm alone

    @property
    def rounds(self) -> IntArray:
        found: IntArray = self.inner.rounds
        return found

    @property
    def budget(self) -> IntArray:
        found: IntArray = self.inner.budget
        return found


@dataclass(frozen=True, kw_only=True)
class DAL(PolicyWrapper):
    """Tries each arm alone from time to time, tests the payoffs of these trials, and starts afresh after an alarm.

    The trials (the paper's covering set) keep a fixed decision, so that their payoff changes only if the world does.
    The test is the generalised likelihood ratio for values in [0, 1], payoffs in units of the range of y. Outcomes of
    rounds before an alarm are of the past, also if they arrive later: neither the test nor the policy gets them.

    policy: the policy inside, or its name. forced: share of the rounds that are trials. false_alarms: as in `GLRCUCB`.
    """

    policy: Any = "sem-ucb"
    forced: float = 0.05
    false_alarms: float = 1e-3

    @property
    def traits(self) -> Traits:
        quiet = self.inner.traits._replace(explains=False, learns_graph=False, randomised=False)
        return quiet._replace(order_free=False, accepts_missing=False)

    def __post_init__(self) -> None:
        check_rates(self.false_alarms, self.forced)
        named = isinstance(self.policy, str | Policy)
        known = named and not setting_of(self.inner).constraints and not self.inner.traits.uses_context
        validate.require(known, "policy", self.policy, "a policy without constraints and context, or its name")

    @property
    def inner(self) -> Policy:
        return as_policy(find_policy(self.policy)() if isinstance(self.policy, str) else self.policy)

    def around(self, inner: Policy) -> "DAL":
        return DAL(policy=inner, forced=self.forced, false_alarms=self.false_alarms)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> DALState:
        first, second = (self.inner.init(problem, rng.restarted(), batch) for _ in range(2))
        given = problem.reward_range if problem.overall_range is None else problem.overall_range
        unit = np.abs(validate.spread("overall_range", given, (*batch, 2))).max(axis=-1)
        return DALState(first, second, empty_history(problem.n_arms, batch), unit)

    def select(self, state: DALState, rng: Rng) -> Choice:
        choice, n = self.inner.select(state.inner, rng), state.detector.used.shape[-1]
        due = kernels.forced_arm(np.empty(n), state.rounds - state.detector.restart, self.forced)[..., None]
        return choice._replace(x=np.where(due >= 0, np.arange(n) == due, choice.x))

    def played(self, state: DALState, x: BoolArray) -> DALState:
        return state._replace(inner=self.inner.played(state.inner, x))

    def update(self, state: DALState, feedback: Feedback, rng: Rng) -> DALState:
        detector = state.detector
        news = feedback.arrived & (state.rounds - feedback.age > detector.restart)
        alone = feedback.x & (news & (feedback.x.sum(axis=-1) == 1))[..., None]
        payoff = np.clip(feedback.y.sum(axis=-1) / state.unit, 0.0, 1.0)[..., None] * alone
        histories, alarm = (detector.counts, detector.totals, detector.used), np.zeros(news.shape, np.bool_)
        for row in np.ndindex(news.shape):
            if alone[row].any():
                own = (leaf[row] for leaf in histories)
                alarm[row] = tested(*own, alone[row], payoff[row], 1.0, self.false_alarms)
        found = self.inner.update(state.inner, Feedback(*feedback)._replace(arrived=news), rng)
        if not alarm.any():
            return state._replace(inner=found)
        for leaf in histories:
            leaf[alarm] = 0
        restart = np.where(alarm, state.rounds, detector.restart)
        detector = detector._replace(restart=restart, alarms=detector.alarms + alarm)
        return state._replace(inner=restarted(found, state.start, alarm), detector=detector)

    def signals(self, state: DALState) -> dict[str, Any]:
        return {"changes_seen": state.detector.alarms}


def restarted(state: State, start: State, rows: BoolArray) -> State:
    """The state with the given rows as at the start, but for the number of rounds."""
    fresh, rounds = leaves(start), state.rounds
    mixed = {
        name: np.where(rows[(...,) + (None,) * (leaf.ndim - rows.ndim)], fresh[name], leaf)
        for name, leaf in leaves(state).items()
    }
    found = unflatten(start, mixed)
    return found._replace(rounds=rounds) if "rounds" in found._fields else found
