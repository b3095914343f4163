"""The Covid-19 study: preparation and the two worlds, on the simulated outbreak and on the record where it is."""

import os
from functools import cache

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import ScoredWorld, World
from spillover.rng import Purpose
from spillover.simulation import rounds
from spillover.simulation.protocol import problem_for
from spillover.testing import check_environment
from spillover_studies.covid import worlds as covid
from spillover_studies.covid.record import DENSITY_WINDOW, STUDY_WINDOW, covid_italy, simulated_outbreak
from spillover_studies.covid.worlds import (
    SemiSyntheticCovid,
    densities,
    density_means,
    fit_unmasked,
    literal_world,
    prepare,
    semi_synthetic_world,
    spectral_radius,
)
from tests.record import NEEDS_RECORD
from tests.support import sparse

POLICY = sp.NDCSEM(discount=0.85, exploration=0.1, graph="self-tuned")


@cache
def simulated():
    return simulated_outbreak(0)[0]


def with_a_column(record, days, column, values):
    cases = record.cases.copy()
    cases[days, column] = values
    return record._replace(cases=cases)


# --- preparation -----------------------------------------------------------------------------------------------------


def test_the_study_has_80_days_and_21_regions():
    data = prepare(simulated(), shift=4, seed=1)
    for name in ("specific", "overall", "unshifted_specific", "unshifted_overall", "expected"):
        assert getattr(data, name).shape == (80, 21)
    assert (data.days[0], data.days[-1]) == STUDY_WINDOW
    assert (data.shift, data.seed, data.change, data.source) == (4, 1, 40, "simulated")
    assert (data.specific >= 0).all()


def test_overall_cases_are_the_mean_of_the_day_and_the_six_before():
    record, data = simulated(), prepare(simulated(), shift=4, seed=1)
    for k, day in enumerate(data.days):
        last = record.days.index(day)
        np.testing.assert_allclose(data.unshifted_overall[k], record.cases[last - 6 : last + 1].mean(axis=0))


@pytest.mark.parametrize("shift", [0, 1, 7, 20])
def test_from_day_40_on_region_i_is_region_i_plus_k(shift):
    data = prepare(simulated(), shift=shift, seed=1)
    means = density_means(densities(simulated()))
    pairs = [(data.specific, data.unshifted_specific), (data.overall, data.unshifted_overall)]
    for moved, plain in [*pairs, (data.expected, np.broadcast_to(means, (80, 21)))]:
        np.testing.assert_array_equal(moved[:39], plain[:39])
        for i in range(1, 22):  # the paper's own words, from 1
            np.testing.assert_array_equal(moved[39:, i - 1], plain[39:, ((i + shift - 1) % 21 + 1) - 1])


def test_samples_depend_on_the_seed_alone():
    one, other, third = (prepare(simulated(), shift=k, seed=s) for k, s in ((1, 5), (9, 5), (1, 6)))
    np.testing.assert_array_equal(one.unshifted_specific, other.unshifted_specific)
    assert (one.unshifted_specific != third.unshifted_specific).all()


def test_expected_cases_are_those_of_the_draws():
    found = densities(simulated())
    draws = covid.draw_day(found, sp.Rng(0, np.arange(20_000)))
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - density_means(found)) < 5 * error).all()


def test_densities_are_scipys():
    from scipy.stats import gaussian_kde

    found = densities(simulated())
    kernel = gaussian_kde(found.centres[:, 8])
    at = np.linspace(0, 2 * found.centres[:, 8].max(), 7)
    ours = np.exp(-(((at[:, None] - found.centres[:, 8]) / found.bandwidth[8]) ** 2) / 2).mean(axis=1)
    np.testing.assert_allclose(ours / (np.sqrt(2 * np.pi) * found.bandwidth[8]), kernel(at), rtol=1e-9)


def test_negative_counts_are_clipped_for_the_density_and_counted():
    record = simulated()
    days = [record.days.index(DENSITY_WINDOW[0]) + k for k in (0, 3, 44)]
    found = densities(with_a_column(record, days, 2, [-5.0, -1.0, -2.0]))
    assert found.negative_counts == 3
    assert (found.centres >= 0).all()
    before = with_a_column(record, [0], 2, [-5.0])  # a week before the window: not of it
    assert densities(before).negative_counts == 0


