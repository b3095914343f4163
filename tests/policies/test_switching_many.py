"""SwitchingSEM for many arms: the same decisions as with few, if all arms are brought up to date in every round."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import suited
from spillover.core.batches import learns_histories
from spillover.delays import GeometricDelay
from spillover.graph import CandidateGraph
from spillover.policies.switching_many import SwitchingOfMany
from spillover.rng import Purpose, Rng
from spillover.testing import check_policy


def played(policy: sp.Policy, delay: Any, seed: int, **world: Any) -> tuple[Any, Any]:
    """The decisions of all rounds in a small world, and the last state."""
    given = {"n_arms": 12, "budget": 3, "horizon": 150, "changes": (60,), "edge_density": 0.08, **world}
    rng = Rng(seed)
    drawn = sp.SyntheticSEM(**given).draw(rng.at(Purpose.WORLD))
    found = list(sp.rounds(policy, drawn, delay, rng, ()))
    return np.array([one.x for one in found]), found[-1].state


@pytest.mark.parametrize("delay", [0, 7, GeometricDelay(mean=5)], ids=["none", "constant", "out of order"])
@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_with_turns_of_one_all_decisions_are_those_of_the_dense_form(delay, law):
    dense, many = sp.SwitchingSEM(graph=CandidateGraph()), SwitchingOfMany(graph=CandidateGraph(), turns=1)
    (theirs, before), (ours, after) = (played(policy, delay, 3, law=law) for policy in (dense, many))
    np.testing.assert_array_equal(ours, theirs)
    assert (theirs != theirs[0]).any()
    np.testing.assert_array_equal(after.belief.mass, before.belief.mass)
    for ours_too, theirs_too in zip(many.believed(after), dense.believed(before), strict=True):
        np.testing.assert_array_equal(ours_too, theirs_too)
    np.testing.assert_allclose(after.drift.track, before.drift.track, atol=1e-14)
    np.testing.assert_array_equal(many.observations(after), dense.observations(before))


def test_arms_that_wait_for_their_turn_are_close_to_up_to_date():
    exact, state = SwitchingOfMany(graph=CandidateGraph(), turns=1), None
    lazy, worst = SwitchingOfMany(graph=CandidateGraph(), turns=8), 0.0
    rng = Rng(4)
    world = sp.SyntheticSEM(n_arms=12, budget=3, horizon=200, changes=(100,)).draw(rng.at(Purpose.WORLD))
    late = lazy.init(world.problem, rng)
    for one in sp.rounds(exact, world, 0, rng, ()):
        state = one.state
        late = lazy.played(late, one.x)
        z, y, _ = one.outcome
        late = lazy.update(late, sp.Feedback(one.x, z, y, np.array(0), np.array(True)), rng)
        worst = max(worst, np.abs(lazy.believed(late)[0] - exact.believed(state)[0]).max())
    assert 0.0 < worst < 0.15


def test_it_is_chosen_for_many_arms():
    problem = sp.Problem(n_arms=501, budget=5)
    assert isinstance(suited(sp.SwitchingSEM(), problem), SwitchingOfMany)
    assert suited(suited(sp.SwitchingSEM(), problem), problem) == suited(sp.SwitchingSEM(), problem)
    assert not isinstance(suited(sp.SwitchingSEM(), problem._replace(n_arms=500)), SwitchingOfMany)


@dataclass(frozen=True, kw_only=True)
class Own(sp.SwitchingSEM):
    """A policy that decides in its own way."""

    def select(self, state, rng):
        return super().select(state, rng)


@dataclass(frozen=True, kw_only=True)
class OwnPrior(sp.SwitchingSEM):
    """A policy that begins in its own way."""

    def prior_weights(self, problem):
        return super().prior_weights(problem)


@pytest.mark.parametrize("own", [Own, OwnPrior])
def test_a_class_that_does_something_in_its_own_way_is_left_alone(own):
    assert isinstance(suited(own(), sp.Problem(n_arms=501, budget=5)), own)


@pytest.mark.parametrize("turns", [0, -1, 1.5, "8"])
def test_turns_are_whole_numbers(turns):
    with pytest.raises(ValueError, match="turns = "):
        SwitchingOfMany(turns=turns)


@pytest.mark.long
@pytest.mark.parametrize("turns", [1, 8])
def test_contract(turns):
    check_policy(SwitchingOfMany(graph=CandidateGraph(), turns=turns))


def test_a_history_stored_by_columns_is_learned_as_one_stored_by_rows():
    n, rounds, draws = 510, 30, np.random.default_rng(0)
    x = np.argsort(draws.random((rounds, n)), axis=1) < 6
    z = np.where(x, draws.random((rounds, n)), 0.0)
    problem, found = sp.Problem(n_arms=n, budget=6), []
    policy: Any = suited(sp.SwitchingSEM(), problem)
    for order in ("C", "F"):
        choices, rewards, outcomes = (np.array(part, order=order) for part in (x, z, z))
        history = sp.Feedback(choices, rewards, outcomes, np.zeros(rounds, np.int64), np.ones(rounds, np.bool_))
        found.append(
            learns_histories(policy).catch_up(policy.init(problem, Rng(0).at(Purpose.START)), history, 1, Rng(0))
        )
    by_rows, by_columns = found
    for ours, theirs in zip(by_columns.belief, by_rows.belief, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert by_rows.belief.mean.std() > 0.0


@pytest.mark.parametrize("reward_range", [(-1.0, 1.0), (-3.0, 1.0)])
def test_arms_are_tried_where_rewards_may_be_negative(reward_range):
    problem = sp.Problem(n_arms=510, budget=5, reward_range=reward_range)
    (low, high), draws = reward_range, np.random.default_rng(1)
    policy = suited(sp.SwitchingSEM(), problem)
    state = policy.init(problem, Rng(0).at(Purpose.START))
    for t in range(1, 9):
        x = policy.select(state, Rng(0).at(Purpose.CHOICE, t)).x
        assert x.sum() == 5
        z = np.where(x, draws.uniform(low, high, 510), 0.0)
        state = policy.played(state, x)
        state = policy.update(state, sp.Feedback(x, z, z, np.array(0), np.array(True)), Rng(0))
