"""Whether the data can tell yet which arms are best."""

from dataclasses import replace

import numpy as np
import pytest

import spillover as sp
from spillover.assessment import assess
from spillover.assessment.findings import WARNING, Finding
from spillover.constraints import Unavailable
from spillover.reasons import reasons
from spillover.recommendation.clarity import HORIZON, best_trial, probability_of_wrong, unclear, value_of_learning
from spillover.recommendation.estimates import graph_of
from spillover.regression import estimate_effects
from tests.assessment.worlds import table
from tests.recommendation.answers import explanation
from tests.recommendation.histories import answer, history

EFFECTS = np.diag([1.0, 0.5, 0.4])
BEST = np.array([True, False, False])


def why(x=None, y=None, *, sees_rewards=False, best=BEST, said=(), **options):
    if x is None:
        x, y, _ = table(0, arms=3, effects=EFFECTS)
    known = explanation(EFFECTS, **options)
    found = reasons(known, arms=list("abc"), budget=int(best.sum()))
    assessment = assess(x, y, arms="abc")
    assessment = replace(assessment, findings=(*assessment.findings, *said))
    return list(unclear(found, replace(known, chosen=best), assessment, sees_rewards=sees_rewards))


def test_clear_where_the_best_is_known_to_be_better() -> None:
    assert why() == []


def test_intervals_that_overlap() -> None:
    (reason,) = why(half_width=2.0)
    assert reason.startswith("with a probability of 0.")
    assert reason.endswith(", another choice would bring at least a third more")


def test_the_probability_is_that_of_losing_a_quarter_of_the_best() -> None:
    known = explanation(EFFECTS, half_width=0.8 / np.sqrt(3))
    draws = np.diagonal(EFFECTS) + 0.8 / 1.96 * np.random.default_rng(1).normal(size=(200_000, 3))
    most = np.maximum(draws.max(axis=1), 0.0)
    expected = (most - draws[:, 0] > 0.25 * most).mean()
    found = probability_of_wrong(reasons(known, budget=1), replace(known, chosen=BEST))
    assert found == pytest.approx(expected, abs=0.06)


def test_errors_that_arms_share_do_not_make_the_best_unclear() -> None:
    known = explanation(EFFECTS, half_width=2.0)
    shared = replace(known, chosen=BEST, total_covariance=np.ones((3, 3)))
    assert probability_of_wrong(reasons(known, budget=1), shared, relative=True) == 0.0
    alone = replace(known, chosen=BEST, total_covariance=np.eye(3))
    assert probability_of_wrong(reasons(known, budget=1), alone, relative=True) > 0.2


def test_draws_are_as_wide_as_the_intervals() -> None:
    narrow = explanation(EFFECTS, half_width=0.3)
    wide = explanation(EFFECTS, half_width=0.9)  # as by a t distribution with few degrees of freedom
    covariance = np.eye(3) * (0.3 * np.sqrt(3) / 1.96) ** 2
    found = [
        probability_of_wrong(reasons(known, budget=1), replace(known, chosen=BEST, total_covariance=covariance))
        for known in (narrow, wide)
    ]
    assert found[0] < 0.15 < 0.25 < found[1]


def test_too_few_rounds_arms_together_and_constant_outcomes() -> None:
    x, y, _ = table(1, arms=3, effects=EFFECTS)
    assert why(x[:4], y[:4]) == ["4 rounds with outcomes for 4 unknowns"]
    assert why(x[:4], y[:4], sees_rewards=True) == []
    x[:, 1] = x[:, 0]
    (reason,) = why(x, y)
    assert reason == "a and b were always chosen together, so which of them works is not known"
    assert why(x, y, best=np.array([True, True, False])) == []
    x[:, 0] = True
    assert "a was chosen in every round" in why(x, y)
    assert why(x, np.ones_like(y))[0] == "all outcomes are the same"


def test_not_clear_where_effects_may_have_changed_again_or_a_pair_may_be_better() -> None:
    (reason,) = why(said=[Finding("changes", WARNING, "Effects have changed.")])
    assert reason == "effects have changed, and a change in the last 6 rounds could not be seen yet"
    assert why(said=[Finding("pair", WARNING, "b and c bring less.", ("b", "c"))]) == []
    for code, arms in (("pair", ("a", "b")), ("pair-together", ("b", "c"))):
        assert why(said=[Finding(code, WARNING, "", arms)]) == ["effects of some pairs of arms do not add up"]


