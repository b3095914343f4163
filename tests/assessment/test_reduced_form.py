"""The reference regression against textbook formulas."""

import numpy as np
import pytest

from spillover.assessment import assess
from tests.assessment.worlds import table


def textbook(x, y, c):
    """Least squares with all columns at once, and the HC3 sandwich as matrices."""
    design = np.column_stack([np.ones(len(x)), c, x])
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ y
    residual = y - design @ coefficients
    leverage = np.einsum("tp,pq,tq->t", design, inverse, design)
    meat = (design * (residual / (1 - leverage))[:, None] ** 2).T @ design
    k = 1 + c.shape[1]
    return coefficients[k:], np.sqrt(np.diagonal(inverse @ meat @ inverse))[k:], residual


@pytest.mark.parametrize("context", [0, 2])
def test_effects_and_errors_are_those_of_the_textbook(context) -> None:
    x, y, c = table(1, context=context, baseline=5.0)
    found = assess(x, y, context=c).reduced
    for i in range(4):
        effects, errors, residual = textbook(x, y[:, i], c)
        assert found.effects[i] == pytest.approx(effects, abs=1e-10)
        assert found.errors[i] == pytest.approx(errors, abs=1e-10)
        assert found.residuals[:, i] == pytest.approx(residual, abs=1e-10)
    for j in range(4):
        rest = np.delete(y, j, axis=1).sum(axis=1)
        for sums, effect, error in ((y[:, j], found.own, found.own_error), (rest, found.spill, found.spill_error)):
            expected = textbook(x, sums, c)
            assert (effect[j], error[j]) == pytest.approx((expected[0][j], expected[1][j]), abs=1e-10)
    assert found.identified.all()


def test_variance_inflation_is_one_over_one_minus_r_squared() -> None:
    x, y, c = table(2, context=1)
    x[:, 1] = np.where(np.arange(len(x)) % 4, x[:, 0], x[:, 1])
    found = assess(x, y, context=c).reduced
    for j in range(4):
        others = np.column_stack([np.ones(len(x)), c, np.delete(x, j, axis=1)])
        rest = x[:, j] - others @ np.linalg.lstsq(others, x[:, j].astype(float), rcond=None)[0]
        share = 1 - rest @ rest / ((x[:, j] - x[:, j].mean()) ** 2).sum()
        assert found.inflation[j] == pytest.approx(1 / (1 - share))


def test_each_outcome_uses_the_rounds_in_which_it_is_known() -> None:
    x, y, c = table(3)
    y[:40, 2] = np.nan
    y[7] = np.nan
    found = assess(x, y).reduced
    for i in range(4):
        known = np.isfinite(y[:, i])
        assert found.effects[i] == pytest.approx(textbook(x[known], y[known, i], c[known])[0], abs=1e-10)
    known = np.isfinite(y).all(axis=1)
    assert found.total == pytest.approx(textbook(x[known], y[known].sum(axis=1), c[known])[0], abs=1e-10)
    assert found.rounds == known.sum() == 80


def test_a_constant_budget_leaves_differences_between_arms() -> None:
    effects = np.diag([1.0, 2.0, 3.0, 4.0])
    x, y, _ = table(4, effects=effects, budget=2, noise=0.0, baseline=10.0)
    found = assess(x, y).reduced
    assert not found.identified.any()
    assert found.effects == pytest.approx(effects - effects.mean(axis=1, keepdims=True), abs=1e-9)


def test_arms_chosen_together_share_the_sum() -> None:
    x, y, _ = table(5, effects=np.diag([1.0, 2.0, 3.0, 4.0]), noise=0.0)
    x[:, 1] = x[:, 0]
    y = x @ np.diag([1.0, 2.0, 3.0, 4.0])
    found = assess(x, y).reduced
    assert found.identified.tolist() == [False, False, True, True]
    assert found.total == pytest.approx([1.5, 1.5, 3.0, 4.0], abs=1e-9)


def test_an_arm_that_was_never_chosen_has_no_effect_to_report() -> None:
    x, y, _ = table(6)
    x[:, 3] = False
    found = assess(x, y).reduced
    assert np.isnan(found.effects[:, 3]).all()
    assert np.isfinite(found.effects[:, :3]).all()


def test_amounts_replace_choices() -> None:
    x, _, _ = table(7)
    dose = np.random.default_rng(0).uniform(0.5, 2, x.shape)
    y = (x * dose) @ np.diag([1.0, 2.0, 3.0, 4.0])
    assert assess(x, y, dose=dose).reduced.own == pytest.approx([1, 2, 3, 4], abs=1e-9)


@pytest.mark.long
def test_two_standard_errors_cover_the_truth() -> None:
    effects = np.diag([1.0, 0.5, 0.2, 0.0]) + 0.1
    covered = []
    for seed in range(2000):
        x, y, c = table(seed, rounds=40, effects=effects, context=1)
        found = assess(x, y, context=c).reduced
        covered.append(np.abs(found.effects - effects) < 2 * found.errors)
    assert 0.94 < np.mean(covered) < 0.98
