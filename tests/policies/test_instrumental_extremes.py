"""InstrumentalSEM stays finite where outcomes are on quite another scale than the range, and where cycles amplify."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

import spillover as sp
from spillover.graph.k_class import LARGEST_RADIUS
from spillover.policies.instrumental_equations import weigh_graph

SHOWN = ("effects", "effects_interval", "spill_interval", "total_interval", "baseline", "score", "edge_interval")


def learn(problem, outcomes, rewards, signed, everything):
    """All arms are always chosen, or the policy decides; warnings are errors, and every answer is finite."""
    learner = sp.Learner(sp.InstrumentalSEM(signed=signed), problem)
    for y, z in zip(outcomes, rewards, strict=True):
        played = learner.play(np.ones(problem.n_arms) if everything else None)
        x = learner.waiting[played].x
        learner.report(played, z=np.where(x, z, 0.0) if problem.observes == "both" else None, y=y * (1.0 + x))
        found = learner.explain()
        for name in SHOWN:
            assert np.isfinite(getattr(found, name)).all(), name


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize(("size", "observes"), [(1e30, "overall"), (1e30, "both"), (1e-30, "both"), (0.0, "overall")])
def test_outcomes_of_any_size_give_finite_answers(size, observes, everything, signed):
    for number in range(3):
        generator = np.random.default_rng(number)
        n = 2 + number % 2
        problem = sp.Problem(n, 1 + number % 2, acyclic=False, observes=observes, baseline=number > 0)
        rewards = generator.uniform(size=(12, n))
        learn(problem, size * generator.standard_normal((12, n)), rewards, signed, everything)


class Weighed(NamedTuple):
    """What `weigh_graph` takes and fills in."""

    coefficients: Any
    covariance: Any
    total_effects: Any
    weights: Any
    weight_variance: Any


@pytest.mark.parametrize(("there", "back"), [(2.0, 0.6), (40.0, 0.1), (0.5, 0.5)])
def test_effects_of_two_arms_on_each_other_die_out(there, back):
    """The radius of such a graph is sqrt(there * back); a plain power iteration would alternate between two values."""
    edges, n = np.array([[0.0, there], [back, 0.0]]), 2
    found = Weighed(edges, np.zeros((n, n, n)), np.empty((n, n)), np.empty(n), np.empty(n))
    njit(weigh_graph)(found)
    damping = min(1.0, LARGEST_RADIUS / np.sqrt(there * back))
    assert_allclose(found.total_effects, np.linalg.inv(np.eye(n) - damping * edges), rtol=0.1)
    assert (found.total_effects >= 0.0).all()


def test_outcomes_without_noise_whose_residuals_are_rounding():
    world = sp.SyntheticSEM(n_arms=6, budget=2, horizon=120, changes=(60,), observes="overall")
    run = sp.simulate(sp.policies.InstrumentalSEM(), world, 5, replications=12, seed=32)
    assert np.isfinite(run.final_regret).all()
