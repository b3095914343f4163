"""A learner that compiled code rewrites decides and learns as the four functions of its policy do, bit for bit."""

from dataclasses import dataclass

import numpy as np
import pytest

import spillover as sp
from spillover.core.batches import LiveCore
from spillover.learner.running import Usual
from spillover.policies.graph_policy import GraphBatches
from tests.live.learners import content
from tests.own_parts import load
from tests.sampling import every

PROBLEM = sp.Problem(n_arms=5, budget=2, reward_range=(0.0, 2.0))
RidgeGraph = load("my_graph").RidgeGraph
ABLATED = sp.policies.POLICIES["ablated-ndc-sem"]


def run(learner: sp.Learner, rounds: int = 60) -> list[bytes]:
    """Decisions, some of them overridden, with outcomes that are late, out of order and lost."""
    draws, waiting, decisions = np.random.default_rng(5), [], []
    for t in range(rounds):
        decisions.append(learner.choose().tobytes())
        number = learner.play(draws.uniform(size=5) < 0.5 if t % 7 == 0 else None)
        waiting.append(number)
        while len(waiting) > 3 + t % 3:
            number = waiting.pop(int(draws.integers(len(waiting))))
            z = np.where(learner.waiting[number].x, 2.0 * draws.uniform(size=5), 0.0)
            if draws.uniform() < 0.9:
                learner.report(number, z, z + 0.3 * z[-1] - 0.1 * z[0])
    return decisions


@pytest.mark.parametrize(
    "policy",
    [
        sp.NDCSEM(exploration=0.01, unit=0.5),
        sp.NDCSEM(pending=True, exploration=0.01),
        sp.NDCSEM(graph=sp.SparseGraph(signed=True)),
        *every(4, [sp.SEMUCB(), sp.NDCSEM(graph="none"), ABLATED(delay_aware=False), ABLATED(discount=1.0)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("acyclic", [False, True])
def test_both_forms_are_the_same(policy, acyclic, monkeypatch):
    problem = PROBLEM._replace(acyclic=acyclic)
    compact = sp.Learner(policy, problem, seed=3)
    assert type(compact.running) is LiveCore
    monkeypatch.setattr(GraphBatches, "runs_alone", False)
    usual = sp.Learner(policy, problem, seed=3)
    assert type(usual.running) is Usual
    assert run(compact) == run(usual)
    assert content(compact) == content(usual)
    np.testing.assert_array_equal(compact.explain().score, usual.explain().score)


@dataclass(frozen=True, kw_only=True)
class First(sp.NDCSEM):
    """Always plays the first arm."""

    def select(self, state, rng):
        choice = super().select(state, rng)
        return choice._replace(x=np.arange(choice.x.shape[-1]) == 0)


def test_what_a_class_of_one_s_own_does_otherwise_is_done():
    learner = sp.Learner(First(), PROBLEM)
    for _ in range(8):
        assert learner.choose().tolist() == [True, False, False, False, False]
        learner.play()


def test_a_decision_is_played_though_the_caller_changed_his_copy_of_it():
    for policy in (sp.NDCSEM(), sp.SwitchingSEM()):
        learner = sp.Learner(policy, PROBLEM)
        chosen = learner.choose()
        kept = chosen.copy()
        chosen[:] = ~chosen
        learner.play()
        np.testing.assert_array_equal(learner.waiting[1].x, kept)
        np.testing.assert_array_equal(learner.under([]).choose(), learner.choose())


@pytest.mark.parametrize("acyclic", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_switching_is_the_same(acyclic, signed, monkeypatch):
    problem, policy = PROBLEM._replace(acyclic=acyclic), sp.SwitchingSEM(graph=sp.AdaptiveGraph(signed=signed))
    compact = sp.Learner(policy, problem, seed=3)
    assert type(compact.running) is LiveCore
    monkeypatch.setattr(GraphBatches, "runs_alone", False)
    usual = sp.Learner(policy, problem, seed=3)
    assert type(usual.running) is Usual
    assert run(compact, 120) == run(usual, 120)
    assert content(compact) == content(usual)
    np.testing.assert_array_equal(compact.explain().score, usual.explain().score)
