"""Every sound policy, environment and delay passes its contract test."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.graph import SparseGraph
from spillover.testing import check_delay, check_environment, check_policy
from tests.support import sparse
from tests.testing.sound import SMALL, FourFunctionsAlone, Sound, SoundAndOpen, SoundWithMemo


def test_four_functions_alone_are_a_policy():
    ours, theirs = (sp.simulate(p, SMALL, 3, replications=2) for p in (FourFunctionsAlone(), Sound()))
    np.testing.assert_array_equal(ours.regret, theirs.regret)
    learner = sp.Learner(FourFunctionsAlone(), sp.Problem(3, 1, overall_range=(0.0, 1.0)))
    learner.report(learner.play(), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    with pytest.raises(TypeError, match=r"must explain itself to give reasons"):
        learner.explain()


@pytest.mark.parametrize(
    "policy",
    [
        sp.NDCSEM(graph="self-tuned"),
        sp.NDCSEM(discount=0.7, exploration=0.1, graph=sparse(1.0)),
        Sound(),
        SoundAndOpen(),
        SoundWithMemo(),
        FourFunctionsAlone(),
    ],
    ids=["auto", "explorer", "sound", "open", "memo", "without the base class"],
)
def test_other_settings_and_other_peoples_policies_pass(policy):
    check_policy(policy, seed=3)


def test_checks_that_do_not_apply_are_listed_with_the_reason():
    skipped = check_policy(Sound(), edge_shapes=False)
    assert "check_parts: accepts_missing is False" in skipped
    assert all(": " in line for line in skipped)
    contextual = sp.SyntheticSEM(n_arms=3, budget=1, horizon=4, changes=(), context=1, baseline=True)
    assert not any("check_context" in line for line in check_environment(contextual, draws=50))


def test_a_policy_can_be_checked_in_a_world_of_choice():
    cyclic = sp.FixedSEM(
        adjacency=[[0, 0.3, 0], [0, 0, 0.3], [0.5, 0, 0]],
        means=[0.4, 0.5, 0.6],
        budget=2,
        horizon=20,
        acyclic=False,
    )
    check_policy(sp.NDCSEM(), environment=cyclic)
    bound_to_three = sp.NDCSEM(graph=SparseGraph(forbidden=np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])))
    check_policy(bound_to_three, environment=cyclic, edge_shapes=False)
    with pytest.raises(AssertionError, match=r"with one arm.*forbidden"):
        check_policy(bound_to_three, environment=cyclic)


ENVIRONMENTS: dict[str, Any] = {
    "paper": sp.SyntheticSEM(),
    "small": SMALL,
    "drifting": sp.SyntheticSEM(n_arms=6, horizon=60, changes=(20, 40), smooth=True, law="beta"),
    "everything": sp.SyntheticSEM(
        n_arms=6, budget=3, horizon=60, changes=(20,), graph_changes=(10, 45), noise=0.3, gain_range=(0.5, 2.0)
    ),
    "one arm": sp.SyntheticSEM(n_arms=1, budget=1, horizon=1, changes=()),
    "example": sp.environments.example_graph(),
    "nothing": sp.FixedSEM(adjacency=np.zeros((3, 3)), means=np.zeros(3), budget=2, horizon=5),
    "cycle": sp.FixedSEM(adjacency=[[0, 0.5], [0.5, 0]], means=[0.3, 0.3], budget=1, acyclic=False),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_passes(name):
    check_environment(ENVIRONMENTS[name])


@pytest.mark.parametrize(
    "delay",
    [
        sp.ConstantDelay(0),
        sp.UniformDelay(2, 9),
        sp.GeometricDelay(3.5),
        sp.GeometricDelay(0),
        sp.LossyDelay(sp.UniformDelay(0, 3), 0.5),
        sp.RecordedDelay(np.r_[np.arange(19.0), np.nan]),
        sp.RecordedDelay(np.arange(120).reshape(6, 20)),
    ],
    ids=repr,
)
def test_every_delay_passes(delay):
    check_delay(delay)
