"""A learner with context, doses, outcomes in parts, and without z."""

import numpy as np
import pytest

import spillover as sp
from tests.recorder import Recorder

NAN = float("nan")
OVERALL = sp.Problem(n_arms=3, budget=2, observes="overall", context=2, baseline=True)
BOTH = sp.Problem(n_arms=3, budget=2)


def test_context_comes_before_the_decision_and_returns_with_the_outcome():
    learner = sp.Learner(policy := Recorder(), OVERALL)
    learner.choose(context=[1.0, 2.0])
    learner.choose(context=[1.0, 3.0])  # the forecast was revised
    first = learner.play()
    second = learner.play(context=[5.0, 6.0])
    learner.report(second, y=[1.0, 2.0, 3.0])
    learner.report(first, y=[1.0, 2.0, 3.0])
    assert [kind for kind, _ in policy.log] == ["observe", "observe", "played", "observe", "played", "update", "update"]
    later, earlier = policy.calls("update")
    np.testing.assert_array_equal(later.context, [5.0, 6.0])
    np.testing.assert_array_equal(earlier.context, [1.0, 3.0])
    assert np.isnan(earlier.z).all()
    assert earlier.fresh is None
    assert earlier.complete is None


def test_a_context_that_is_missing_or_wrong_is_named():
    learner = sp.Learner(Recorder(), OVERALL)
    for call in (learner.choose, learner.play, learner.explain):
        with pytest.raises(ValueError, match=r"context = None: must be the 2 context values of the coming round"):
            call()
    with pytest.raises(ValueError, match=r"shape of context = \(3,\): must be \(2,\)"):
        learner.choose(context=[1, 2, 3])
    with pytest.raises(ValueError, match=r"context = .*nan.*: must be finite numbers"):
        learner.choose(context=[1, NAN])
    with pytest.raises(ValueError, match=r"context = .*: must be None, as the problem has no context"):
        sp.Learner(Recorder(), BOTH).choose(context=[1.0])
    first = learner.play(context=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"context = .*: must be .*as before"):
        learner.report(first, None, [1, 2, 3], [1.0, 2.5])
    with pytest.raises(ValueError, match="context = None"):
        learner.play()  # that of an earlier round does not count


def test_parts_are_cumulative_and_every_cell_is_new_once():
    learner = sp.Learner(policy := Recorder(), OVERALL._replace(context=0))
    first = learner.play()
    learner.play()
    learner.report(first, y=[NAN, 2.0, NAN])
    assert learner.pending == [1, 2]
    learner.report(first, y=[NAN, 2.0, 3.0])  # what is known may be repeated
    learner.report(first, y=[1.0, NAN, NAN])
    assert learner.pending == [2]
    pieces = policy.calls("update")
    np.testing.assert_array_equal([p.y for p in pieces], [[NAN, 2, NAN], [NAN, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal([p.fresh for p in pieces], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert [bool(p.complete) for p in pieces] == [False, False, True]
    assert [int(p.age) for p in pieces] == [1, 1, 1]
    np.testing.assert_array_equal(learner.state.outcomes, [1, 2, 3])
    np.testing.assert_array_equal(learner.delay_totals, [1, 1, 1])


def test_a_policy_without_missing_outcomes_gets_the_round_when_it_is_complete():
    learner = sp.Learner(policy := Recorder(missing=False, rewards=True), BOTH)
    first = learner.play()
    learner.report(first, z=[0.5, NAN, 0.0], y=[0.5, NAN, 1.0])
    assert policy.calls("update") == []
    learner.report(first, z=[NAN, 0.25, NAN], y=[NAN, 0.25, NAN])
    (piece,) = policy.calls("update")
    np.testing.assert_array_equal(piece.z, [0.5, 0.25, 0.0])
    np.testing.assert_array_equal(piece.y, [0.5, 0.25, 1.0])
    assert piece.fresh is None


def test_parts_teach_a_policy_of_today_what_the_whole_teaches():
    whole, parts = (sp.Learner(sp.SwitchingSEM(), BOTH, seed=2) for _ in range(2))
    for k in range(6):
        x = whole.choose()
        z, y = 0.25 * x, 0.25 * x + 0.125 * k
        for learner in (whole, parts):
            learner.play()
        whole.report(k + 1, z, y)
        for arm in (2, 0, 1):
            seen = np.arange(3) == arm
            parts.report(k + 1, np.where(seen, z, NAN), np.where(seen, y, NAN))
    one, other = whole.explain(), parts.explain()
    for name in ("pending", "adjacency", "weights"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-9)
    np.testing.assert_allclose(one.mean, other.mean, atol=0.01)  # the arms of a round came in another order
    np.testing.assert_allclose(one.count, other.count, rtol=0.1)


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.InstrumentalSEM(), sp.NDCSEM()])
def test_a_round_can_be_closed(policy, tmp_path):
    """Nothing more will arrive: it is no longer pending, and a policy for that learns from it."""
    problem = sp.Problem(3, 2, observes="both" if policy.traits.needs_rewards else "overall")
    learner = sp.Learner(policy, problem, seed=1)
    for x in ([1, 1, 0], [0, 1, 1], [1, 0, 1]):
        learner.play(x)
    z = [1.0, NAN, 0.0] if policy.traits.needs_rewards else None
    learner.report(1, z=z, y=[1.0, NAN, 0.0])
    before = learner.explain().pending
    learner.close(1)
    learner.close(2)
    assert learner.pending == [3]
    if policy.traits.accepts_missing and policy.traits.needs_rewards:
        assert learner.explain().pending[1] < before[1]
        assert learner.explain().mean[1] < 0.5
    learner.save(tmp_path / "learner.json")
    with pytest.raises(ValueError, match=r"round = 2: must be a round that was played and not reported yet: \[3\]"):
        learner.close(2)
    assert learner.pending == [3]


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"y": [NAN, NAN, NAN]}, "y = .*: must be at least one outcome"),
        ({"y": [9.0, NAN, 1.0]}, "y = .*: must be the values that were reported before"),
        ({"y": [1.0, 2.0]}, r"shape of y = \(2,\): must be \(3,\)"),
        ({"y": [np.inf, NAN, 1.0]}, "must be the values that were reported before|must be finite"),
        ({"y": [NAN, NAN, 1.0], "z": [0.0, 0.0, 0.0]}, "z = .*: must be None, as observes = 'overall'"),
        ({"y": [NAN, NAN, 1.0], "dose": [1.0, -1.0, 0.0]}, "dose = .*: must be finite and > 0"),
    ],
)
def test_a_wrong_part_is_refused_and_costs_nothing(report, message):
    learner = sp.Learner(policy := Recorder(), OVERALL._replace(context=0))
    learner.play()
    learner.report(1, y=[1.0, NAN, NAN])
    with pytest.raises(ValueError, match=message):
        learner.report(1, **report)
    learner.report(1, y=[NAN, 2.0, 3.0])
    assert len(policy.calls("update")) == 2
    np.testing.assert_array_equal(learner.state.outcomes, [1, 2, 3])


