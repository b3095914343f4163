"""Counter-based random numbers: the generator bit for bit, its distributions, and its independence of the batch."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spillover import Rng, kernels
from spillover.rng import Purpose

words = st.integers(0, 2**64 - 1)
UNLIKELY = 1e-3  # seeds are fixed: a test below this p-value fails always or never


def numpy_block(key, counter):
    """One block of numpy.random.Philox, which counts up before it draws."""
    before = (sum(word << (64 * k) for k, word in enumerate(counter)) - 1) % 2**256
    return np.random.Philox(key=np.array(key, np.uint64), counter=before).random_raw(4)


@given(st.tuples(words, words), st.tuples(words, words, words, words))
def test_blocks_equal_numpy_philox_bit_for_bit(key, counter):
    block = kernels.philox_block(np.array(key, np.uint64), np.array(counter, np.uint64))
    assert (block == numpy_block(key, counter)).all()


@given(words, st.integers(0, 2**63 - 1), st.integers(0, 2**31), st.sampled_from(list(Purpose)), st.integers(1, 13))
def test_uniform_draws_stand_at_the_documented_address(seed, replication, at_round, purpose, n):
    rng = Rng(seed, replication).at(purpose, at_round)
    for call in range(2):
        blocks = [numpy_block((seed, replication), (start, call, at_round, purpose)) for start in range(0, n, 4)]
        expected = (np.concatenate(blocks)[:n] >> np.uint64(11)) * 2.0**-53
        assert (rng.uniform(n) == expected).all()


def test_uniform_passes_kolmogorov_smirnov():
    draws = Rng(1, np.arange(200)).uniform(100)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert stats.kstest(draws.ravel(), "uniform").pvalue > UNLIKELY


def test_streams_of_neighbours_are_uncorrelated():
    first = Rng(1, np.arange(5000)).at(Purpose.WORLD, 1).uniform(2)
    others = {
        "the next draw": first[:, 1],
        "the next replication": Rng(1, np.arange(1, 5001)).at(Purpose.WORLD, 1).uniform(1)[:, 0],
        "the next round": Rng(1, np.arange(5000)).at(Purpose.WORLD, 2).uniform(1)[:, 0],
        "another purpose": Rng(1, np.arange(5000)).at(Purpose.DELAY, 1).uniform(1)[:, 0],
        "the next seed": Rng(2, np.arange(5000)).at(Purpose.WORLD, 1).uniform(1)[:, 0],
    }
    rng = Rng(1, np.arange(5000)).at(Purpose.WORLD, 1)
    rng.uniform(1)
    others["the next call"] = rng.uniform(1)[:, 0]
    for name, draws in others.items():
        assert stats.pearsonr(first[:, 0], draws).pvalue > UNLIKELY, name


def test_normal_passes_kolmogorov_smirnov():
    assert stats.kstest(Rng(2, np.arange(200)).normal(100).ravel(), "norm").pvalue > UNLIKELY


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1.0, 1.0),
        (0.5, 0.5),
        (0.05, 3.0),
        (0.01, 1.0),
        (3.0, 0.3),
        (2.0, 5.0),
        (0.999, 1.001),
        (300.0, 40.0),
        (1e6, 1e6),
        (1e8, 2.0),
    ],
)
def test_beta_passes_kolmogorov_smirnov(a, b):
    draws = Rng(3, np.arange(100)).beta(np.full(50, a), np.full(50, b)).ravel()
    assert ((draws >= 0) & (draws <= 1)).all()
    assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > UNLIKELY


def slow_log_gamma(shape, key, element, at_round, purpose):
    """The logarithm of a draw by Marsaglia and Tsang's method, from the words at the documented address."""
    d = shape + (shape < 1.0) - 1.0 / 3.0
    attempt = 0
    while True:
        block = numpy_block(key, (element + (attempt << 32), 0, at_round, purpose))
        first, turn, test, boost = ((block >> np.uint64(11)) * 2.0**-53).tolist()
        x = math.sqrt(-2.0 * math.log(1.0 - first)) * math.cos(2.0 * math.pi * turn)
        v = 1.0 + x / math.sqrt(9.0 * d)
        if v > 0.0 and math.log(1.0 - test) < 0.5 * x * x + d * (1.0 - v**3 + 3.0 * math.log(v)):
            return math.log(d * v**3) + (math.log(1.0 - boost) / shape if shape < 1.0 else 0.0)
        attempt += 1


