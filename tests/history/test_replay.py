"""Telling a history: the same as a learner that lived through it, for every policy."""

import numpy as np
import pytest

import spillover as sp
from spillover.cli.policy_option import usable
from spillover.history import History, tell
from spillover.history.replay import deferred, stretches
from spillover.policies import POLICIES
from spillover.state import leaves

UNTOLD = usable()


def played(rounds=60, n=5, budget=2, seed=3, lost=()):
    """A history of random decisions in a world with spill-over; the outcomes of the lost rounds are not there."""
    draw = np.random.default_rng(seed)
    spill = np.triu(draw.uniform(0, 0.5, (n, n)), 1)
    order = draw.permutation(n)
    x = draw.permuted(np.tile(np.arange(n) < budget, (rounds, 1)), axis=1)
    z = np.where(x, draw.uniform(size=(rounds, n)), 0.0)
    y = np.linalg.solve(np.eye(n) - spill[np.ix_(order, order)], z.T).T.copy()
    arrived = ~np.isin(np.arange(1, rounds + 1), lost)
    return History(
        arms=tuple("abcdefghij"[:n]),
        rounds=tuple(str(t) for t in range(1, rounds + 1)),
        x=x,
        z=np.where(arrived[:, None], z, 0.0),
        y=np.where(arrived[:, None], y, 0.0),
        arrived=arrived,
        has_overall=True,
        following=str(rounds + 1),
        notes=(),
    )


def options(name):
    return {"overall_range": (0.0, 8.0)} if name == "cts" else {}


@pytest.mark.parametrize("name", UNTOLD)
def test_it_equals_a_learner_that_lived_through_it(name) -> None:
    """Which solves for the graph in every round, and whose answers are not asked for."""
    history, policy = played(lost=(7, 59, 60)), POLICIES[name]()
    told = tell(policy, history, budget=2, seed=4, **options(name))
    lived = sp.Learner(policy, told.problem, seed=4)
    for x, z, y, arrived in zip(history.x, history.z, history.y, history.arrived, strict=True):
        t = lived.play(x)
        if arrived:
            lived.report(t, z, y)
    assert told.pending == lived.pending == [7, 59, 60]
    expected = leaves(lived.state)
    for field, leaf in leaves(told.state).items():
        np.testing.assert_allclose(leaf, expected[field], rtol=1e-7, atol=1e-9, err_msg=field)
    assert (told.choose() == lived.choose()).all()


@pytest.mark.parametrize("sparsity", [0.0, 1e-3, "auto"])
def test_one_solution_at_the_end_is_the_one_of_every_round(sparsity) -> None:
    """While the graph has one answer: there are more rounds than arms."""
    history, policy = played(rounds=40, n=6), sp.NDCSEM(sparsity=sparsity)
    told = tell(policy, history, budget=2)
    rng, state = sp.Rng(0), policy.init(told.problem, sp.Rng(0).at(sp.Purpose.START))
    for t, (x, z, y) in enumerate(zip(history.x, history.z, history.y, strict=True), 1):
        state = policy.played(state, x)
        feedback = sp.Feedback(x, z, y, np.array(0), np.array(True))
        state = policy.update(state, feedback, rng.at(sp.Purpose.LEARNING, t))
    np.testing.assert_allclose(told.state.graph.adjacency, state.graph.adjacency, atol=1e-7)
    np.testing.assert_allclose(told.state.graph.weights, state.graph.weights, rtol=1e-6)


def test_deferring_leaves_the_policy_as_it_was() -> None:
    policy = sp.NDCSEM()
    learner = policy.learner
    assert deferred(policy) is not policy
    assert policy.learner is learner
    assert deferred(sp.CUCB()) == sp.CUCB()


def test_nothing_known_yet_follows_the_plan() -> None:
    learner = tell(sp.NDCSEM(), played(rounds=2, lost=(1, 2)), budget=2)
    assert learner.pending == [1, 2]
    assert learner.choose().sum() == 2


class Judged:
    """A learner that must be solved on the way, and counts how often it is."""

    def __init__(self, learner) -> None:
        self.init, self.absorb, self.inner, self.solved = learner.init, learner.absorb, learner, 0

    def remember(self, graph):
        return graph.weights

    def solve(self, graph):
        self.solved += 1
        return self.inner.solve(graph)


@pytest.mark.parametrize(("rounds", "most"), [(90, 90), (1450, 102)])
def test_a_learner_that_is_judged_is_solved_now_and_then_and_at_the_end(rounds, most) -> None:
    policy, history = sp.NDCSEM(), played(rounds=rounds, lost=(5, rounds))
    expected = tell(policy, history, budget=2).state.graph
    judged = Judged(policy.learner)
    vars(policy)["learner"] = judged
    found = tell(policy, history, budget=2).state.graph
    np.testing.assert_allclose(found.adjacency, expected.adjacency, atol=1e-7)
    assert most // 2 < judged.solved <= most


def test_a_policy_that_needs_the_probabilities_of_its_own_draws_is_refused() -> None:
    assert "ftrl" not in UNTOLD
    with pytest.raises(ValueError, match=r"policy = FTRL.*must be one that learns from any decision"):
        tell(sp.FTRL(), played(), budget=2)


def test_what_cannot_be_is_refused_with_its_row() -> None:
    history = played(rounds=2500)
    history.z[1700, history.x[1700]] = 1.5
    with pytest.raises(ValueError, match=r"z of row 1700 = .*1\.5"):
        tell(sp.SwitchingSEM(), history, budget=2)


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM(graph="adaptive")])
def test_what_stands_in_pending_rounds_is_not_looked_at(policy) -> None:
    lost = tuple(range(3, 300, 5))
    blank, filled = played(rounds=300, lost=lost), played(rounds=300, lost=lost)
    filled.z[~filled.arrived] = np.where(filled.x[~filled.arrived], np.nan, 0.0)
    filled.y[~filled.arrived] = np.nan
    states = [leaves(tell(policy, history, budget=2).state) for history in (blank, filled)]
    assert all(np.array_equal(states[0][name], leaf, equal_nan=True) for name, leaf in states[1].items())


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM(), sp.CUCB(), None])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("rounds", [1, 100, 2600])
def test_a_way_through_all_rounds(policy, share, rounds) -> None:
    """To every round once, solved where judging begins, and judged for the last outcomes, however rare they are.

    None stands for a policy of which nothing is known but that it wants to be reminded.
    """
    arrived = np.random.default_rng(rounds).uniform(size=rounds) < share
    remembers = not isinstance(policy, sp.NDCSEM | sp.CUCB)
    way = list(stretches(policy, remembers, arrived))
    stops = [stretch.stop for stretch in way]
    assert stops == sorted(set(stops))
    assert stops[-1] == rounds
    starts = [0, *stops[:-1]]
    judged = np.repeat([stretch.judged for stretch in way], np.subtract(stops, starts))
    most = 0 if not remembers else rounds if policy is None else 1000
    assert judged[arrived].sum() == min(arrived.sum(), most)
    for k, stretch in enumerate(way[1:], 1):
        if stretch.judged and not way[k - 1].judged:
            assert way[k - 1].solved
            assert arrived[way[k - 1].stop - 1]
    assert way[-1].solved == bool(arrived[-1])
    assert len(way) <= rounds // 1000 + 204 or policy is None
