"""Trials: what an arm that looks worse may bring, and what finding out costs."""

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Include
from spillover.recommendation.estimates import graph_of
from spillover.recommendation.trial import HORIZON, value_of_learning


def test_the_value_of_learning_is_what_simulated_trials_bring() -> None:
    rng = np.random.default_rng(0)
    mean, covariance = np.array([1.0, 0.8, 0.5]), np.array([[0.2, 0.05, 0.0], [0.05, 0.3, 0.1], [0.0, 0.1, 0.2]])
    effects = rng.multivariate_normal(mean, covariance, 400_000)
    noise, shown = 0.4, np.array([-0.3, 0.7, 0.5])
    seen = (effects - mean) @ shown + rng.normal(0, np.sqrt(noise), len(effects))
    gain = covariance @ shown / (shown @ covariance @ shown + noise)
    later = mean + seen[:, None] * gain
    expected = later[:, :2].max(axis=1).mean() - mean.max()
    compared = np.array([-1.0, 1.0, 0.0])
    assert value_of_learning(covariance, compared, shown, 0.2, noise) == pytest.approx(expected, abs=0.003)


def table(noise: float):
    rng = np.random.default_rng(1)
    x = rng.random((30, 3)) < 0.5
    sales = 20 + x @ [3.0, 2.6, 0.0] + noise * rng.normal(size=30)
    names = ("bread", "eggs", "fish")
    return {"week": range(30)} | {f"promo_{name}": x[:, j] for j, name in enumerate(names)} | {"sales": sales}


def test_a_trial_is_priced_and_taken_only_when_asked_for() -> None:
    found = sp.next_decision(table(1.0), budget=1)
    trial = found.trial
    assert trial is not None
    assert found.choose == list(found.greedy)
    assert trial.instead_of == found.choose[0]
    assert 0 < trial.cost < trial.brings
    assert trial.horizon == HORIZON
    assert f"Trying {trial.arm} instead of {trial.instead_of} " in str(found)
    assert "(--explore)." in str(found)
    assert found.to_dict()["trial"]["arm"] == trial.arm
    explored = sp.next_decision(table(1.0), budget=1, explore=True)
    assert explored.choose == [trial.arm]
    assert "to learn m" in str(explored).splitlines()[0]


def test_there_is_nothing_to_try_where_effects_are_known() -> None:
    found = sp.next_decision(table(0.01), budget=1)
    assert found.trial is None
    assert sp.next_decision(table(0.01), budget=1, explore=True).choose == found.choose == ["bread"]


def test_an_arm_that_was_always_chosen_is_not_worth_a_trial() -> None:
    always = table(1.0) | {"promo_fish": np.ones(30, int)}
    found = sp.next_decision(always, budget=1)
    assert found.choose == ["bread"]
    assert found.trial is None or found.trial.arm == "eggs"


def test_a_trial_takes_the_place_that_limits_allow() -> None:
    alike = table(1.0)
    chosen = sum(np.asarray(alike[f"promo_{name}"], float) for name in ("bread", "eggs", "fish"))
    alike |= {"sales": 20 + chosen + np.random.default_rng(2).normal(size=30)}
    free = sp.next_decision(alike, budget=2)
    assert free.trial is not None
    assert free.trial.instead_of is not None
    bound = sp.next_decision(alike, budget=2, constraints=[Include([free.trial.instead_of])])
    assert bound.choose == free.choose
    assert bound.trial is not None
    assert bound.trial.instead_of in set(free.choose) - {free.trial.instead_of}


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_constant_outcomes_are_no_reason_to_try_anything(level) -> None:
    found = sp.next_decision(table(1.0) | {"sales": np.full(30, level)}, budget=1)
    assert found.trial is None
    assert found.not_yet == ("all outcomes are the same",)


def test_an_arm_that_costs_nothing_to_try() -> None:
    twins = table(1.0)
    twins["promo_eggs"] = twins["promo_bread"]
    found = sp.next_decision(twins, budget=1)
    assert found.trial is not None
    assert {found.trial.arm, found.trial.instead_of} == {"bread", "eggs"}
    assert " costs nothing and is expected to bring " in str(found)


def test_effects_and_their_graph_say_the_same() -> None:
    rng = np.random.default_rng(0)
    effects = np.diag([1.0, 2.0, 0.5]) + 0.2 * rng.normal(size=(3, 3))
    direct, graph = graph_of(effects)
    assert np.linalg.inv(np.eye(3) - graph) * direct == pytest.approx(effects)
    assert np.diagonal(graph) == pytest.approx(np.zeros(3), abs=1e-12)
    own, none = graph_of(np.ones((3, 3)))
    assert np.isnan(none).all()
    assert own == pytest.approx(np.ones(3))
