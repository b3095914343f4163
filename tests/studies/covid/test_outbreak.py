"""The simulated outbreak: the shape of the record, a known graph, and what the study's data can tell of it."""

import numpy as np
import pytest

from spillover import Rng
from spillover_studies.covid.record import LOCKDOWN_DAYS, REGIONS, distances, outbreak, simulated_outbreak
from spillover_studies.covid.worlds import fit_unmasked, prepare, spectral_radius, trailing_mean
from tests.support import sparse

OFF_DIAGONAL = ~np.eye(21, dtype=bool)


def study(seed):
    """Smoothed overall and region-specific cases of the 80 days, with the true ones of the latter."""
    made = outbreak(seed)
    start = len(LOCKDOWN_DAYS) + 1  # one of the seven days before the window is not needed
    return trailing_mean(made.record.cases[start:]), trailing_mean(made.specific[start:]), made


def test_it_has_the_shape_of_the_record_and_says_what_it_is():
    record, adjacency = simulated_outbreak(3)
    assert (record.cases.shape, adjacency.shape) == ((139, 21), (21, 21))
    assert (record.regions, record.names) == (tuple(REGIONS), tuple(REGIONS.values()))
    assert record.source == "simulated"
    assert "not real data" in record.attribution
    assert (record.cases > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_graph_has_cycles_couples_near_regions_and_dies_out(seed):
    a = simulated_outbreak(seed)[1]
    assert (a >= 0).all()
    assert not np.diagonal(a).any()
    assert a.sum(axis=1).max() < 0.95
    assert 0 < spectral_radius(a) < 1  # a graph without cycles has radius 0
    far = distances()
    assert far[a > 0].mean() < far[OFF_DIAGONAL].mean() / 2


def test_seeds_differ_and_repeat():
    first, again, other = (simulated_outbreak(seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0].cases, again[0].cases)
    assert (first[0].cases != other[0].cases).any()
    assert (first[1] != other[1]).any()


def test_there_is_no_spill_over_under_lockdown_and_the_model_holds_after_it():
    made = outbreak(0)
    split = len(LOCKDOWN_DAYS)
    np.testing.assert_array_equal(made.record.cases[:split], made.specific[:split])
    after = made.record.cases[split:]
    np.testing.assert_allclose(after - after @ made.adjacency.T, made.specific[split:], rtol=1e-9, atol=1e-9)


def test_noise_disturbs_the_study_window_only():
    quiet, loud = outbreak(0), outbreak(0, noise=0.1)
    split = len(LOCKDOWN_DAYS)
    np.testing.assert_array_equal(quiet.record.cases[:split], loud.record.cases[:split])
    assert (quiet.record.cases[split:] != loud.record.cases[split:]).all()
    with pytest.raises(ValueError, match="noise = -1"):
        outbreak(noise=-1)


@pytest.mark.parametrize("seed", range(3))
def test_unmasked_and_without_noise_the_graph_is_recovered(seed):
    y, b, made = study(seed)
    assert np.abs(fit_unmasked(y, b, graph=sparse(0.0)) - made.adjacency).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_masked_as_in_the_paper_the_graph_is_biased(seed):
    # y does not react to the choice and z is masked by it: all cases of regions that were not chosen look like
    # spill-over, so rows sum to nearly twice what they should
    y, b, made = study(seed)
    x = Rng(seed, np.arange(80)).permutation(21) < 5
    masked, true = fit_unmasked(y, x * b, graph=sparse(0.0)), made.adjacency
    assert masked.sum(axis=1).mean() - true.sum(axis=1).mean() > 0.25
    assert np.abs(masked - true).max() > 0.5
    assert spectral_radius(masked) < 1


@pytest.mark.parametrize("seed", range(3))
def test_masked_is_no_bias_where_cases_react_to_the_choice(seed):
    _, b, made = study(seed)
    z = b * (Rng(seed, np.arange(80)).permutation(21) < 5)
    y = np.linalg.solve(np.eye(21) - made.adjacency, z.T).T
    assert np.abs(fit_unmasked(y, z, graph=sparse(0.0)) - made.adjacency).max() < 1e-6


def test_resampled_region_specific_cases_do_not_identify_the_graph():
    # what the record lacks is drawn anew, so even all of it tells of A only on average
    made = outbreak(0)
    data = prepare(made.record, shift=1, seed=0)
    found = fit_unmasked(data.unshifted_overall, data.unshifted_specific)
    assert np.abs(found - made.adjacency).max() > 0.3
    assert np.corrcoef(found[OFF_DIAGONAL], made.adjacency[OFF_DIAGONAL])[0, 1] < 0.6
