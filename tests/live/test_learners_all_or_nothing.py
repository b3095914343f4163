"""A call about many learners that is refused, fails or is interrupted at any line leaves all of them as they were."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from tests.live.herds import PROBLEM, everything, small_herd
from tests.live.test_all_or_nothing import every_line, steps
from tests.recorder import Recorder


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h: h.choose([0, 3]), "who = 3: must be a list of positions from 0 to 2, or a mask"),
        (lambda h: h.choose([-1]), "who = -1: must be a list of positions"),
        (lambda h: h.choose([0.5]), r"who = \[0.5\]: must be a list of positions"),
        (lambda h: h.choose([2, 0, 2]), "who = 2: must be a learner that is named once in a call"),
        (lambda h: h.choose([True, False]), r"shape of who = \(2,\): must be \(3,\), one for each learner"),
        (lambda h: h.choose(context=np.zeros((3, 1))), "learner 0, round 8: context = .*: must be None"),
        (lambda h: h.choose([1], available=np.zeros((2, 4), bool)), r"shape of available = \(2, 4\): must be \(1, 4\)"),
        (lambda h: h.play([1, 2], [[1, 0, 0, 0], [0, 2, 0, 0]]), "learner 2, round 8: x = .*: must be only 0 and 1"),
        (lambda h: h.play([1], [[1, 0, 0]]), r"shape of x = \(1, 3\): must be \(1, 4\)"),
        (lambda h: h.play([1], [[1, 0], [1]]), r"x: must be an array of shape \(1, 4\)"),
        (lambda h: h.play([1], dose=np.ones((1, 4))), "learner 1, round 8: dose = .*: must be None"),
        (lambda h: h.close([1], [99]), r"learner 1: round = 99: must be a round that was played and not reported"),
        (lambda h: h.close([1], [5.0]), r"rounds = \[5.0\]: must be a whole number for each of 1 learners"),
        (
            lambda h: h.report([1, 1], [7, 7], np.zeros((2, 4)), np.zeros((2, 4))),
            "learner 1: round = 7: must be .*ce",
        ),
        (lambda h: h.report([1], [7], np.zeros((1, 3)), np.zeros((1, 4))), r"shape of z = \(1, 3\): must be \(1, 4\)"),
        (lambda h: h.report([0, 1], [7, 7], np.zeros((2, 4)), [[0] * 4, [np.inf] * 4]), "learner 1, round 7: y = "),
        (lambda h: h.report([0, 1], [7, 7], [[0] * 4, [9] * 4], np.zeros((2, 4))), "learner 1, round 7: z = .*x = "),
        (lambda h: h.report([0, 1], [7, 7], None, np.zeros((2, 4))), "z = None: must be the instantaneous rewards"),
        (
            lambda h: h.report([0, 2], [7, 7], np.zeros((2, 4)), [[0] * 4, [np.nan] * 4]),
            "learner 2, round 7: y = ",
        ),
        (
            lambda h: h.report([0], [7], np.zeros((1, 4)), pd.DataFrame(np.zeros((1, 4)))),
            "y = 'DataFrame': must be ",
        ),
        (lambda h: h.learner(3), "position = 3: must be a whole number from 0 to 2"),
    ],
)
def test_mistakes_name_learner_round_and_value_and_change_nothing(call, message):
    herd = small_herd()
    before = everything(herd)
    with pytest.raises(ValueError, match=message) as caught:
        call(herd)
    assert "\n" not in str(caught.value)
    assert everything(herd) == before


@pytest.mark.parametrize("seeds", [[], [1.5], [-1], [[1]], ["a"], [2**64]])
def test_seeds_are_whole_numbers(seeds):
    with pytest.raises(ValueError, match=r"seeds = .*: must be whole numbers from 0 to 2\^64 - 1, at least one"):
        sp.Learners(sp.NDCSEM(), PROBLEM, seeds)


class Failing(Recorder):
    """Rewrites its state, as `update` may, and then fails if an outcome is 9."""

    def update(self, state, feedback, rng):
        state.outcomes[...] += 100.0
        if (feedback.y == 9.0).any():
            raise RuntimeError("halfway")
        return state


def test_an_update_that_fails_halfway_is_undone_for_all():
    herd = sp.Learners(Failing(), sp.Problem(n_arms=2, budget=1, observes="overall"), range(4))
    for who in (None, [1, 3], [2]):
        rounds = herd.play(who)
        before = everything(herd)
        y = np.ones((len(rounds), 2))
        y[-1, 0] = 9.0
        with pytest.raises(RuntimeError, match="halfway"):
            herd.report(who, rounds, y=y)
        assert everything(herd) == before
        herd.report(who, rounds, y=np.ones((len(rounds), 2)))
        assert everything(herd) != before


CALLS = {
    "choose": lambda h: h.choose([0, 2], available=[0, 3]),
    "play": lambda h: h.play([2, 0]),
    "play all": lambda h: h.play(x=np.eye(3, 4)),
    "report": lambda h: h.report([1, 2], [7, 7], np.zeros((2, 4)), np.zeros((2, 4))),
    "report all": lambda h: h.report([0, 1, 2], [7, 7, 7], np.zeros((3, 4)), np.zeros((3, 4))),
    "report parts": lambda h: h.report([1, 1], [6, 7], np.zeros((2, 4)), [[0.0, np.nan, 0.0, 0.0]] * 2),
    "close": lambda h: h.close([1, 2], [7, 7]),
}


@steps
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("policy", [sp.policies.CTS(), pytest.param(sp.SwitchingSEM(), marks=pytest.mark.long)])
def test_ctrl_c_at_every_line_of_a_call(name, policy, step):
    assert every_line(small_herd(policy), CALLS[name], step, everything) > 20


def test_a_decision_is_played_though_the_caller_changed_his_copy_of_it():
    herd = sp.Learners(sp.NDCSEM(), PROBLEM, range(3))
    chosen = herd.choose()
    kept = chosen.copy()
    chosen[:] = ~chosen
    herd.play()
    for k in range(3):
        np.testing.assert_array_equal(herd.learner(k).waiting[1].x, kept[k])


def test_copies_go_on_by_themselves():
    herd = small_herd(sp.NDCSEM())
    before = everything(herd)
    for other in (copy.copy(herd), copy.deepcopy(herd), pickle.loads(pickle.dumps(herd))):
        assert everything(other) == before
        other.play()
        assert everything(herd) == before
