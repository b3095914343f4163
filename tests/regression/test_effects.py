"""Effects by a regression: what was simulated is found, whatever else moves the outcomes."""

import numpy as np
import pytest

from spillover.regression import Effects, Structure, estimate_effects
from spillover.regression.effects import HELPFUL, Candidate, likely_helpful, worth_averaging
from spillover.regression.robust import without_outliers
from spillover.regression.sparse import sparse_effects
from spillover.regression.structure import Table

SIZES = np.array([2.0, 1.0, 0.5, 0.0])


def estimated(x, y, **options) -> Effects:
    context = options.get("context", np.zeros((len(x), 0)))
    return estimate_effects(np.asarray(x, float), y, context, options.get("coming", np.zeros(context.shape[1])))


def simulated(rounds=120, noise=0.3, seed=0, effects=SIZES):
    rng = np.random.default_rng(seed)
    x = rng.random((rounds, len(effects))) < 0.4
    return x, 10.0 + x @ effects + noise * rng.normal(size=rounds), rng


def deviations(found: Effects):
    return np.sqrt(np.diag(found.covariance))


def test_plain_effects_and_nothing_else() -> None:
    x, y, _ = simulated()
    found = estimated(x, y[:, None])
    assert found.total == pytest.approx(SIZES, abs=0.25)
    assert (np.abs(found.total - SIZES) < 3 * deviations(found)).all()
    assert found.probability_of("trend", "level", "drift", "changes", "lags") < 0.2
    assert found.noise == pytest.approx(0.09, rel=0.5)
    assert found.baseline == pytest.approx([10.0], abs=0.3)


def test_growth_is_no_effect() -> None:
    _, _, rng = simulated()
    often = np.linspace(0.1, 0.9, 120)
    x = rng.random((120, 4)) < np.column_stack([often, often[::-1], np.full((120, 2), 0.4)])
    y = 10 + 0.05 * np.arange(120) + x @ SIZES + 0.3 * rng.normal(size=120)
    found = estimated(x, y[:, None])
    assert found.probability_of("trend", "level") > 0.9
    assert found.total == pytest.approx(SIZES, abs=0.35)


def test_later_effects_are_added_up() -> None:
    x, y, _ = simulated(rounds=200)
    y[1:] -= 0.5 * (x @ SIZES)[:-1]
    y[2:] += 0.2 * (x @ SIZES)[:-2]
    found = estimated(x, y[:, None])
    assert found.later_rounds == 2
    assert found.total == pytest.approx(0.7 * SIZES, abs=0.35)


def test_effects_that_changed_are_those_of_now() -> None:
    x, y, _ = simulated(rounds=200, noise=0.2)
    y[:120] += x[:120] @ (SIZES[::-1] - SIZES)
    found = estimated(x, y[:, None])
    assert found.probability_of("changes", "drift") > 0.9
    assert found.total == pytest.approx(SIZES, abs=0.3)


def test_a_few_wild_outcomes_do_not_matter() -> None:
    x, y, _ = simulated()
    y[::17] += 200.0
    found = estimated(x, y[:, None])
    assert found.total == pytest.approx(SIZES, abs=0.4)


def test_saturation_is_found() -> None:
    _, _, rng = simulated()
    amounts = (rng.random((200, 4)) < 0.5) * rng.gamma(1.5, 1 / 1.5, (200, 4))
    y = 10 + np.sqrt(amounts) @ SIZES + 0.2 * rng.normal(size=200)
    found = estimated(amounts, y[:, None])
    assert found.power < 0.6
    assert found.total == pytest.approx(SIZES, abs=0.25)
    straight = estimated(amounts, (10 + amounts @ SIZES + 0.2 * rng.normal(size=200))[:, None])
    assert straight.power > 0.9


def test_a_context_that_moves_effects() -> None:
    x, y, rng = simulated(rounds=300)
    context = rng.normal(size=(300, 1))
    y += 3.0 * context[:, 0] + x[:, 0] * context[:, 0]
    found = estimated(x, y[:, None], context=context, coming=np.array([1.5]))
    assert found.total == pytest.approx(np.add(SIZES, [1.5, 0, 0, 0]), abs=0.4)
    assert found.moved[0] == pytest.approx(1.5, abs=0.4)


