"""Units of the rewards: every graph learner and option keeps decisions; `unit` makes bonus and sparsity absolute."""

import numpy as np
import pytest

import spillover as sp
from spillover.graph import GRAPHS
from spillover.testing.invariance import check_units
from spillover.testing.trial import Trial
from tests.sampling import often
from tests.support import sparse
from tests.testing.sound import SMALL

POLICIES = {
    **{f"graph={name}": sp.NDCSEM(graph=name) for name in GRAPHS},
    "explorer": sp.NDCSEM(discount=0.9, exploration=0.1, graph=sparse(1.0)),
    "pending": sp.NDCSEM(exploration=0.1, pending=True),
    "signed": sp.SEMUCB(graph=sp.SparseGraph(sparsity=0.3, signed=True)),
}


@pytest.mark.parametrize("name", often(["graph=sparse", "graph=adaptive", "explorer", "pending", "signed"], POLICIES))
def test_every_graph_and_option_decides_alike_in_all_units(name):
    check_units(POLICIES[name], Trial(SMALL, 1))


@pytest.mark.parametrize("policy", [sp.NDCSEM(exploration=0.1, unit=1.0), sp.SEMUCB(unit=1.0)])
def test_with_an_absolute_unit_they_do_not(policy):
    with pytest.raises(AssertionError, match="with rewards and ranges times 1024"):
        check_units(policy, Trial(SMALL, 1))


def learned(policy, unit):
    """A state after three rounds of two arms, with the first affecting the second, in the range (0, unit)."""
    state = policy.init(sp.Problem(2, 2, reward_range=(0.0, unit)), sp.Rng(0))
    x, at, arrived = np.ones(2, bool), np.array(0), np.array(True)
    for z in ([0.2, 0.1], [0.7, 0.4], [0.3, 0.9]):
        y = [z[0], z[1] + 0.5 * z[0]]
        piece = sp.Feedback(x, unit * np.array(z), unit * np.array(y), at, arrived)
        state = policy.update(policy.played(state, x), piece, sp.Rng(0))
    return state


def test_an_absolute_unit_is_the_paper_in_any_range():
    policy = sp.NDCSEM(exploration=0.1, graph=sparse(0.05), unit=1.0)
    usual = sp.NDCSEM(exploration=0.1, graph=sparse(0.05))
    small, large = learned(policy, 1.0), learned(policy, 100.0)
    mean = np.array([0.4, 1.4 / 3])
    np.testing.assert_array_equal(policy.indices(small, sp.Rng(0)), usual.indices(learned(usual, 1.0), sp.Rng(0)))
    assert (policy.indices(large, sp.Rng(0)) - 100 * mean < 10).all()  # the bonus is still that of rewards up to 1
    assert large.graph.adjacency[1, 0] == pytest.approx(0.5, abs=1e-4)  # and the penalty hardly counts


def test_a_range_for_each_row_of_a_batch():
    """Rows in different units decide alike."""
    ranges = np.array([[0.0, 1.0], [0.0, 1024.0]])
    for name in ("sparse", "self-tuned", "adaptive"):
        graph = sp.NDCSEM(graph=name).graph.init(sp.Problem(3, 2, reward_range=ranges), (2,))
        z = np.array([[0.2, 0.5, 0.0], [204.8, 512.0, 0.0]])
        y = z + 0.25 * z[:, [1, 2, 0]]
        learner = sp.NDCSEM(graph=name).graph
        for t in range(1, 9):
            both = np.roll(z, t, axis=1), np.roll(y, t, axis=1)
            graph = learner.solve(learner.absorb(graph, *both, np.ones(2), np.full(2, t)))
        np.testing.assert_allclose(graph.adjacency[1], graph.adjacency[0], rtol=1e-9)
