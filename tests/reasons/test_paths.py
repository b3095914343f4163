"""The strongest paths are listed; with the remainders they add up to the spill-over."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillover.reasons.paths import LONGEST_WALK, Network, layers, solvable, ways_of
from tests.properties import examples


def all_ways(A, arm, longest):
    """Every way from an arm of at most `longest` edges, by trying all of them."""
    found: list[Any] = []
    ends: list[Any] = [((arm,), 1.0)]
    for _ in range(longest):
        ends = [((*way, i), e * A[i, way[-1]]) for way, e in ends for i in range(len(A)) if A[i, way[-1]] != 0]
        found += ends
    return found


def random_graph(seed, n, density, *, acyclic, signed, size=0.9):
    rng = np.random.default_rng(seed)
    A = rng.uniform(-size if signed else 0.0, size, (n, n)) * (rng.random((n, n)) < density)
    if acyclic:
        order = rng.permutation(n)
        return np.triu(A, 1)[np.ix_(order, order)]
    np.fill_diagonal(A, 0.0)
    return A / max(1.0, np.abs(A).sum(axis=1).max() / 0.95)


@examples(12)
@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans(), st.booleans(), st.sampled_from([0.9, 3.0]))
def test_the_strongest_ways_and_the_sum(seed, n, acyclic, signed, size):
    n = n if acyclic else min(n, 3)
    A = random_graph(seed, n, 0.6, acyclic=acyclic, signed=signed, size=size)
    network = Network(A)
    total = np.linalg.inv(np.eye(n) - A).sum(axis=0)
    for arm, gain in product(range(n), (1.0, 1.7)):
        expected = sorted(all_ways(A, arm, n if network.acyclic else LONGEST_WALK), key=lambda w: -abs(w[1]))
        spilled = gain * (total[arm] - 1.0) * 0.4
        ways = ways_of(network, arm, gain, 0.4, spilled, 4)
        sizes = [abs(path.effect) for path in ways.paths]
        np.testing.assert_allclose(sizes, [gain * abs(e) for _, e in expected[:4]], rtol=1e-12)
        known = dict(expected)
        for path in ways.paths:
            assert path.effect == pytest.approx(gain * known[path.arms])
            assert path.amount == pytest.approx(0.4 * path.effect)
        short = 0.4 * gain * sum(e for _, e in expected)
        assert sum(p.amount for p in ways.paths) + ways.other == pytest.approx(short, abs=1e-9)
        whole = sum(p.amount for p in ways.paths) + ways.other + ways.longer + ways.unknown
        assert whole == pytest.approx(spilled, abs=1e-9)
        assert abs(ways.unknown) < 1e-9
        assert ways.longer == 0.0 or not network.acyclic


def test_ways_round_a_cycle_are_summed():
    A = np.array([[0, 0.5], [0.5, 0]])
    ways = ways_of(Network(A), 0, 1.0, 1.0, 1.0, 2)
    assert [path.arms for path in ways.paths] == [(0, 1), (0, 1, 0)]
    assert [path.amount for path in ways.paths] == [0.5, 0.25]
    assert ways.other == pytest.approx(0.25 - 0.5**LONGEST_WALK)
    assert ways.longer == pytest.approx(0.5**LONGEST_WALK)


def test_weights_that_the_graph_does_not_account_for():
    ways = ways_of(Network(np.array([[0, 0.5], [0, 0]])), 1, 1.0, 1.0, 0.8, 3)
    assert (ways.paths[0].amount, ways.unknown) == pytest.approx((0.5, 0.3))
    assert ways_of(None, 1, 1.0, 1.0, 0.8, 3) == ((), 0.0, 0.0, 0.8)


def test_layers_count_the_edges_before_an_arm():
    A = random_graph(5, 12, 0.4, acyclic=True, signed=False)
    depth = layers(A)
    assert depth is not None
    for i, j in np.argwhere(A):
        assert depth[i] > depth[j]
    for i in range(12):
        before = depth[A[i] != 0]
        assert depth[i] == (before.max() + 1 if len(before) else 0)
    A[tuple(np.argwhere(A)[0][::-1])] = 0.1
    assert layers(A) is None


def test_a_graph_whose_effects_never_end_is_not_known():
    assert not solvable(np.array([[0, 1.0], [1.0, 0]]))
    assert not solvable(np.full((2, 2), np.nan))


@pytest.mark.parametrize("acyclic", [True, False])
def test_a_hundred_arms_with_all_edges_do_not_explode(acyclic):
    """There are 2^98 ways in the acyclic one; the search takes a few steps for each that it names."""
    A = random_graph(1, 100, 1.0, acyclic=acyclic, signed=True, size=0.5)
    network = Network(A)
    many = np.linalg.inv(np.eye(100) - (A != 0)).sum(axis=0) - 1 if acyclic else np.full(100, np.inf)
    for arm in range(100):
        found = network.strongest(arm, 5)
        assert len(found) == min(5, round(min(many[arm], 1e9)))
        sizes = [abs(e) for _, e in found]
        assert sizes == sorted(sizes, reverse=True)
        for way, effect in found:
            assert effect == pytest.approx(np.prod([A[i, j] for j, i in pairwise(way)]))