def several(seed=0, rounds=150, noise=0.3):
    rng = np.random.default_rng(seed)
    effects = np.diag([1.0, 0.8, 0.6, 0.4, 0.9])
    effects[1, 0], effects[3, 2] = 0.5, -0.4
    x = rng.random((rounds, 5)) < 0.4
    shared = 0.5 * rng.normal(size=(rounds, 1))
    return x, 4.0 + x @ effects.T + shared + noise * rng.normal(size=(rounds, 5)), effects


def test_effects_on_the_outcomes_of_other_arms() -> None:
    x, y, effects = several()
    found = estimated(x, y)
    assert found.effects == pytest.approx(effects, abs=0.25)
    assert found.total == pytest.approx(effects.sum(axis=0), abs=0.3)
    assert found.total == pytest.approx(found.effects.sum(axis=0))
    edges = found.probability[~np.eye(5, dtype=bool)]
    assert found.probability[1, 0] > 0.9
    assert found.probability[3, 2] > 0.9
    assert np.sort(edges)[:-2].mean() < 0.2


def test_what_outcomes_share_is_taken_out() -> None:
    x, y, effects = several(rounds=80)
    errors = []
    for outcomes in (y, y - y.mean(axis=1, keepdims=True) + 4.0):
        assert np.isfinite(estimated(x, outcomes).covariance).all()
        errors.append(deviations(estimated(x, outcomes)).mean())
    plain = np.linalg.lstsq(np.column_stack([x, np.ones(80)]), y.sum(axis=1), rcond=None)[0][:5]
    assert np.abs(estimated(x, y).total - effects.sum(axis=0)).mean() < np.abs(plain - effects.sum(axis=0)).mean()


def test_missing_outcomes_are_left_out() -> None:
    x, y, effects = several()
    y[::7, 0], y[::5] = np.nan, np.nan
    found = estimated(x, y)
    assert found.total == pytest.approx(effects.sum(axis=0), abs=0.35)


def test_outcomes_that_are_not_known_are_no_data() -> None:
    inside, widths = [], []
    for seed in range(12):
        x, y, effects = several(seed)
        missing = np.random.default_rng(100 + seed).random(y.shape) < 0.6
        found, whole = estimated(x, np.where(missing, np.nan, y)), estimated(x, y)
        inside += (np.abs(found.total - effects.sum(axis=0)) < 2.0 * deviations(found)).tolist()
        widths.append(deviations(found).mean() / deviations(whole).mean())
    assert np.mean(inside) >= 0.88  # of 60
    assert np.mean(widths) > 1.2  # 60% of the information is missing


def test_an_own_effect_that_is_never_seen_is_that_of_the_others() -> None:
    x, y, _ = several()
    y[~x[:, 4], 4] = np.nan  # of the last arm, outcomes are known only where it was chosen
    found = estimated(x, y)
    assert found.effects[4, 4] == pytest.approx(0.7, abs=0.4)  # the others': 1, 0.8, 0.6 and 0.4
    assert found.deviations[4, 4] > 3 * found.deviations[0, 0]


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_outcomes_with_hardly_any_noise_have_narrow_intervals(noise, seed) -> None:
    x, _, effects = several(seed)
    own = np.diag(effects)
    y = 3.0 + x * own + noise * np.random.default_rng(seed).normal(size=x.shape)
    for outcomes in (y, y.sum(axis=1, keepdims=True)):
        found = estimated(x, outcomes)
        assert found.total == pytest.approx(own, abs=1e-3)
        assert deviations(found).max() < 1e-3  # rounding is no evidence of a late change of an arm


def test_context_columns_that_depend_on_each_other_are_those_without() -> None:
    x, y, rng = simulated()
    one = rng.normal(size=(120, 1))
    plain = estimated(x, y[:, None], context=one)
    copied = estimated(x, y[:, None], context=np.hstack([one, np.zeros((120, 1))]))
    assert copied.total == pytest.approx(plain.total, abs=1e-6)
    assert deviations(copied) == pytest.approx(deviations(plain), rel=1e-6)


def test_powers_are_compared_by_the_same_outcomes() -> None:
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        amounts = (rng.random((50, 4)) < 0.5) * rng.gamma(3, 1 / 3, (50, 4))
        y = 10 + amounts @ SIZES + 0.5 * rng.standard_t(1.5, 50)
        errors.append((estimated(amounts, y[:, None]).power - 1.0) ** 2)
    assert np.mean(errors) < 0.01


