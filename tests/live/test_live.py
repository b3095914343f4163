"""One live learner: the same decisions as in a simulation, outcomes in any order, and nothing lost on disk."""

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Exclusive, Include
from spillover.rng import Purpose

PROBLEM = sp.Problem(n_arms=6, budget=2, overall_range=(0.0, 6.0))
WORLD = sp.SyntheticSEM(n_arms=6, budget=2, edge_density=0.2, horizon=60, changes=(30,))


def outcome(world: sp.environments.SEMWorld, t: int, x: np.ndarray, rng: sp.Rng) -> sp.Outcome:
    return world.play(t, x, rng.at(Purpose.WORLD, t))


@pytest.mark.parametrize("name", ["ndc-sem", "cts", "ftrl", "window-cucb"])
def test_a_live_learner_decides_as_a_simulated_one(name: str) -> None:
    """Same seed, same world, delay 4: the learner plays what `rounds` plays."""
    policy, rng = sp.policies.POLICIES[name](), sp.Rng(3)
    world = WORLD.draw(rng.at(Purpose.WORLD))
    simulated = [played.x for played in sp.rounds(policy, world, 4, rng, ())]
    learner, lived, outcomes = sp.Learner(policy, world.problem, seed=3), [], {}
    for t in range(1, world.horizon + 1):
        lived.append(learner.choose())
        assert learner.play() == t
        outcomes[t] = outcome(world, t, lived[-1], rng)
        if t > 4:
            learner.report(t - 4, *outcomes.pop(t - 4))
    np.testing.assert_array_equal(lived, simulated)
    assert learner.pending == [57, 58, 59, 60]


def test_asking_twice_changes_nothing() -> None:
    learner = sp.Learner(sp.policies.CTS(), PROBLEM, seed=5)
    np.testing.assert_array_equal(learner.choose(), learner.choose())
    assert learner.rounds == 0


def test_what_somebody_decided_instead_is_learned_from() -> None:
    learner = sp.Learner(sp.NDCSEM(), PROBLEM)
    instead = [0, 0, 0, 1, 1, 0]
    learner.report(learner.play(instead), z=[0, 0, 0, 0.25, 1, 0], y=[0, 0, 0, 0.25, 1, 0])
    np.testing.assert_array_equal(learner.explain().mean[3:5], [0.25, 1.0])


def test_mistakes_are_named_and_cost_nothing(tmp_path) -> None:
    learner = sp.Learner(sp.NDCSEM(), PROBLEM)
    first = learner.play()
    for arguments, message in (
        ((7, np.zeros(6), np.zeros(6)), r"round = 7: must be a round that was played and not reported yet: \[1\]"),
        ((first, np.zeros(5), np.zeros(6)), r"shape of z = \(5,\): must be \(6,\)"),
        ((first, np.full(6, np.nan), np.zeros(6)), "must be finite"),
        ((first, np.ones(6), np.ones(6)), "must be 0 for every arm that was not played"),
    ):
        with pytest.raises(ValueError, match=message):
            learner.report(*arguments)
    assert learner.pending == [first]
    with pytest.raises(ValueError, match="must be only 0 and 1"):
        learner.play([2, 0, 0, 0, 0, 0])
    sp.state.save_state(tmp_path / "other.json", learner.state)
    with pytest.raises(ValueError, match="must be those of a saved learner"):
        sp.Learner.load(tmp_path / "other.json", sp.NDCSEM(), PROBLEM)
    (tmp_path / "cut.json").write_text('{"format": 1, "arr')
    with pytest.raises(ValueError, match="must be a complete JSON file"):
        sp.Learner.load(tmp_path / "cut.json", sp.NDCSEM(), PROBLEM)


def test_what_is_available_today_holds_for_today_alone(tmp_path) -> None:
    learner = sp.Learner(sp.NDCSEM(), PROBLEM, constraints=(Exclusive([0, 1]),))
    for _ in range(6):
        learner.report(learner.play(np.zeros(6)), z=np.zeros(6), y=np.zeros(6))
    today = learner.choose(available=[3, 4])  # never tried, so the available ones at once
    np.testing.assert_array_equal(today, [False, False, False, True, True, False])
    np.testing.assert_array_equal(learner.explain().chosen, today)
    learner.save(tmp_path / "learner.json")
    again = sp.Learner.load(tmp_path / "learner.json", sp.NDCSEM(), PROBLEM)
    assert again.constraints == (Exclusive([0, 1]),)
    np.testing.assert_array_equal(again.explain().chosen, today)
    np.testing.assert_array_equal(learner.choose(available=np.arange(6) == 2), np.arange(6) == 2)
    learner.play()
    np.testing.assert_array_equal(learner.waiting[7].x, np.arange(6) == 2)
    assert learner.choose().sum() == 2
    assert not learner.choose(available=[]).any()


def test_other_constraints_tomorrow(tmp_path) -> None:
    path = tmp_path / "learner.json"
    sp.Learner(sp.NDCSEM(), PROBLEM).save(path)
    assert sp.Learner.load(path, sp.NDCSEM(), PROBLEM).constraints == ()
    names = ("a", "b", "c", "d", "e", "f")
    tomorrow = sp.Learner.load(path, sp.NDCSEM(), PROBLEM, constraints=(Exclusive(["a", "f"]),), arms=names)
    tomorrow.save(path)
    with pytest.raises(ValueError, match=r"learner.json: constraint 1: arms = 'a': .*load\(..., arms=...\)"):
        sp.Learner.load(path, sp.NDCSEM(), PROBLEM)
    assert sp.Learner.load(path, sp.NDCSEM(), PROBLEM, arms=names).constraints == tomorrow.constraints


def test_a_person_may_play_what_the_constraints_forbid() -> None:
    learner = sp.Learner(sp.NDCSEM(), PROBLEM, constraints=(Exclusive([0, 1]),))
    learner.report(learner.play([1, 1, 0, 0, 0, 0]), z=[0.5, 1, 0, 0, 0, 0], y=[0.5, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(learner.explain().mean[:2], [0.5, 1.0])


def test_availability_that_collides_says_so_and_costs_nothing() -> None:
    learner = sp.Learner(sp.NDCSEM(), PROBLEM, constraints=(Include([2]),))
    before = learner.choose()
    with pytest.raises(ValueError, match=r"always arm 2; none of arm 0, arm 2, .* \(this round\)"):
        learner.choose(available=[1])
    with pytest.raises(ValueError, match="available = 9: must be a position from 0 to 5"):
        learner.choose(available=[9])
    with pytest.raises(ValueError, match=r"shape of available = \(2,\): must be \(6,\)"):
        learner.choose(available=[True, False])
    np.testing.assert_array_equal(learner.choose(), before)


def test_memos_of_some_pending_rounds_only_are_kept(tmp_path) -> None:
    """A history that is replayed has memos for its last rounds alone."""
    learner = sp.Learner(sp.SwitchingSEM(), PROBLEM)
    for _ in range(3):
        learner.play()
    learner.waiting[1] = learner.waiting[1]._replace(memo=None)
    learner.save(tmp_path / "learner.json")
    again = sp.Learner.load(tmp_path / "learner.json", sp.SwitchingSEM(), PROBLEM)
    assert again.waiting[1].memo is None
    for played in (2, 3):
        np.testing.assert_array_equal(again.waiting[played].memo, learner.waiting[played].memo)
    again.report(1, np.zeros(PROBLEM.n_arms), np.zeros(PROBLEM.n_arms))