def test_a_reward_must_come_with_its_outcome():
    learner = sp.Learner(Recorder(rewards=True), BOTH)
    learner.play()
    with pytest.raises(ValueError, match=r"z = .*: must be finite numbers for all arms whose y is reported"):
        learner.report(1, z=[NAN, NAN, NAN], y=[1.0, NAN, NAN])
    with pytest.raises(ValueError, match="z = None: must be the instantaneous rewards"):
        learner.report(1, y=[1.0, NAN, NAN])


def test_doses_are_given_with_the_decision_or_with_the_outcome():
    learner = sp.Learner(policy := Recorder(rewards=True), BOTH)
    learner.report(learner.play(dose=[2.0, 0.5, 9.0]), z=[1.5, 0.25, 0.0], y=[1.5, 0.25, 0.0])
    learner.report(learner.play(), z=[1.5, 0.25, 0.0], y=[1.5, 0.25, 0.0], dose=[2.0, 0.5, 9.0])
    for piece in policy.calls("update"):
        np.testing.assert_array_equal(piece.dose, [2.0, 0.5, 0.0])  # of the chosen arms
    with pytest.raises(ValueError, match=r"dose = .*: must be None: the policy learns from yes or no only"):
        sp.Learner(sp.NDCSEM(), BOTH).play(dose=[1.0, 2.0, 3.0])


def test_a_payoff_is_one_number():
    learner = sp.Learner(policy := Recorder(), OVERALL._replace(context=0, observes="payoff"))
    learner.report(learner.play(), y=12.5)
    (piece,) = policy.calls("update")
    np.testing.assert_array_equal(piece.y, [12.5, 0.0, 0.0])
    learner.play()
    for wrong in (None, NAN, [NAN, 0.0, 0.0]):
        with pytest.raises(ValueError, match=r"y = .*: must be a finite number, the payoff"):
            learner.report(2, y=wrong)


def test_it_is_saved_and_loaded_in_the_middle_of_everything(tmp_path):
    learner = sp.Learner(Recorder(), OVERALL)
    learner.play(context=[1.0, 2.0], dose=[2.0, 3.0, 0.0])
    learner.play(context=[3.0, 4.0])
    learner.report(1, y=[NAN, 5.0, NAN])
    learner.observe([7.0, 8.0])
    learner.save(tmp_path / "learner.json")
    again = sp.Learner.load(tmp_path / "learner.json", policy := Recorder(), OVERALL)
    assert again.pending == [1, 2]
    np.testing.assert_array_equal(again.context, [7.0, 8.0])
    np.testing.assert_array_equal(again.choose(), learner.choose())
    again.report(2, y=[1.0, 1.0, 1.0])
    again.report(1, y=[4.0, NAN, 6.0])
    second, first = policy.calls("update")
    np.testing.assert_array_equal(second.context, [3.0, 4.0])
    assert second.dose is None
    np.testing.assert_array_equal(first.y, [4.0, 5.0, 6.0])
    np.testing.assert_array_equal(first.fresh, [True, False, True])
    np.testing.assert_array_equal(first.context, [1.0, 2.0])
    np.testing.assert_array_equal(first.dose, [2.0, 3.0, 0.0])
    np.testing.assert_array_equal(again.state.outcomes, [5.0, 6.0, 7.0])


def test_a_policy_that_needs_z_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match=r"policy = NDCSEM: must be one that does not need the inst") as e:
        sp.Learner(sp.NDCSEM(), OVERALL)
    assert "\n" not in str(e.value)