def test_the_order_of_arms_and_the_unit_of_outcomes_do_not_matter() -> None:
    x, y, _ = several(rounds=60)
    order = np.array([3, 0, 4, 1, 2])
    found, other = estimated(x, y), estimated(x[:, order], 1e6 * y[:, order])
    assert other.total == pytest.approx(1e6 * found.total[order], rel=1e-3)
    assert deviations(other) == pytest.approx(1e6 * deviations(found)[order], rel=1e-3)


@pytest.mark.parametrize("rounds", [4, 5, 9])
@pytest.mark.parametrize("outcomes", [1, 3])
def test_few_rounds_give_finite_answers(rounds, outcomes) -> None:
    rng = np.random.default_rng(rounds)
    x = rng.random((rounds, 3)) < 0.5
    for y in (rng.normal(size=(rounds, outcomes)), np.ones((rounds, outcomes)), x @ np.ones((3, outcomes))):
        found = estimated(x, y)
        assert np.isfinite(found.total).all()
        assert (np.diag(found.covariance) >= 0).all()


def test_differences_are_known_where_one_arm_is_chosen_in_each_round() -> None:
    rng = np.random.default_rng(0)
    x = np.eye(4, dtype=bool)[rng.integers(0, 4, 200)]
    y = 5 + x @ SIZES + 0.3 * rng.normal(size=200)
    plain = estimated(x, y[:, None])
    found = plain.compared_with_average()
    assert found.total == pytest.approx(SIZES - SIZES.mean(), abs=0.2)
    assert (deviations(found) < 0.2 * deviations(plain)).all()
    assert found.total.sum() == pytest.approx(0.0, abs=1e-9)


def test_arms_help_on_average_more_probably_than_not() -> None:
    total, covariance = np.array([-0.2, 0.3, 0.1]), 0.3 + np.diag([0.2, 0.4, 0.1])
    draws = np.random.default_rng(0).multivariate_normal(total, covariance, 400_000)
    weight = np.where(draws.mean(axis=1) > 0, HELPFUL, 1.0 - HELPFUL)
    mean, spread = likely_helpful(total, covariance)
    assert mean == pytest.approx(np.average(draws, axis=0, weights=weight), abs=0.01)
    assert spread == pytest.approx(np.cov(draws.T, aweights=weight), abs=0.01)


def test_a_structure_is_no_more_probable_for_being_tried_often() -> None:
    x, y, _ = simulated()
    table = Table(np.asarray(x, float), y[:, None], np.zeros((120, 0)))
    plain, growing = Structure(), Structure(trend=0.1)
    once = [Candidate(0.0, 1.0, table, plain), Candidate(1.0, 1.0, table, growing)]
    often = [*once, *(Candidate(0.0, 1.0, table, plain._replace(own=size)) for size in (0.1, 1.0, 3.0))]
    for found in (once, often):
        kept, weights = worth_averaging(found)
        growth = sum(weight for one, weight in zip(kept, weights.tolist(), strict=True) if one.structure.trend)
        assert growth == pytest.approx(np.e / (1 + np.e))


def test_changes_at_many_times_count_together() -> None:
    x, y, _ = simulated()
    table = Table(np.asarray(x, float), y[:, None], np.zeros((120, 0)))
    never = Candidate(0.0, 1.0, table, Structure())
    changed = [Candidate(np.log(0.01), 1.0, table, Structure(changes=(ago,))) for ago in range(10, 40)]
    kept, weights = worth_averaging([never, *changed])
    assert weights[[not one.structure.changes for one in kept]] == pytest.approx([1.0 / 1.3])


def test_sparse_effects_of_an_orthogonal_design_are_shrunk_alone() -> None:
    n, rounds = 6, 400.0
    truth = np.eye(n)
    truth[2, 4] = 0.7
    found = sparse_effects(np.repeat(rounds * np.eye(n)[None], n, axis=0), rounds * truth, np.full(n, 0.25))
    assert found.effects == pytest.approx(truth, abs=0.01)
    assert found.probability[2, 4] > 0.99
    assert (found.probability[truth == 0] < 0.1).all()


def test_outcomes_without_outliers_stay_as_they_are() -> None:
    x, y, _ = simulated()
    fitted = 10.0 + (x @ SIZES)[:, None]
    assert (without_outliers(y[:, None], fitted) == y[:, None]).all()
    wild = y.copy()
    wild[3] += 100.0
    tamed = without_outliers(wild[:, None], fitted)[:, 0]
    assert abs(tamed[3] - y[3]) < 5.0
    assert np.abs(np.delete(tamed - y, 3)).max() < 1.0
