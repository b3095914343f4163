"""A policy learns from any table: it gets what the table has, and only that."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.history import read_history, replay_history
from spillover.types import Choice, Problem
from tests.history.tables import LONG, PAYOFF, WIDE, changed, without


@dataclass(frozen=True, kw_only=True)
class Recorder(sp.Policy):
    """Remembers the problem, the contexts and the feedback that it got."""

    seen: list[Any] = field(default_factory=list)
    missing: bool = True
    amounts: bool = True

    rewards: bool = False

    needs_outcomes = False

    @property
    def needs_rewards(self) -> bool:
        return self.rewards

    @property
    def accepts_missing(self) -> bool:
        return self.missing

    @property
    def accepts_doses(self) -> bool:
        return self.amounts

    def for_problem(self, problem: Problem) -> "Recorder":
        self.seen.append(problem)
        return self

    def init(self, problem, rng, batch=()):
        return np.zeros(problem.n_arms)

    def observe(self, state, context):
        self.seen.append(np.array(context))
        return state

    def select(self, state, rng) -> Choice:
        return Choice(np.zeros(len(state), np.bool_))

    def played(self, state, x):
        return state

    def update(self, state, feedback, rng):
        self.seen.append(feedback)
        return state

    @property
    def feedback(self):
        return [one for one in self.seen if isinstance(one, sp.Feedback)]

    @property
    def problem(self) -> Problem:
        return next(one for one in self.seen if isinstance(one, Problem))

    @property
    def contexts(self):
        return [one for one in self.seen if isinstance(one, np.ndarray)]


def learned(table, budget=1, policy=None, **options):
    policy = policy or Recorder()
    return policy, replay_history(policy, read_history(table, **options), budget=budget)


def test_a_table_without_z() -> None:
    policy, learner = learned(WIDE)
    assert policy.problem[:2] == (2, 1)
    assert (policy.problem.observes, policy.problem.context, policy.problem.baseline) == ("overall", 0, True)
    assert learner.rounds == len(policy.feedback) == 8
    assert all(np.isnan(one.z).all() for one in policy.feedback)
    sales = zip(WIDE["sales_north"], WIDE["sales_south"], strict=True)
    assert [one.y.tolist() for one in policy.feedback] == [list(pair) for pair in sales]


def test_one_outcome_for_all_arms() -> None:
    policy, _ = learned(PAYOFF)
    assert policy.problem.observes == "payoff"
    assert [one.y[0] for one in policy.feedback] == PAYOFF["revenue"]


def test_the_context_is_standardised_and_that_of_the_coming_round_is_observed() -> None:
    policy, learner = learned(WIDE, context="temp", next_context={"temp": 4.5})
    assert policy.problem.context == 1
    values = np.concatenate([one.context for one in policy.feedback])
    np.testing.assert_allclose([values.mean(), values.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(policy.contexts[-1], 0, atol=1e-12)
    assert learner.context is not None
    np.testing.assert_allclose(policy.contexts[1:-1], values[:, None])


def test_doses_are_passed_on() -> None:
    table = without(PAYOFF, "tv", "radio") | {"tv_spend": [10.0, 0, 20, 0, 30, 0, 0, 20], "ooh_spend": [1.0, 0] * 4}
    policy, _ = learned(table, doses=True)
    assert [one.dose[1] for one in policy.feedback] == [0.5, 0, 1, 0, 1.5, 0, 0, 1]
    with pytest.raises(ValueError, match="must be one that learns from amounts"):
        learned(table, policy=Recorder(amounts=False), doses=True)


def test_missing_outcomes_reach_only_policies_that_accept_them() -> None:
    table = changed(WIDE, sales_north=[None, *WIDE["sales_north"][1:]])
    policy, learner = learned(table)
    assert len(policy.feedback) == 8
    assert np.isnan(policy.feedback[0].y).tolist() == [True, False]
    assert learner.pending == []
    strict, late = learned(table, policy=Recorder(missing=False))
    assert len(strict.feedback) == 7
    assert not any(np.isnan(one.y).any() for one in strict.feedback)
    assert late.pending == [1]


def test_pending_rounds_stay_pending() -> None:
    table = {name: [*values[:7], None] if name.startswith("sales") else values for name, values in WIDE.items()}
    policy, learner = learned(table)
    assert learner.pending == [8]
    assert len(policy.feedback) == 7


def test_a_policy_that_needs_z_is_refused() -> None:
    with pytest.raises(ValueError, match="the instantaneous rewards z"):
        learned(LONG, policy=Recorder(rewards=True))


def test_the_recommended_policy_learns_from_every_kind_of_table() -> None:
    for table, options in ((WIDE, {}), (PAYOFF, {}), (WIDE, {"context": "temp"}), (LONG, {"minimise": True})):
        history = read_history(table, **options)
        learner = replay_history(sp.SwitchingSEM(), history, budget=1)
        assert learner.choose().sum() <= 1


def test_the_answer_does_not_depend_on_units_or_names_or_the_order_of_rows() -> None:
    def scores(table, **options):
        history = read_history(table, **options)
        learner = replay_history(sp.SwitchingSEM(), history, budget=1)
        return dict(zip(history.arms, learner.explain().mean.tolist(), strict=True))

    first = scores(LONG)
    order = np.random.default_rng(0).permutation(16)
    mixed = scores({name: [values[k] for k in order] for name, values in reversed(LONG.items())})
    assert mixed == first
    assert scores(WIDE | {"week": PAYOFF["date"]}, columns="context=") == first
    cents = scores(changed(LONG, orders=[100 * value for value in LONG["orders"]]))
    assert cents == pytest.approx({name: 100 * value for name, value in first.items()}, rel=1e-6)
    renamed = scores(changed(LONG, region=["zebra" if name == "north" else name for name in LONG["region"]]))
    assert [renamed["zebra"], renamed["south"]] == pytest.approx([first["north"], first["south"]], rel=1e-6)
