"""The functions of one learner give the same numbers in every use, compiled or as Python runs them."""

import copy
import pickle
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import learn_rounds
from spillover.core import uniform
from spillover.core.batches import LiveCore, learns_histories
from spillover.delays import BadNewsDelay
from spillover.rng import Purpose
from spillover.state import leaves
from spillover.testing import check_policy
from spillover.testing.invariance import check_stretches
from spillover.testing.trial import Trial
from spillover.types import Feedback
from tests.core.explorers import BOTH, CompiledExplorer, Explorer

WORLD = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=40, changes=(20,))
PROBLEM = sp.Problem(n_arms=4, budget=2)
DELAYS = sp.ConstantDelay(0), sp.ConstantDelay(7), sp.UniformDelay(0, 6), BadNewsDelay(1, 9)


def same(found: Any, expected: Any) -> None:
    """Two states are the same, bit for bit."""
    wanted = leaves(expected)
    for name, leaf in leaves(found).items():
        np.testing.assert_array_equal(leaf, wanted[name], err_msg=name)
        assert leaf.dtype == wanted[name].dtype


def outcome(x: np.ndarray, round: int) -> tuple[np.ndarray, np.ndarray]:
    """Of a round that was played, a function of its number."""
    z = np.where(x, np.random.default_rng(round).uniform(size=x.shape[-1]), 0.0)
    return z, z + 0.25 * z[..., -1:]


def live(learner: sp.Learner, rounds: int = 20, late: int = 2) -> list[list[int]]:
    """Play some rounds, whose outcomes are reported late; the decisions."""
    played = []
    for _ in range(rounds):
        played.append(np.flatnonzero(learner.choose()).tolist())
        learner.play()
        while len(learner.pending) > late:
            first = learner.pending[0]
            learner.report(first, *outcome(learner.waiting[first].x, first))
    return played


@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_the_contract_is_kept(policy) -> None:
    check_policy(policy)


@pytest.mark.parametrize("delay", DELAYS, ids=repr)
def test_simulations(delay) -> None:
    plain, compiled = (sp.simulate(policy, WORLD, delay, replications=3, seed=2) for policy in BOTH)
    np.testing.assert_array_equal(plain.regret, compiled.regret)
    np.testing.assert_array_equal(plain.payoff, compiled.payoff)


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (2, 3)])
def test_rounds_and_states_of_any_batch(batch) -> None:
    rng = sp.Rng(5, np.arange(np.prod(batch, dtype=int)).reshape(batch))
    world = WORLD.draw(rng.at(Purpose.WORLD), batch)
    plain, compiled = (sp.rounds(policy, world, sp.UniformDelay(0, 6), rng, batch) for policy in BOTH)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        same(one.state, other.state)


def test_a_grid() -> None:
    grid: dict[str, Any] = {"epsilon": [[0.0], [0.5]], "bonus": [0.0, 0.1, 1.0]}
    plain, compiled = (
        sp.simulate(kind(**grid), WORLD, 3, replications=2, seed=2) for kind in (Explorer, CompiledExplorer)
    )
    np.testing.assert_array_equal(plain.regret, compiled.regret)
    alone = sp.simulate(CompiledExplorer(epsilon=0.5, bonus=0.1), WORLD, 3, replications=2, seed=2)
    np.testing.assert_array_equal(compiled.regret[1, 1], alone.regret)
    assert len({cell.tobytes() for row in compiled.regret for cell in row}) > 1


def test_a_grid_that_is_not_declared_is_refused() -> None:
    class Ungridded(Explorer):
        grids: Any = ()

    with pytest.raises(ValueError, match=r"^shape of bonus = \(2,\): must be \(\), as Ungridded\.grids does not have"):
        Ungridded(bonus=[0.1, 0.2]).init(PROBLEM, sp.Rng(0))


def test_a_live_learner() -> None:
    plain, compiled = (sp.Learner(policy, PROBLEM, seed=3) for policy in BOTH)
    assert live(plain) == live(compiled)
    same(compiled.state, plain.state)
    assert isinstance(compiled.running, LiveCore)
    np.testing.assert_array_equal(plain.explain().index, compiled.explain().index)