def test_a_region_that_never_changes_has_no_density():
    record = simulated()
    with pytest.raises(ValueError, match=r"same cases on every day .*'CAL'"):
        densities(with_a_column(record, slice(None), 2, 4.0))


@pytest.mark.parametrize(
    ("shift", "seed", "name"), [(21, 0, "shift"), (-1, 0, "shift"), (1.5, 0, "shift"), (1, -1, "seed")]
)
def test_bad_arguments_are_refused_by_name(shift, seed, name):
    with pytest.raises(ValueError, match=f"^{name} = "):
        prepare(simulated(), shift=shift, seed=seed)


def test_a_record_without_the_study_days_is_refused():
    record = simulated()
    short = record._replace(days=record.days[:-3], cases=record.cases[:-3])
    with pytest.raises(ValueError, match=r"2020-10-16, 2020-10-17, 2020-10-18 missing"):
        prepare(short, shift=1, seed=0)


# --- the graph -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparsity", [0.0, 1e4, "auto"])
def test_the_fitted_graph_keeps_the_bound(sparsity):
    data = prepare(simulated(), shift=1, seed=0)
    a = fit_unmasked(data.unshifted_overall, data.unshifted_specific, sparse(sparsity))
    assert a.sum(axis=1).max() <= 0.95 + 1e-9
    assert not np.diagonal(a).any()
    assert spectral_radius(a) < 1


def test_graphs_of_a_batch_are_fitted_each_on_its_own():
    many = [prepare(simulated(), shift=1, seed=seed) for seed in range(3)]
    y, b = (np.stack([getattr(one, name) for one in many]) for name in ("unshifted_overall", "unshifted_specific"))
    whole = fit_unmasked(y, b)
    for k in range(3):
        np.testing.assert_array_equal(whole[k], fit_unmasked(y[k], b[k]))


def test_shapes_and_numbers_that_do_not_fit_are_refused():
    y = np.ones((80, 21))
    with pytest.raises(ValueError, match="shape of specific"):
        fit_unmasked(y, y[:, :20])
    with pytest.raises(ValueError, match="specific = "):
        fit_unmasked(y, y * np.nan)


# --- the worlds ------------------------------------------------------------------------------------------------------


def study_grid():
    return [[prepare(simulated(), shift=k, seed=s) for s in (0, 1, 2)] for k in (3, 8)]


def test_the_literal_world_shows_the_record_whatever_is_chosen():
    data = prepare(simulated(), shift=3, seed=0)
    world = literal_world(data)
    x = np.zeros((2, 21), bool)
    x[1, :5] = True
    z, y, _ = world.play(50, x, sp.Rng(0))
    np.testing.assert_array_equal(y, np.stack([data.overall[49]] * 2))
    np.testing.assert_array_equal(z[1], np.where(x[1], data.specific[49], 0))
    assert not z[0].any()
    assert (world.horizon, world.changes, world.problem.acyclic, world.problem.budget) == (80, (40,), False, 5)
    assert world.problem.reward_range == (0.0, max(data.overall.max(), data.specific.max()))


def test_the_literal_world_plays_but_has_no_regret():
    world = literal_world(prepare(simulated(), shift=3, seed=0))
    assert isinstance(world, World)
    assert not isinstance(world, ScoredWorld)
    with pytest.raises(TypeError, match="LiteralWorld: must be a ScoredWorld, in which regret is defined"):
        problem_for(sp.policies.CUCB(knows_graph=True), world)


@pytest.mark.parametrize("make", [literal_world, semi_synthetic_world])
def test_a_row_of_a_batch_is_its_study_alone(make):
    grid = study_grid()
    rng = sp.Rng(0, np.zeros((2, 3), np.int64))
    world = make(grid)
    assert isinstance(world, ScoredWorld) == (make is semi_synthetic_world)
    chosen = np.stack([played.x for played in rounds(POLICY, world, 3, rng, (2, 3))])
    for k, s in ((0, 0), (1, 2)):
        one = semi_synthetic_world(grid[k][s], world.adjacency(1)[k, s]) if make is semi_synthetic_world else None
        alone = rounds(POLICY, one or make(grid[k][s]), 3, sp.Rng(0), ())
        np.testing.assert_array_equal(chosen[:, k, s], np.stack([played.x for played in alone]))


