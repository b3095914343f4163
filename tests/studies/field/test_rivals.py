"""The rivals keep the contract, learn what they are meant to learn, and date outcomes by their rounds of play."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.policies import CUCB, SEMUCB
from spillover.simulation.protocol import problem_for, rounds, structure_of
from spillover.testing import check_policy
from spillover_studies.field.rivals import (
    BLMLR,
    CSLUCB,
    DAL,
    GALCB,
    NETC,
    LinSEMTS,
    LinSEMUCB,
    NetworkETC,
    PiecewiseSEMUCB,
    RobustSEMUCB,
    SparseNetworkETC,
)
from spillover_studies.field.rivals.nodewise import RIDGE
from spillover_studies.field.set_worlds import NetworkInterference
from spillover_studies.field.worlds import HierarchicalSEM, SubgraphSEM
from tests.sampling import every

# with settings that let a test of 30 rounds reach every branch
QUICK: dict[str, Any] = {
    "lin-sem-ucb": LinSEMUCB(),
    "lin-sem-ts": LinSEMTS(),
    "blm-lr": BLMLR(),
    "robust": RobustSEMUCB(deviation=1.0),
    "ga-lcb": GALCB(explore=2),
    "csl-ucb": CSLUCB(window=3),
    "piecewise": PiecewiseSEMUCB(window=3, false_alarms=0.5),
    "network": NetworkETC(explore=10),
    "sparse-network": SparseNetworkETC(explore=10),
    "netc": NETC(explore=10),
    "dal": DAL(forced=0.3, false_alarms=0.5),
}
NODEWISE = ("lin-sem-ucb", "lin-sem-ts", "blm-lr", "robust", "ga-lcb", "csl-ucb", "piecewise")
SMALL = HierarchicalSEM(width=2, layers=2, budget=2, horizon=40)


@pytest.mark.parametrize("name", every(5, QUICK))
def test_it_keeps_the_contract(name):
    check_policy(QUICK[name])


@pytest.mark.parametrize("name", every(5, [name for name in QUICK if name != "dal"]))
def test_python_decides_as_the_compiled_functions(name):
    policy = QUICK[name]
    kind = type(policy)
    slow = type(f"Slow{kind.__name__}", (kind,), {"compiled": False})
    plain = slow(**{key: getattr(policy, key) for key in vars(policy)})
    compiled, other = (sp.simulate(each, SMALL, 3, replications=2).regret for each in (policy, plain))
    np.testing.assert_array_equal(compiled, other)


def played(policy, world, count):
    """The state after so many rounds without delay, and the outcomes."""
    state, seen = None, []
    for each in rounds(policy, world, sp.ConstantDelay(0), sp.Rng(0), ()):
        state = each.state
        seen.append((each.x, each.outcome.z, each.outcome.y))
        if each.t == count:
            break
    return state, [np.array(part, float) for part in zip(*seen, strict=True)]


@pytest.mark.parametrize("observes", ["both", "overall"])
def test_the_sums_are_those_of_a_ridge_regression_of_each_node(observes):
    world = sp.SyntheticSEM(n_arms=5, budget=2, horizon=60, changes=(), noise=0.2, observes=observes).draw(sp.Rng(0))
    policy = LinSEMTS()
    state, (x, z, y) = played(policy, world, 60)
    told = np.isnan(problem_for(policy, world).structure)
    for i in range(5):
        if observes == "both":  # causes from what is not the own reward, which is averaged apart
            matrix, target = np.c_[y * told[i]], y[:, i] - z[:, i]
            own = z[:, i].sum() / (x[:, i].sum() + RIDGE)
        else:
            matrix, target, own = np.c_[y * told[i], x[:, i]], y[:, i], None
        size = matrix.shape[1]
        expected = np.linalg.solve(matrix.T @ matrix + RIDGE * np.eye(size), matrix.T @ target)
        gram = np.tril(state.nodes.gram[i])
        gram = gram + np.tril(gram, -1).T + RIDGE * np.eye(6)
        found = np.linalg.solve(gram, state.nodes.cross[i])
        np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-10)
        if own is not None:
            np.testing.assert_allclose(found[5], own, atol=1e-12)


def test_what_is_told_of_a_reward_node_is_not_learned_again():
    world = HierarchicalSEM(width=2, layers=2, budget=2, horizon=300, reward="node").draw(sp.Rng(1))
    state, _ = played(LinSEMUCB(width=0.1), world, 300)
    edges = structure_of(world)
    np.testing.assert_array_equal(state.nodes.unknown, np.isnan(edges))
    np.testing.assert_array_equal(state.nodes.known, np.nan_to_num(edges))


@pytest.mark.parametrize("name", every(len(NODEWISE), NODEWISE))
def test_it_finds_the_best_sets_of_a_small_world(name):
    """In the last quarter it loses less than a third of what a random set loses there."""
    policy = replace(QUICK[name], **({"width": 0.1} if hasattr(QUICK[name], "width") else {}))
    if name in ("csl-ucb", "piecewise"):
        policy = replace(policy, window=50)
    if name == "piecewise":
        policy = replace(policy, false_alarms=1e-3)
    world = HierarchicalSEM(width=2, layers=2, budget=2, horizon=800, noise=0.1)
    late = [
        (run := sp.simulate(each, world, 5, replications=6)).regret[:, -1].mean() - run.regret[:, 599].mean()
        for each in (policy, sp.Uniform())
    ]
    assert late[0] < late[1] / 3


@pytest.mark.parametrize(
    "policy", every(3, [NETC(explore=200), NetworkETC(explore=200), SparseNetworkETC(explore=200)])
)
def test_what_explores_and_commits_plays_one_set_in_the_end(policy):
    world = NetworkInterference(units=5, neighbours=2, form="linear", horizon=400, noise=0.1)
    game = rounds(policy, world.draw(sp.Rng(0)), sp.ConstantDelay(20), sp.Rng(0), ())
    sets = [tuple(each.x) for each in game]
    assert len(set(sets[:200])) > 10
    assert len(set(sets[221:])) == 1  # when the last outcome of the exploring rounds has arrived


def test_knowing_the_neighbours_finds_the_best_joint_decision():
    world = NetworkInterference(units=5, neighbours=3, horizon=500, noise=0.0)
    drawn = world.draw(sp.Rng(2))
    last = [each.x for each in rounds(NetworkETC(explore=400), drawn, sp.ConstantDelay(0), sp.Rng(2), ())][-1]
    np.testing.assert_allclose(drawn.expected(1, last), drawn.expected(1, drawn.best(1)), atol=1e-9)


def test_what_explores_learns_of_those_rounds_whenever_they_arrive():
    world = NetworkInterference(units=4, neighbours=2, form="linear", horizon=60)
    at_once, late = (
        [each.state.cross.copy() for each in rounds(NETC(explore=20), world.draw(sp.Rng(0)), d, sp.Rng(0), ())][-1]
        for d in (sp.ConstantDelay(0), sp.ConstantDelay(30))
    )
    np.testing.assert_allclose(at_once, late, atol=1e-12)


@pytest.mark.parametrize("kind", every(2, [PiecewiseSEMUCB, CSLUCB]))
def test_nodes_that_change_are_learned_afresh_from_rounds_after_the_change(kind):
    batch, rng = (6,), sp.Rng(0, range(6))
    world = SubgraphSEM(nodes=5, horizon=800, changes=(401,), changed=5, noise=0.1, budget=2)
    restarts = []
    for each in rounds(kind(), world.draw(rng.at(sp.rng.Purpose.WORLD), batch), sp.ConstantDelay(40), rng, batch):
        restarts.append(each.state.watch.since.copy())
    assert (restarts[399] > 0).mean() < 0.2  # false alarms
    assert (restarts[-1] > 400).any(axis=-1).mean() > 0.5  # dates of play, though outcomes arrive 40 rounds later
    late = restarts[439]  # all outcomes from before the change are known, and none from after it
    assert (late <= 400).all()


def test_a_detector_around_a_policy_restarts_it():
    means = [[0.9, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.9]]
    world = sp.FixedSEM(adjacency=np.zeros((4, 4)), means=means, changes=(500,), budget=2, horizon=1000)
    batch, rng = (8,), sp.Rng(0, range(8))
    policy = DAL(policy=CUCB(), forced=0.3)
    alarms: list[Any] = []
    state: Any = None
    for each in rounds(policy, world.draw(rng.at(sp.rng.Purpose.WORLD), batch), sp.ConstantDelay(20), rng, batch):
        state = each.state
        alarms.append(state.detector.alarms)
    assert alarms[498].sum() == 0
    assert (alarms[-1] > 0).all()
    counts = state.inner.averages.counts.sum(axis=-1)  # of outcomes of rounds after the restart only
    assert (counts <= 2 * (1000 - state.detector.restart)).all()


def test_a_detector_accepts_any_policy_without_constraints():
    sp.simulate(DAL(policy=SEMUCB()), SMALL, 3, replications=2)
    with pytest.raises(ValueError, match="policy = 3"):
        DAL(policy=3)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: LinSEMUCB(width=-1), "width = -1"),
        (lambda: LinSEMTS(scale=np.inf), "scale = inf"),
        (lambda: BLMLR(width=-1), "width = -1"),
        (lambda: RobustSEMUCB(deviation=-1), "deviation = -1"),
        (lambda: GALCB(explore=0), "explore = 0"),
        (lambda: CSLUCB(factor=1), "factor = 1"),
        (lambda: PiecewiseSEMUCB(window=1), "window = 1"),
        (lambda: NetworkETC(explore=0), "explore = 0"),
        (lambda: SparseNetworkETC(threshold=-1), "threshold = -1"),
        (lambda: NETC(threshold=-1), "threshold = -1"),
        (lambda: LinSEMUCB().init(sp.Problem(3, 1), sp.Rng(0)), "structure = None"),
        (lambda: NetworkETC().init(sp.Problem(3, 1), sp.Rng(0)), "structure = None"),
        (lambda: SparseNetworkETC().init(sp.Problem(13, 1), sp.Rng(0)), "n_arms = 13"),
    ],
)
def test_impossible_settings_are_refused(make, name):
    with pytest.raises(ValueError, match=name):
        make()