@pytest.mark.parametrize("n", [1, 3, 4, 6, 9])
def test_beta_draws_equal_a_slow_twin(n):
    rng, shapes = Rng(6, [2, 9]).at(Purpose.CHOICE, 17), np.random.default_rng(n)
    for largest in (0.5, 3.0, 1e4):
        a, b = shapes.uniform(0.01, largest, (2, n)), shapes.uniform(0.01, largest, (2, n))
        draws = rng.restarted().beta(a, b)
        for row, replication in enumerate((2, 9)):
            for i in range(n):
                where = (17, Purpose.CHOICE)
                ours = slow_log_gamma(a[row, i], (6, replication), 2 * i, *where)
                theirs = slow_log_gamma(b[row, i], (6, replication), 2 * i + 1, *where)
                expected = 1.0 / (1.0 + math.exp(min(theirs - ours, 700.0)))
                assert draws[row, i] == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_beta_at_vanishing_shapes_is_a_coin():
    draws = Rng(4, np.arange(4000)).beta([1e-9, 3e-9], [1e-9, 1e-9])
    assert np.isfinite(draws).all()
    assert ((draws < 1e-6) | (draws > 1 - 1e-6)).all()
    for ones, probability in zip((draws > 0.5).sum(axis=0), (0.5, 0.75), strict=True):
        assert stats.binomtest(int(ones), 4000, probability).pvalue > UNLIKELY


def test_beta_takes_parameters_of_each_learner():
    a = np.array([[1.0, 400.0], [400.0, 1.0]])
    draws = Rng(5, [0, 1]).beta(a, a[::-1])
    assert (np.abs(draws - a / 401.0) < 0.1).all()


def test_permutations_are_uniform():
    orders = Counter(map(tuple, Rng(6, np.arange(12_000)).permutation(4).tolist()))
    assert set(orders) == set(permutations(range(4)))
    assert stats.chisquare(list(orders.values())).pvalue > UNLIKELY


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.uniform(7),
        lambda rng: rng.normal(7),
        lambda rng: rng.beta(np.full(7, 0.4), np.full(7, 2.5)),
        lambda rng: rng.permutation(7),
    ],
    ids=["uniform", "normal", "beta", "permutation"],
)
def test_a_row_of_a_batch_equals_the_learner_alone(draw):
    rows = np.arange(12).reshape(3, 4)
    whole = draw(Rng(7, rows).at(Purpose.CHOICE, 3))
    for cell in np.ndindex(3, 4):
        assert (draw(Rng(7, int(rows[cell])).at(Purpose.CHOICE, 3)) == whole[cell]).all()
    assert (draw(Rng(7, np.arange(2, 5)).at(Purpose.CHOICE, 3)) == whole.reshape(12, 7)[2:5]).all()
    rounds = np.full((3, 4), 3)
    assert (draw(Rng(7, rows).at(Purpose.CHOICE, rounds)) == whole).all()
    rounds[1, 1] = 4
    assert (draw(Rng(7, rows).at(Purpose.CHOICE, rounds))[1, 1] != whole[1, 1]).any()


def test_at_starts_afresh_and_leaves_the_first_alone():
    rng = Rng(9).at(Purpose.START)
    first = rng.uniform(4)
    other = rng.at(Purpose.START)
    second = rng.uniform(4)
    assert (other.uniform(4) == first).all()
    assert (other.uniform(4) == second).all()
    assert not (first == second).any()


def test_spread_lends_the_same_streams_to_a_larger_batch():
    rng = Rng(10, np.arange(3)).at(Purpose.LEARNING, np.array([4, 5, 6]))
    wide = rng.spread((2, 3))
    assert (wide.uniform(5) == rng.uniform(5)).all()
    assert wide.uniform(5).shape == (2, 3, 5)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", None, True])
def test_a_bad_seed_is_named(seed):
    with pytest.raises(ValueError, match=r"seed = .*: must be a whole number from 0 to 2\^64 - 1"):
        Rng(seed)


@pytest.mark.parametrize("replication", [-1, [0, -2], 0.5, "a"])
def test_a_bad_replication_is_named(replication):
    with pytest.raises(ValueError, match=r"replication = .*: must be whole numbers from 0 on"):
        Rng(0, replication)


@pytest.mark.parametrize("n", [1, 3, 4, 10])
def test_bernoulli_draws_are_uniform_ones_below_the_mean(n):
    mean = np.linspace(0.0, 1.0, n)
    ones, draws = Rng(5, np.arange(40)).bernoulli(mean), Rng(5, np.arange(40)).uniform(n)
    np.testing.assert_array_equal(ones, draws < mean)
    assert ones.dtype == np.float64


def test_many_rounds_at_once_are_the_streams_of_each():
    rng, rounds = Rng(6, np.arange(6).reshape(2, 3)), np.array([1, 2, 9, 4])
    together = rng.over(Purpose.DELAY, rounds)
    first, second = together.uniform(5), together.normal(2)
    for k, t in enumerate(rounds.tolist()):
        alone = rng.at(Purpose.DELAY, t)
        np.testing.assert_array_equal(first[..., k, :], alone.uniform(5))
        np.testing.assert_array_equal(second[..., k, :], alone.normal(2))