def test_the_semi_synthetic_world_generates_cases_from_its_graph():
    data = prepare(simulated(), shift=3, seed=0)
    world = semi_synthetic_world(data)
    a = fit_unmasked(data.unshifted_overall, data.unshifted_specific)
    np.testing.assert_array_equal(world.adjacency(60), a)
    for t in (1, 39, 40, 80):
        x = sp.Rng(t).permutation(21) < 5
        z, y, _ = world.play(t, x, sp.Rng(0))
        np.testing.assert_array_equal(z, np.where(x, data.specific[t - 1], 0))
        np.testing.assert_allclose(y - a @ y, z, atol=1e-9)
        scores = np.linalg.solve((np.eye(21) - a).T, np.ones(21)) * data.expected[t - 1]
        assert world.expected(t, x) == pytest.approx(scores[x].sum())
        assert set(np.flatnonzero(world.best(t))) == set(np.argsort(scores)[-5:])
        assert world.matches(t, world.best(t)) == 5


def test_the_change_of_the_best_regions_is_the_shift():
    world = semi_synthetic_world(prepare(simulated(), shift=3, seed=0), np.zeros((21, 21)))
    np.testing.assert_array_equal(world.best(40), np.roll(world.best(39), -3))


def test_a_graph_whose_spill_over_never_dies_out_is_refused():
    a = np.zeros((21, 21))
    a[0, 1] = a[1, 0] = 1.0
    with pytest.raises(ValueError, match=r"spectral radius of adjacency = 1\.0"):
        semi_synthetic_world(prepare(simulated(), shift=3, seed=0), a)


def test_another_unit_scales_everything_alike():
    data = prepare(simulated(), shift=3, seed=0)
    unit = float(data.overall.max())
    small = data.scaled(unit)
    assert small.overall.max() == 1.0
    np.testing.assert_allclose(small.expected * unit, data.expected)
    assert literal_world(small).problem.reward_range == (0.0, 1.0)


def test_the_environment_keeps_the_contract():
    check_environment(SemiSyntheticCovid(record=simulated(), shift=5), draws=150)


def test_the_environment_draws_what_prepare_draws():
    data = prepare(simulated(), shift=5, seed=9)
    world = SemiSyntheticCovid(record=simulated(), shift=5).draw(sp.Rng(9))
    for t in (1, 39, 40, 80):
        np.testing.assert_allclose(world.rewards(t, sp.Rng(9).at(Purpose.WORLD, t)), data.specific[t - 1], rtol=1e-12)


def test_the_environment_runs_with_oracles():
    environment = SemiSyntheticCovid(record=simulated(), shift=5)
    best, late, policy = (
        sp.simulate(player, environment, 3, replications=2).final_regret
        for player in (sp.policies.Oracle(), sp.policies.DelayedOracle(), POLICY)
    )
    assert (best == 0).all()
    assert (late > 0).all()
    assert (policy > 0).all()


# --- the record ------------------------------------------------------------------------------------------------------


@pytest.fixture
def record():
    if not os.environ.get("SPILLOVER_COVID_DATA"):
        pytest.skip(NEEDS_RECORD)
    return covid_italy()


def test_the_prepared_record_has_the_facts_that_are_known_of_it(record):
    data = prepare(record, shift=1, seed=0)
    assert (data.source, data.negative_counts) == ("record", 5)
    assert round(data.overall.max(), 1) == 1963.6  # the largest smoothed regional count
    assert data.specific.max() < data.overall.max()
    first = record.days.index(STUDY_WINDOW[0])
    np.testing.assert_allclose(data.overall[0], record.cases[first - 6 : first + 1].mean(axis=0))


def test_the_graph_of_the_record_dies_out(record):
    for seed in range(5):
        data = prepare(record, shift=1, seed=seed)
        a = fit_unmasked(data.unshifted_overall, data.unshifted_specific)
        assert a.sum(axis=1).max() <= 0.95 + 1e-9
        assert spectral_radius(a) < 1