def test_nothing_is_known_without_outcomes() -> None:
    x, y, _ = table(0, arms=3, effects=EFFECTS)
    assert why(np.zeros_like(x), y, known=[False] * 3) == ["no arm has an outcome yet"]
    assert why(known=[False] * 3) == []  # a policy that learns nothing


def test_arms_that_cannot_be_chosen_are_no_rivals() -> None:
    past = history(effects=np.diag([9.0, 2.0, 0.5]))
    said = {"effects": np.diag([9.0, 2.0, 0.5]), "half_width": 0.2}
    clear = answer(past, **said, constraints=[Unavailable(["a"])])
    assert (clear.greedy, clear.not_yet) == (("b",), ())
    alone = answer(past, **said, constraints=[Unavailable(["a", "c"])])
    assert (alone.greedy, alone.not_yet) == (("b",), ())


# --- Trials: what an arm that looks worse may bring, and what finding out costs -------------------------------------


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


def noisy_table(noise: float):
    rng = np.random.default_rng(1)
    x = rng.random((30, 3)) < 0.5
    sales = 20 + x @ [3.0, 2.6, 0.0] + noise * rng.normal(size=30)
    names = ("bread", "eggs", "fish")
    return {"week": range(30)} | {f"promo_{name}": x[:, j] for j, name in enumerate(names)} | {"sales": sales}


def test_a_trial_is_priced_and_taken_only_when_asked_for() -> None:
    found = sp.next_decision(noisy_table(1.5), budget=1)
    trial = found.trial
    assert trial is not None
    assert found.choose == list(found.greedy)
    assert trial.instead_of == found.choose[0]
    assert 0 < trial.cost < trial.brings
    assert trial.horizon == HORIZON
    assert f"Trying {trial.arm} instead of {trial.instead_of} " in str(found)
    assert "(--explore)." in str(found)
    assert found.to_dict()["trial"]["arm"] == trial.arm
    explored = sp.next_decision(noisy_table(1.5), budget=1, explore=True)
    assert explored.choose == [trial.arm]
    assert "to learn m" in str(explored).splitlines()[0]


def test_there_is_nothing_to_try_where_effects_are_known() -> None:
    found = sp.next_decision(noisy_table(0.01), budget=1)
    assert found.trial is None
    assert sp.next_decision(noisy_table(0.01), budget=1, explore=True).choose == found.choose == ["bread"]


def test_an_arm_that_was_always_chosen_is_not_worth_a_trial() -> None:
    always = noisy_table(1.0) | {"promo_fish": np.ones(30, int)}
    found = sp.next_decision(always, budget=1)
    assert found.choose == ["bread"]
    assert found.trial is None or found.trial.arm == "eggs"


def test_a_trial_takes_the_place_that_limits_allow() -> None:
    x = np.random.default_rng(0).random((30, 3)) < 0.5
    found = estimate_effects(x.astype(float), x.sum(axis=1, keepdims=True), np.zeros((30, 0)), np.zeros(0))
    unsure = found._replace(covariance=np.eye(3), noise=0.1, average=np.full(3, 0.5))
    score, best = np.array([1.0, 0.9, 0.8]), np.array([True, True, False])
    free = best_trial(score, best, 2, unsure, lambda trial: True)
    bound = best_trial(score, best, 2, unsure, lambda trial: bool(trial[1]))
    assert free is not None
    assert bound is not None
    assert (free[:2], bound[:2]) == ((2, 1), (2, 0))
    assert bound[2].cost / bound[2].rounds == pytest.approx(0.2)
    assert best_trial(score, best, 2, unsure, lambda trial: False) is None


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_constant_outcomes_are_no_reason_to_try_anything(level) -> None:
    found = sp.next_decision(noisy_table(1.0) | {"sales": np.full(30, level)}, budget=1)
    assert found.trial is None
    assert found.not_yet == ("all outcomes are the same",)


def test_an_arm_that_costs_nothing_to_try() -> None:
    twins = noisy_table(1.0)
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