@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_copies_and_pickles_go_on_by_themselves(policy) -> None:
    learner = sp.Learner(policy, PROBLEM, seed=3)
    live(learner)
    others = [copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    assert pickle.loads(pickle.dumps(policy)) == policy
    before = copy.deepcopy(learner.state)
    decisions = [live(other) for other in others]
    same(learner.state, before)
    assert decisions == [live(learner)] * 3


@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_saved_learners_go_on(policy, tmp_path) -> None:
    learner = sp.Learner(policy, PROBLEM, seed=3)
    live(learner)
    learner.save(tmp_path / "learner.json")
    again = sp.Learner.load(tmp_path / "learner.json", policy, PROBLEM, seed=3)
    assert live(again) == live(learner)
    same(again.state, learner.state)


def test_many_learners(tmp_path) -> None:
    seeds = [4, 5, 6]
    herds = [sp.Learners(policy, PROBLEM, seeds) for policy in BOTH]
    singles = [sp.Learner(BOTH[1], PROBLEM, seed=seed) for seed in seeds]
    for round in range(1, 13):
        who = np.array([0, 1, 2] if round % 3 else [2, 0])
        chosen = [herd.choose(who) for herd in herds]
        np.testing.assert_array_equal(chosen[0], chosen[1])
        np.testing.assert_array_equal(chosen[0], [singles[k].choose() for k in who])
        for herd in herds:
            numbers = herd.play(who)
            herd.report(who, numbers, *outcome(chosen[0], round))
        for k, x in zip(who, chosen[0], strict=True):
            singles[k].report(singles[k].play(), *outcome(x, round))
        if round == 6:
            for position, herd in enumerate(herds):
                herd.save(tmp_path / str(position))
                herds[position] = sp.Learners.load(tmp_path / str(position), BOTH[position], PROBLEM)
    same(herds[0].state, herds[1].state)


def test_a_log_that_is_replayed() -> None:
    x = np.array([np.random.default_rng(t).permutation(4) < 2 for t in range(15)])
    z, y = (np.array(part) for part in zip(*(outcome(one, t) for t, one in enumerate(x)), strict=True))
    plain, compiled = (list(sp.replay(policy, PROBLEM, x, z, y, delay=2)) for policy in BOTH)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one.chosen, other.chosen)
        np.testing.assert_array_equal(one.index, other.index)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_random_worlds_sizes_delays_and_settings(seed) -> None:
    draws = np.random.default_rng(seed)
    n = int(draws.integers(1, 30))
    world = sp.SyntheticSEM(
        n_arms=n,
        budget=int(draws.integers(1, n + 1)),
        horizon=int(draws.integers(1, 120)),
        changes=(),
        law=str(draws.choice(["bernoulli", "beta"])),
    )
    delay = DELAYS[int(draws.integers(len(DELAYS)))]
    given: dict[str, Any] = {"epsilon": draws.uniform(size=2), "bonus": draws.uniform()}
    plain, compiled = (
        sp.simulate(kind(**given), world, delay, replications=4, seed=seed) for kind in (Explorer, CompiledExplorer)
    )
    np.testing.assert_array_equal(plain.regret, compiled.regret)
    np.testing.assert_array_equal(plain.payoff, compiled.payoff)


class Once(Explorer):
    """Notes down something in its first round only."""

    def remember(self, s, turn, memo):
        if s.rounds == 0:
            memo[0, 0] = 8.0


class CompiledOnce(Once):
    compiled = True


def test_what_is_not_noted_down_is_0() -> None:
    plain, compiled = (sp.simulate(kind(), WORLD, 3, replications=3, seed=2) for kind in (Once, CompiledOnce))
    np.testing.assert_array_equal(plain.regret, compiled.regret)
    check_stretches(CompiledOnce(), Trial(WORLD, 0))


class Forgetful(Explorer):
    """Without memos, so that a history is learned in one call."""

    memos = 0
    remember: ClassVar[Any] = None

    def learn_outcome(self, s, lesson, turn):
        for i in range(len(lesson.x)):
            if lesson.x[i]:
                s.means.sums[i] += lesson.y[i] * (0.5 + uniform(turn, i))
                s.means.counts[i] += 1.0


class CompiledForgetful(Forgetful):
    compiled = True


def test_a_history_that_is_caught_up_with() -> None:
    x = np.array([np.random.default_rng(t).permutation(4) < 2 for t in range(15)])
    z, y = (np.array(part) for part in zip(*(outcome(one, t) for t, one in enumerate(x)), strict=True))
    arrived = np.arange(15) % 4 != 2
    history = Feedback(x, z, y, np.zeros(15, np.int64), arrived)
    found = []
    for policy in (Forgetful(), CompiledForgetful()):
        past = learns_histories(policy)
        for catch_up in (past.catch_up, partial(learn_rounds, policy, learn=past.learn)):
            state = policy.init(PROBLEM, sp.Rng(1).at(Purpose.START))
            found.append(past.solve(catch_up(state, history, 1, sp.Rng(1))))
    for other in found[1:]:
        same(other, found[0])
    assert found[0].rounds == 15
    assert found[0].means.counts.sum() == 2 * arrived.sum()
