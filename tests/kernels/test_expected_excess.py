"""The expected excess of a normal mean over a level, by a polynomial: its error over the whole range."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special

from spillover import kernels

BOUND = 4e-10  # error in deviations, as docs/switching.md says


def exact(distance):
    """E[(z + distance)+] for a standard normal z; without cancellation in the lower tail."""
    far = np.abs(distance)
    density = np.exp(-0.5 * far**2) / np.sqrt(2.0 * np.pi)
    loss = density * (1.0 - far * np.sqrt(np.pi / 2.0) * special.erfcx(far / np.sqrt(2.0)))
    return np.maximum(distance, 0.0) + loss


@pytest.mark.parametrize("deviation", [1e-9, 0.01, 0.3, 1.0])
def test_the_error_is_below_its_bound_everywhere(deviation):
    distance = np.concatenate([np.linspace(-8.0, 8.0, 320_001), [-1e9, -40.0, 40.0, 1e9]])
    error = kernels.excess_of_normal(distance * deviation, deviation) / deviation - exact(distance)
    assert np.abs(error[:-4]).max() < BOUND
    assert_allclose(error[-4:], 0.0, atol=1e-6)  # rounding of 1e9
    assert np.abs(error).max() > 0.0


@pytest.mark.parametrize("distance", [-3.0, -0.5, 0.0, 1.0, 4.0])
def test_it_is_the_integral_over_the_normal_density(distance):
    def integrand(z):
        return (z + distance) * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)

    integral, _ = integrate.quad(integrand, -distance, 12.0, epsabs=1e-13)
    assert_allclose(exact(np.array(distance)), integral, atol=1e-12)
    assert_allclose(kernels.excess_of_normal(distance, 1.0), integral, atol=BOUND)


def test_it_grows_with_the_mean_and_is_never_negative():
    found = kernels.excess_of_normal(np.linspace(-7.0, 7.0, 14_001), 1.0)
    assert (found >= 0.0).all()
    assert (np.diff(found) >= -BOUND).all()
